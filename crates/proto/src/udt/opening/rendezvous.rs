//! Two sides that call each other at the same time, so that neither has to listen.
//!
//! ```text
//! both sides alike
//!   Waving ── req 0 ──▶ ◀── req 0 ── Waving
//!   Agreed ── req −1 ─▶ ◀── req −1 ─ Agreed
//!   connected on req −1, −2, or any data
//! ```

use farhaul_units::{Duration, Instant};
use farhaul_wire::udt4::{Handshake, Request, SocketId};

use crate::endpoint::handshake::{Agreed, Offer, RETRY, socket_type};
use crate::endpoint::protocol::Step;
use crate::error::{ConnectionLost, PeerIncompatible};
use crate::timer::Timer;
use crate::transport::earliest;

/// A rendezvous in progress.
#[derive(Debug)]
pub(crate) struct Rendezvous {
    offer: Offer,
    state: RendezvousState,
    retry: Timer,
    give_up: Instant,
    timeout: Duration,
}

#[derive(Clone, Copy, Debug)]
enum RendezvousState {
    /// No packet came from the peer: request 0.
    Waving,
    /// A packet came from the peer, which may have received none: request -1.
    Agreed(Agreed),
}

impl Rendezvous {
    pub(crate) fn new(offer: Offer, now: Instant, timeout: Duration) -> Self {
        Self { offer, state: RendezvousState::Waving, retry: Timer::at(now), give_up: now + timeout, timeout }
    }

    /// The packet to send now and its destination socket, if an attempt is due.
    pub(crate) fn poll(&mut self, now: Instant) -> Option<(Handshake, SocketId)> {
        if !self.retry.fires(now) {
            return None;
        }
        self.retry.set(now + RETRY);
        Some(match self.state {
            RendezvousState::Waving => (self.offer.packet(Request::Rendezvous, 0), SocketId::NONE),
            RendezvousState::Agreed(agreed) => (self.offer.packet(Request::Conclusion, 0), agreed.peer_id),
        })
    }

    /// This computer was suspended for `gap`, which does not count.
    pub(crate) fn on_suspended(&mut self, gap: Duration) {
        self.give_up += gap;
    }

    /// The reason to give up, if the time limit has passed.
    pub(crate) fn check(&self, now: Instant) -> Option<ConnectionLost> {
        (now >= self.give_up).then_some(ConnectionLost::ConnectTimeout(self.timeout))
    }

    /// A handshake packet came from the address of the peer.
    pub(crate) fn on_handshake(&mut self, packet: &Handshake, now: Instant) -> Step<Agreed> {
        let peer_heard_us = matches!(packet.request, Request::Conclusion | Request::RendezvousFinal);
        match self.state {
            RendezvousState::Waving => {
                // A caller that looks for a listener is not the peer.
                if packet.request == Request::Induction || packet.socket_id.is_none() {
                    return Step::Wait;
                }
                if packet.socket_type != socket_type(self.offer.mode) {
                    return Step::Failed(ConnectionLost::PeerIncompatible(PeerIncompatible::SocketType));
                }
                match self.offer.agree(packet, None) {
                    Err(reason) => Step::Failed(ConnectionLost::PeerIncompatible(reason)),
                    Ok(agreed) => {
                        self.state = RendezvousState::Agreed(agreed);
                        self.retry.set(now);
                        if peer_heard_us { Step::Done(agreed) } else { Step::Wait }
                    }
                }
            }
            RendezvousState::Agreed(agreed) if peer_heard_us => Step::Done(agreed),
            // The peer has received no packet yet, so repeat it.
            RendezvousState::Agreed(_) if packet.request == Request::Rendezvous => {
                self.retry.set(now);
                Step::Wait
            }
            RendezvousState::Agreed(_) => Step::Wait,
        }
    }

    /// A packet other than a handshake came from the peer, addressed to this socket. The peer is therefore connected.
    pub(crate) fn on_other_packet(&self) -> Step<Agreed> {
        match self.state {
            RendezvousState::Waving => Step::Wait,
            RendezvousState::Agreed(agreed) => Step::Done(agreed),
        }
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        earliest(self.retry.deadline(), Some(self.give_up))
    }
}

#[cfg(test)]
mod tests {
    use core::net::SocketAddr;

    use farhaul_units::SeqNo;

    use super::*;
    use crate::config::Mode;

    fn side(isn: u32, id: u32) -> Rendezvous {
        let offer = Offer {
            is_ours: true,
            mode: Mode::Stream,
            isn: SeqNo::new(isn),
            mss: 1500,
            largest: None,
            wants_receipts: false,
            flow_window: 8192,
            max_flow_window: 8192,
            socket_id: SocketId::new(id),
            peer: SocketAddr::from(([127, 0, 0, 1], 9000)),
        };
        Rendezvous::new(offer, Instant::ZERO, Duration::from_secs(30))
    }

    #[test]
    fn two_waves_and_two_agreements_connect_both_sides_with_their_own_numbers() {
        let (mut a, mut b) = (side(100, 1), side(200, 2));
        let now = Instant::ZERO;
        let (wave_a, _) = a.poll(now).unwrap();
        let (wave_b, _) = b.poll(now).unwrap();
        assert_eq!(a.on_handshake(&wave_b, now), Step::Wait);
        assert_eq!(b.on_handshake(&wave_a, now), Step::Wait);
        let (agree_a, to) = a.poll(now).unwrap();
        assert_eq!((agree_a.request, to), (Request::Conclusion, SocketId::new(2)));
        let Step::Done(agreed) = b.on_handshake(&agree_a, now) else { panic!("b is not connected") };
        assert_eq!((agreed.send_isn, agreed.recv_isn), (SeqNo::new(200), SeqNo::new(100)));
        assert!(matches!(a.on_other_packet(), Step::Done(_)));
    }

    #[test]
    fn the_smaller_packet_size_holds_on_both_sides() {
        let (mut a, mut b) = (side(100, 1), side(200, 2));
        b.offer.mss = 1400;
        let (wave_b, _) = b.poll(Instant::ZERO).unwrap();
        let (wave_a, _) = a.poll(Instant::ZERO).unwrap();
        a.on_handshake(&wave_b, Instant::ZERO);
        b.on_handshake(&wave_a, Instant::ZERO);
        for side in [a, b] {
            let Step::Done(agreed) = side.on_other_packet() else { panic!("not connected") };
            assert_eq!(agreed.mss, 1400);
        }
    }
}
