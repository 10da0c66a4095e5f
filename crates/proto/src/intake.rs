//! How much data may wait unsent: enough to keep the sender busy, not so much that memory fills with what cannot leave for
//! long.

use farhaul_units::Duration;

use crate::pacer::Pacer;

/// Data that may wait unsent, at least: an application that writes now and then keeps the sender busy meanwhile.
const MIN_UNSENT: u64 = 2 << 20;
/// Where less than that leaves in this time, no more than leaves: a slow path does not make data old before it is sent, nor
/// an end wait for minutes.
const UNSENT_TIME: Duration = Duration::from_millis(250);
/// But at least as many packets.
const LEAST_PACKETS: u64 = 4;
/// Data that may wait unsent, at most.
const MAX_UNSENT: u64 = 16 << 20;

/// The rule of what a sender takes from its application.
#[derive(Debug)]
pub(crate) struct Intake {
    cap: u64,
}

/// What a sender holds. Packets count in full: one of one byte takes the place of any other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// Payload bytes of a full packet.
    pub(crate) payload_size: usize,
    /// Packets held, and those of them that were sent.
    pub(crate) held: u32,
    pub(crate) in_flight: u32,
    /// Packets that fill the path, if that is known. Beyond two fillings, packets only wait for repairs of others: no reason to
    /// hold more behind them.
    pub(crate) filling: Option<u32>,
}

impl Intake {
    /// For a sender that holds `cap` bytes at most.
    pub(crate) const fn new(cap: u64) -> Self {
        Self { cap }
    }

    /// Whether so many bytes can be held at all.
    pub(crate) const fn holds(&self, bytes: u64) -> bool {
        bytes <= self.cap
    }

    /// Bytes that the application may write now.
    pub(crate) fn room(&self, load: Load, pacer: &Pacer) -> u64 {
        let bytes = |packets: u32| u64::from(packets) * load.payload_size as u64;
        let (held, in_flight) = (bytes(load.held), bytes(load.in_flight));
        let useful =
            load.filling.map_or(u64::MAX, |filling| (2 * bytes(filling) + MAX_UNSENT).saturating_sub(in_flight));
        let unsent = in_flight.min(useful).clamp(least(load, pacer), MAX_UNSENT).saturating_sub(held - in_flight);
        unsent.min(self.cap.saturating_sub(held))
    }

    /// Whether enough room has come back to wake a writer that found none: half of what there is at least.
    pub(crate) fn has_room_again(&self, load: Load, pacer: &Pacer) -> bool {
        self.room(load, pacer) >= least(load, pacer).min(self.cap) / 2
    }
}

/// Bytes that may wait unsent whatever is under way.
fn least(load: Load, pacer: &Pacer) -> u64 {
    let paced = pacer.packets_in(UNSENT_TIME).unwrap_or(u64::MAX).max(LEAST_PACKETS);
    paced.saturating_mul(load.payload_size as u64).min(MIN_UNSENT)
}

#[cfg(test)]
mod tests {
    use farhaul_units::SendPeriod;

    use super::*;

    const CAP: u64 = 512 << 20;

    fn load(held: u32, in_flight: u32, filling: Option<u32>) -> Load {
        Load { payload_size: 1_000, held, in_flight, filling }
    }

    fn room(cap: u64, load: Load) -> u64 {
        Intake::new(cap).room(load, &Pacer::new())
    }

    #[test]
    fn as_much_may_wait_as_is_under_way_within_bounds() {
        assert_eq!(room(CAP, load(0, 0, None)), MIN_UNSENT);
        assert_eq!(room(CAP, load(5_000, 5_000, None)), 5_000_000);
        assert_eq!(room(CAP, load(7_000, 5_000, None)), 3_000_000);
        assert_eq!(room(CAP, load(30_000, 30_000, None)), MAX_UNSENT);
        assert_eq!(room(31_000_000, load(30_000, 30_000, None)), 1_000_000, "the cap holds whatever there is");
    }

    #[test]
    fn beyond_two_fillings_of_the_path_only_the_least_may_wait() {
        assert_eq!(room(CAP, load(10_000, 10_000, Some(5_000))), 10_000_000);
        assert_eq!(room(CAP, load(40_000, 40_000, Some(5_000))), MIN_UNSENT);
    }

    #[test]
    fn on_a_slow_path_no_more_waits_than_leaves_in_a_quarter_of_a_second() {
        let mut pacer = Pacer::new();
        for (micros, packets) in [(10_000.0, 25), (1e6, LEAST_PACKETS)] {
            pacer.set_period(SendPeriod::from_micros(micros), Duration::from_millis(10));
            assert_eq!(Intake::new(CAP).room(load(0, 0, None), &pacer), packets * 1_000);
        }
    }

    #[test]
    fn a_writer_into_a_small_buffer_is_woken_when_half_of_it_is_free() {
        let intake = Intake::new(100_000);
        assert!(!intake.has_room_again(load(51, 51, None), &Pacer::new()));
        assert!(intake.has_room_again(load(50, 50, None), &Pacer::new()));
    }
}
