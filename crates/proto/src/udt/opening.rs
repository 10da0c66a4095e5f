//! A connection until it is established: a call, or a rendezvous.

mod rendezvous;

use delegate::delegate;
use farhaul_units::{Duration, Instant};
use farhaul_wire::udt4::{Control, Handshake, Request, SocketId, Timestamp, is_handshake};

use self::rendezvous::Rendezvous;
use super::established::{Role, UdtConnection};
use crate::config::Config;
use crate::endpoint::handshake::{Agreed, Caller, Offer};
use crate::endpoint::protocol::{self, Setup, Step};
use crate::error::ConnectionLost;

/// An attempt to connect.
#[derive(Debug)]
pub(crate) struct UdtOpening {
    offer: Offer,
    /// The packets' time stamps count from here.
    opened: Instant,
    attempt: Attempt,
}

#[derive(Debug)]
enum Attempt {
    Calling(Caller),
    Rendezvous(Rendezvous),
}

impl Attempt {
    delegate! {
        to match self { Self::Calling(caller) => caller, Self::Rendezvous(rendezvous) => rendezvous } {
            fn check(&self, now: Instant) -> Option<ConnectionLost>;
            fn on_suspended(&mut self, gap: Duration);
            fn deadline(&self) -> Option<Instant>;
        }
    }
}

impl UdtOpening {
    /// Calls a listener.
    pub(super) fn call(offer: Offer, config: &Config, now: Instant) -> Self {
        let attempt = Attempt::Calling(Caller::new(offer, now, config.connect_timeout));
        Self { offer, opened: now, attempt }
    }

    /// Meets a peer that also calls.
    pub(super) fn meet(offer: Offer, config: &Config, now: Instant) -> Self {
        let attempt = Attempt::Rendezvous(Rendezvous::new(offer, now, config.udt.rendezvous_timeout));
        Self { offer, opened: now, attempt }
    }

    /// Whether it is a rendezvous.
    pub(super) const fn is_rendezvous(&self) -> bool {
        matches!(self.attempt, Attempt::Rendezvous(_))
    }

    /// The established connection. `heard` is the peer's last request, if its last packet was a handshake.
    fn establish(&self, agreed: Agreed, heard: Option<Request>, setup: Setup<'_>) -> UdtConnection {
        let role = if self.is_rendezvous() { Role::Rendezvous } else { Role::Caller };
        let mut established = UdtConnection::new(agreed, self.offer, role, self.opened, setup);
        // The peer of a rendezvous may not know yet that it is connected.
        if role == Role::Rendezvous && heard.is_some_and(|request| request != Request::RendezvousFinal) {
            established.answer.give_offer(Request::RendezvousFinal);
        }
        established
    }

    fn poll_packet(&mut self, now: Instant) -> Option<(Handshake, SocketId)> {
        match &mut self.attempt {
            Attempt::Calling(caller) => caller.poll(now).map(|packet| (packet, SocketId::NONE)),
            Attempt::Rendezvous(rendezvous) => rendezvous.poll(now),
        }
    }
}

impl protocol::Opening for UdtOpening {
    fn on_datagram(&mut self, datagram: &mut [u8], setup: Setup<'_>) -> Step<Box<dyn protocol::Established>> {
        let packet = match is_handshake(datagram).then(|| Control::decode(datagram)) {
            Some(Ok((_, _, Control::Handshake(packet)))) => Some(packet),
            Some(_) => return Step::Invalid,
            None => None,
        };
        let step = match (&mut self.attempt, &packet) {
            (Attempt::Calling(caller), Some(packet)) => caller.on_handshake(packet, setup.now),
            (Attempt::Calling(_), None) => Step::Wait,
            (Attempt::Rendezvous(rendezvous), Some(packet)) => rendezvous.on_handshake(packet, setup.now),
            // A data packet may complete a rendezvous.
            (Attempt::Rendezvous(rendezvous), None) => rendezvous.on_other_packet(),
        };
        let heard = packet.map(|packet| packet.request);
        step.map(|agreed| -> Box<dyn protocol::Established> { Box::new(self.establish(agreed, heard, setup)) })
    }

    delegate! {
        to self.attempt {
            fn check(&self, now: Instant) -> Option<ConnectionLost>;
            fn on_suspended(&mut self, gap: Duration);
            fn deadline(&self) -> Option<Instant>;
        }
    }

    fn poll(&mut self, now: Instant, out: &mut Vec<u8>) -> bool {
        let Some((packet, to)) = self.poll_packet(now) else { return false };
        Control::Handshake(packet).encode(Timestamp::from_elapsed(now - self.opened), to, out);
        true
    }
}
