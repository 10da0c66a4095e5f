//! The last packet of a handshake, which the peer may request again.

use farhaul_units::{Duration, Instant};
use farhaul_wire::udt4::{Handshake, Largest, Request};

use super::{Agreed, Offer};

/// This side's answer to the peer's handshake.
#[derive(Debug)]
pub struct Answer {
    offer: Offer,
    agreed: Agreed,
    state: AnswerState,
}

#[derive(Debug)]
enum AnswerState {
    /// No answer was requested yet.
    None,
    Due(Box<Handshake>),
    SentAt(Instant),
}

impl Answer {
    /// An answer that was not asked for yet.
    pub const fn new(offer: Offer, agreed: Agreed) -> Self {
        Self { offer, agreed, state: AnswerState::None }
    }

    /// Queues an answer with what both sides agreed on.
    pub fn give(&mut self, request: Request, cookie: u32) {
        let offer = self.offer.packet(request, cookie);
        // A peer that did not ask gets the packet that it knows.
        let said = self.agreed.largest.and(offer.largest.said()).unwrap_or(0);
        let largest = if self.agreed.is_ours { Largest::Answered(said) } else { Largest::Unsaid };
        let packet = Handshake { mss: self.agreed.mss, largest, ..offer };
        self.state = AnswerState::Due(Box::new(packet));
    }

    /// Queues an answer with this side's offer.
    pub(crate) fn give_offer(&mut self, request: Request) {
        self.state = AnswerState::Due(Box::new(self.offer.packet(request, 0)));
    }

    /// A handshake packet arrived on an established connection: the answer to it was lost, or somebody replays it. This
    /// side answers `request` at most once per RTT, and only the packet that made this connection (attack A7).
    pub fn repeat(&mut self, packet: &Handshake, request: Request, now: Instant, round_trip: Duration) {
        let same = packet.socket_id == self.agreed.peer_id
            && packet.isn == self.agreed.recv_isn
            && packet.mss == self.agreed.peer_mss;
        if same && self.is_rested(now, round_trip) {
            self.give(request, packet.cookie);
        }
    }

    fn is_rested(&self, now: Instant, round_trip: Duration) -> bool {
        match self.state {
            AnswerState::None => true,
            AnswerState::Due(_) => false,
            AnswerState::SentAt(at) => now - at >= round_trip,
        }
    }

    /// The answer to send now.
    pub fn poll(&mut self, now: Instant) -> Option<Handshake> {
        if !self.is_due() {
            return None;
        }
        match std::mem::replace(&mut self.state, AnswerState::SentAt(now)) {
            AnswerState::Due(packet) => Some(*packet),
            AnswerState::None | AnswerState::SentAt(_) => None,
        }
    }

    const fn is_due(&self) -> bool {
        matches!(self.state, AnswerState::Due(_))
    }

    /// When to answer.
    pub fn deadline(&self, now: Instant) -> Option<Instant> {
        self.is_due().then_some(now)
    }
}

#[cfg(test)]
mod tests {
    use core::net::SocketAddr;

    use farhaul_units::SeqNo;
    use farhaul_wire::udt4::SocketId;

    use super::*;
    use crate::config::Mode;

    const RTT: Duration = Duration::from_millis(40);

    /// The caller's conclusion, and this side's answer to it.
    fn exchange() -> (Handshake, Answer) {
        let side = |id| Offer {
            mode: Mode::Stream,
            isn: SeqNo::new(77),
            mss: 1500,
            largest: None,
            wants_receipts: false,
            is_ours: true,
            flow_window: 8192,
            max_flow_window: 8192,
            socket_id: SocketId::new(id),
            peer: SocketAddr::from(([127, 0, 0, 1], 9000)),
        };
        let asked = Handshake { mss: 1400, ..side(5).packet(Request::Conclusion, 3) };
        let agreed = side(9).agree(&asked, None).expect("the packet size is large enough");
        (asked, Answer::new(side(9), agreed))
    }

    #[test]
    fn a_repeated_request_is_answered_once_per_round_trip() {
        let (asked, mut answer) = exchange();
        let sent: Vec<u64> = (0..100)
            .filter(|&millis| {
                let now = Instant::ZERO + Duration::from_millis(millis);
                answer.repeat(&asked, Request::Conclusion, now, RTT);
                answer.poll(now).is_some_and(|packet| (packet.mss, packet.cookie) == (1400, 3))
            })
            .collect();
        assert_eq!(sent, [0, 40, 80]);
    }

    #[test]
    fn only_the_packet_that_made_the_connection_is_answered() {
        let (asked, mut answer) = exchange();
        let strange = [
            Handshake { socket_id: SocketId::new(6), ..asked },
            Handshake { isn: SeqNo::new(78), ..asked },
            Handshake { mss: 1500, ..asked },
        ];
        for packet in strange {
            answer.repeat(&packet, Request::Conclusion, Instant::ZERO, RTT);
            assert_eq!(answer.deadline(Instant::ZERO), None);
        }
    }
}
