//! A caller inside a carrier, until it has shown its cookie: a listener for one connection.

use core::net::SocketAddr;

use farhaul_units::{Duration, Instant};
use farhaul_wire::udt2004::Control;

use super::Options;
use super::established::Udt2004Connection;
use super::handshake::{from_udt4, read_handshake};
use farhaul_proto::config::Mode;
use farhaul_proto::endpoint::handshake::Reception;
use farhaul_proto::endpoint::handshake::admission::Held;
use farhaul_proto::endpoint::protocol::{Established, Opening, Setup, Step};
use farhaul_proto::error::ConnectionLost;

/// A carrier may be without a connection inside for so long: the time in which an endpoint gives up a caller that it never
/// hears.
const IDLE: Duration = Duration::from_secs(10);

/// A connection that a peer opens inside its carrier.
pub(super) struct Called {
    reception: Reception,
    options: Options,
    peer: SocketAddr,
    /// The largest packet that the carrier takes.
    mss: u32,
    give_up: Instant,
}

impl Called {
    /// A listener for `peer`. `key` must be secret.
    pub(super) fn new((key, options): ([u8; 16], Options), (peer, mss): (SocketAddr, u32), now: Instant) -> Self {
        let mut reception = Reception::new(key);
        reception.listen(Some(Mode::Stream));
        Self { reception, options, peer, mss, give_up: now + IDLE }
    }
}

impl Opening for Called {
    fn on_datagram(&mut self, datagram: &mut [u8], setup: Setup<'_>) -> Step<Box<dyn Established>> {
        // Packets that overtake the handshake are lost. The peer retransmits them.
        let Some(packet) = read_handshake(datagram) else { return Step::Wait };
        let accepts =
            self.reception.on_call(&packet, self.peer.into(), setup.now, (Held::default(), setup.config)).is_some();
        match accepts
            .then(|| Udt2004Connection::accepted(&packet, (self.peer, self.mss), self.options, setup))
            .flatten()
        {
            Some(established) => Step::Done(Box::new(established)),
            None => Step::Wait,
        }
    }

    fn check(&self, now: Instant) -> Option<ConnectionLost> {
        (now >= self.give_up).then_some(ConnectionLost::ConnectTimeout(IDLE))
    }

    fn on_suspended(&mut self, gap: Duration) {
        self.give_up += gap;
    }

    fn poll(&mut self, _now: Instant, out: &mut Vec<u8>) -> bool {
        let Some((_, reply)) = self.reception.pop_reply() else { return false };
        Control::Handshake(from_udt4(&reply)).encode(out);
        true
    }

    fn deadline(&self) -> Option<Instant> {
        Some(self.give_up)
    }
}
