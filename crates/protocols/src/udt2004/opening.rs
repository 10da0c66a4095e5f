//! A connection of this protocol until it is established: UDT4's caller with this protocol's packets.

use farhaul_units::{Duration, Instant};
use farhaul_wire::udt2004::Control;

use super::Options;
use super::established::Udt2004Connection;
use super::handshake::{from_udt4, read_handshake};
use farhaul_proto::endpoint::handshake::{Caller, Offer};
use farhaul_proto::endpoint::protocol::{self, Setup, Step};
use farhaul_proto::error::ConnectionLost;

/// A call.
#[derive(Debug)]
pub(crate) struct Udt2004Opening {
    caller: Caller,
    offer: Offer,
    options: Options,
}

impl Udt2004Opening {
    /// Calls a listener. The call is given up after `timeout`.
    pub(super) fn new(offer: Offer, options: Options, now: Instant, timeout: Duration) -> Self {
        Self { caller: Caller::new(offer, now, timeout), offer, options }
    }
}

impl protocol::Opening for Udt2004Opening {
    fn on_datagram(&mut self, datagram: &mut [u8], setup: Setup<'_>) -> Step<Box<dyn protocol::Established>> {
        // Answers repeat the id of the request, which strangers do not know. Packets that overtake the answer are lost.
        // The peer retransmits them.
        match read_handshake(datagram).filter(|packet| packet.socket_id == self.offer.socket_id) {
            Some(packet) => {
                self.caller.on_handshake(&packet, setup.now).map(|agreed| -> Box<dyn protocol::Established> {
                    Box::new(Udt2004Connection::new(&agreed, &self.offer, (None, self.options), setup))
                })
            }
            None => Step::Wait,
        }
    }

    fn check(&self, now: Instant) -> Option<ConnectionLost> {
        self.caller.check(now)
    }

    fn on_suspended(&mut self, gap: Duration) {
        self.caller.on_suspended(gap);
    }

    fn poll(&mut self, now: Instant, out: &mut Vec<u8>) -> bool {
        let Some(packet) = self.caller.poll(now) else { return false };
        Control::Handshake(from_udt4(&packet)).encode(out);
        true
    }

    fn deadline(&self) -> Option<Instant> {
        self.caller.deadline()
    }
}
