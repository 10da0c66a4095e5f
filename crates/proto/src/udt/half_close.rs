//! Half-close: each direction of a stream ends by itself, if both sides have agreed on it.
//!
//! The end of a direction is a data packet without payload. It has a sequence number, the one after the last data. So loss
//! reports, retransmissions, acknowledgements and the flow window cover it like data.
//!
//! ```text
//! own direction     Open ──finish_sending──▶ Ended
//! peer's direction  Open ──end arrives──▶ Announced ──nothing is missing──▶ Complete ──confirmed──▶ Confirmed
//!                                                                               └──patience passed──▶ ┘
//! ```
//!
//! A side whose both directions have ended leaves only after the peer has confirmed (ACK2) the acknowledgement of its end.
//! Otherwise the peer could take this side's shutdown for the loss of its last data.

use farhaul_units::{Duration, Instant, SeqNo};

use crate::buffer::RecvBuffer;
use crate::error::PeerMisbehaved;

/// Time for the confirmation, in RTTs. The acknowledgement is repeated in each of them. On a path that loses one packet in
/// five in either direction, all of them fail once in 4000 times.
const PATIENCE: u32 = 8;
/// Shortest time for the confirmation, because the peer's host may be busy.
const MIN_PATIENCE: Duration = Duration::from_millis(200);

/// The ends of both directions of a stream.
#[derive(Debug)]
pub(super) struct HalfClose {
    /// This side has written its end.
    has_ended: bool,
    peer: PeerEnd,
}

/// The end of the peer's direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PeerEnd {
    /// More may follow.
    Open,
    /// It has this sequence number, and data before it are missing.
    Announced(SeqNo),
    /// Everything has arrived. The peer may not know until it confirms, or until this instant.
    Complete { end: SeqNo, confirm_by: Instant },
    /// The same, and this side need not tell the peer any more.
    Confirmed(SeqNo),
}

impl HalfClose {
    /// Both directions are open.
    pub(super) const fn new() -> Self {
        Self { has_ended: false, peer: PeerEnd::Open }
    }

    // ---- this side's direction ----

    /// This side ends its direction. Returns whether it had not before.
    pub(super) const fn end(&mut self) -> bool {
        !std::mem::replace(&mut self.has_ended, true)
    }

    /// Whether this side has ended its direction.
    pub(super) const fn has_ended(&self) -> bool {
        self.has_ended
    }

    // ---- the peer's direction ----

    /// Checks a data packet before it is stored. `is_end` is whether it has no payload.
    ///
    /// # Errors
    /// The end moves, or data follow it (attack B21). The packet proves that the peer itself sent it.
    #[inline]
    pub(super) fn admit(&mut self, seq: SeqNo, is_end: bool, buffer: &RecvBuffer) -> Result<(), PeerMisbehaved> {
        let contradicts = match self.end_of_peer() {
            None if !is_end => return Ok(()),
            // A packet at or behind the end has arrived before it.
            None => seq.is_before(buffer.end()),
            Some(end) => {
                if is_end {
                    seq != end
                } else {
                    !seq.is_before(end)
                }
            }
        };
        if contradicts {
            return Err(PeerMisbehaved::EndContradicted);
        }
        // Without room the packet is not stored, and the peer repeats it.
        if self.peer == PeerEnd::Open && buffer.wants(seq) {
            self.peer = PeerEnd::Announced(seq);
        }
        Ok(())
    }

    /// Packets were stored.
    pub(super) fn on_arrival(&mut self, buffer: &RecvBuffer, now: Instant, round_trip: Duration) {
        if let PeerEnd::Announced(end) = self.peer
            && buffer.ack_point().is_after(end)
        {
            self.peer = PeerEnd::Complete { end, confirm_by: now + (round_trip * PATIENCE).max(MIN_PATIENCE) };
        }
    }

    /// The peer knows that everything before `confirmed` has arrived.
    pub(super) fn on_confirmed(&mut self, confirmed: SeqNo) {
        if let PeerEnd::Complete { end, .. } = self.peer
            && confirmed.is_after(end)
        {
            self.peer = PeerEnd::Confirmed(end);
        }
    }

