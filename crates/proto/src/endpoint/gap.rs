//! Ends a connection whose peer is alive but never retransmits a missing packet.
//!
//! The peer then assumes that this side has the packet: an acknowledgement was forged, or damaged so that no checksum
//! noticed. UDT has no packet that could undo this. So the connection ends with a reason instead of waiting for ever.

use farhaul_units::{Duration, Instant, SeqNo};

use crate::buffer::RecvBuffer;
use crate::error::{ConnectionLost, PeerMisbehaved};
use crate::timer::Timer;

/// A packet may be missing for this many times the silence that ends a connection. By then a live peer has answered
/// several reports, even if its window probes have become rare.
const PATIENCE: u32 = 2;

/// Watches the first missing packet.
#[derive(Debug)]
pub struct Gap {
    first: SeqNo,
    timer: Timer,
    patience: Duration,
}

impl Gap {
    /// Nothing is missing. `silence` is the time without packets that ends a connection.
    pub fn new(first: SeqNo, silence: Duration) -> Self {
        Self { first, timer: Timer::stopped(), patience: silence * PATIENCE }
    }

    /// Takes note of packets that arrived or were given up.
    pub fn look(&mut self, buffer: &RecvBuffer, now: Instant) {
        let first = buffer.ack_point();
        // Into a closed window the peer sends only probes, no retransmissions.
        if buffer.is_contiguous() || buffer.free() == 0 {
            self.timer.stop();
        } else if first != self.first {
            self.timer.set(now + self.patience);
        } else {
            self.timer.start(now, self.patience);
        }
        self.first = first;
    }

    /// Starts the time again.
    pub fn restart(&mut self, now: Instant) {
        if self.timer.deadline().is_some() {
            self.timer.set(now + self.patience);
        }
    }

    /// The reason to end the connection, if the packet is overdue.
    pub fn check(&mut self, now: Instant) -> Option<ConnectionLost> {
        let never = PeerMisbehaved::GapNotRepaired(self.patience);
        self.timer.fires(now).then_some(ConnectionLost::PeerMisbehaved(never))
    }

    /// When it must be asked next, at the latest.
    pub const fn deadline(&self) -> Option<Instant> {
        self.timer.deadline()
    }
}

#[cfg(test)]
mod tests {
    use farhaul_units::MsgNo;
    use farhaul_wire::udt4::{MessageField, Position};

    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    /// Lets a packet arrive at this second.
    fn arrive(gap: &mut Gap, buffer: &mut RecvBuffer, seq: u32, second: u64) {
        let field = MessageField { position: Position::Only, in_order: false, message: MsgNo::FIRST };
        buffer.insert(SeqNo::new(seq), field, &[0; 10]);
        gap.look(buffer, at(second));
    }

    #[test]
    fn only_a_packet_that_stays_away_ends_the_connection() {
        let mut buffer = RecvBuffer::new(SeqNo::new(0), 10, 100);
        let mut gap = Gap::new(SeqNo::new(0), Duration::from_secs(30));
        arrive(&mut gap, &mut buffer, 0, 0);
        assert_eq!(gap.deadline(), None);
        arrive(&mut gap, &mut buffer, 2, 10);
        arrive(&mut gap, &mut buffer, 4, 40);
        assert_eq!(gap.deadline(), Some(at(70)));
        arrive(&mut gap, &mut buffer, 1, 60);
        assert_eq!((gap.check(at(70)), gap.deadline()), (None, Some(at(120))), "another one is missing now");
        arrive(&mut gap, &mut buffer, 5, 110);
        assert!(matches!(gap.check(at(120)), Some(ConnectionLost::PeerMisbehaved(_))));
        arrive(&mut gap, &mut buffer, 3, 121);
        assert_eq!(gap.deadline(), None);
    }

    #[test]
    fn a_closed_window_is_no_gap() {
        let mut buffer = RecvBuffer::new(SeqNo::new(0), 10, 3);
        let mut gap = Gap::new(SeqNo::new(0), Duration::from_secs(30));
        for seq in 0..3 {
            arrive(&mut gap, &mut buffer, seq, 0);
        }
        arrive(&mut gap, &mut buffer, 4, 1);
        assert_eq!(gap.deadline(), None);
    }
}