    /// Gives up waiting for the confirmation, if it is overdue.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if let PeerEnd::Complete { end, confirm_by } = self.peer
            && confirm_by <= now
        {
            self.peer = PeerEnd::Confirmed(end);
        }
    }

    /// This computer was suspended.
    pub(super) fn on_suspended(&mut self, gap: Duration) {
        if let PeerEnd::Complete { confirm_by, .. } = &mut self.peer {
            *confirm_by += gap;
        }
    }

    pub(super) const fn deadline(&self) -> Option<Instant> {
        match self.peer {
            PeerEnd::Complete { confirm_by, .. } => Some(confirm_by),
            _ => None,
        }
    }

    /// The sequence number of the peer's end, if that has arrived.
    const fn end_of_peer(&self) -> Option<SeqNo> {
        match self.peer {
            PeerEnd::Open => None,
            PeerEnd::Announced(end) | PeerEnd::Complete { end, .. } | PeerEnd::Confirmed(end) => Some(end),
        }
    }

    /// Whether the peer's direction has arrived to its end.
    pub(super) const fn is_peer_complete(&self) -> bool {
        matches!(self.peer, PeerEnd::Complete { .. } | PeerEnd::Confirmed(_))
    }

    /// Whether the peer may still wait for the acknowledgement of its end.
    pub(super) const fn owes_confirmation(&self) -> bool {
        matches!(self.peer, PeerEnd::Complete { .. })
    }

    /// Whether nothing is left to do for the peer's direction.
    pub(super) const fn is_peer_confirmed(&self) -> bool {
        matches!(self.peer, PeerEnd::Confirmed(_))
    }
}

#[cfg(test)]
mod tests {
    use farhaul_units::MsgNo;
    use farhaul_wire::udt4::{MessageField, Position};

    use super::*;

    const RTT: Duration = Duration::from_millis(50);

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// A receiver of packets from 0 on, with room for a hundred.
    struct Receiving(HalfClose, RecvBuffer);

    impl Receiving {
        fn new() -> Self {
            Self(HalfClose::new(), RecvBuffer::new(SeqNo::new(0), 10, 100))
        }

        fn arrive(&mut self, seq: u32, payload: &[u8]) -> Result<(), PeerMisbehaved> {
            let (seq, field) = (SeqNo::new(seq), MessageField::from_word(0));
            self.0.admit(seq, payload.is_empty(), &self.1)?;
            let field = MessageField { position: Position::Only, message: MsgNo::FIRST, ..field };
            self.1.insert(seq, field, payload);
            self.0.on_arrival(&self.1, at(0), RTT);
            Ok(())
        }
    }

    #[test]
    fn the_end_counts_once_everything_before_it_has_arrived() {
        let mut receiving = Receiving::new();
        receiving.arrive(2, b"").unwrap();
        receiving.arrive(0, b"data").unwrap();
        assert!(!receiving.0.is_peer_complete() && receiving.0.deadline().is_none());
        receiving.arrive(2, b"").unwrap();
        receiving.arrive(1, b"data").unwrap();
        assert!(receiving.0.is_peer_complete() && receiving.0.owes_confirmation());
        receiving.0.on_confirmed(SeqNo::new(2));
        assert!(receiving.0.owes_confirmation(), "the peer knows of the data alone");
        receiving.0.on_confirmed(SeqNo::new(3));
        assert!(receiving.0.is_peer_confirmed() && receiving.0.deadline().is_none());
    }

    #[test]
    fn a_peer_that_confirms_nothing_is_waited_for_eight_round_trips() {
        let mut receiving = Receiving::new();
        receiving.arrive(0, b"").unwrap();
        receiving.0.on_suspended(RTT);
        receiving.0.handle_timeout(at(449));
        assert_eq!(receiving.0.deadline(), Some(at(450)));
        receiving.0.handle_timeout(at(450));
        assert!(receiving.0.is_peer_confirmed());
    }

    #[test]
    fn an_end_that_moves_and_data_behind_it_contradict_it() {
        let contradiction = Err(PeerMisbehaved::EndContradicted);
        for (seq, payload) in [(4, &b""[..]), (6, b""), (5, b"data"), (6, b"data"), (50, b"data")] {
            let mut receiving = Receiving::new();
            receiving.arrive(5, b"").unwrap();
            assert_eq!(receiving.arrive(seq, payload), contradiction, "{seq} {payload:?}");
        }
        let mut receiving = Receiving::new();
        receiving.arrive(3, b"data").unwrap();
        for seq in [0, 2, 3] {
            assert_eq!(receiving.arrive(seq, b""), contradiction, "{seq}");
        }
    }

    #[test]
    fn an_end_outside_the_window_does_not_count() {
        let mut receiving = Receiving::new();
        receiving.arrive(100, b"").unwrap();
        receiving.arrive(5, b"").unwrap();
        assert_eq!(receiving.arrive(6, b"data"), Err(PeerMisbehaved::EndContradicted));
    }
}
