//! Limits a sender's unsent data. Enough waits to keep the sender busy, but memory does not fill with data that cannot
//! leave soon.

use farhaul_units::Duration;

use crate::pacer::Pacer;

/// Lower limit of unsent data, bytes. It keeps the sender busy while the application pauses between writes.
const MIN_UNSENT: u64 = 2 << 20;
/// On slow paths the lower limit is the data that leaves in this time. More would age before it is sent, and closing
/// would take minutes.
const UNSENT_TIME: Duration = Duration::from_millis(250);
/// Lower limit in packets, however slow the path.
const LEAST_PACKETS: u64 = 4;
/// Upper limit of unsent data, bytes.
const MAX_UNSENT: u64 = 16 << 20;

/// The limit on data that a sender takes from its application.
#[derive(Debug)]
pub struct Intake {
    cap: u64,
}

/// The packets of a sender. A packet counts in full even if it carries one byte.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Payload bytes of a full packet.
    pub payload_size: usize,
    /// Packets in the send buffer, and those of them in flight.
    pub held: u32,
    /// Packets that are sent and not acknowledged.
    pub in_flight: u32,
    /// Packets that fill the path, if known. Beyond twice this number, packets in flight wait for retransmissions of
    /// others. They are no reason to hold more data.
    pub filling: Option<u32>,
}

impl Intake {
    /// A limit for a sender that holds at most `cap` bytes.
    pub const fn new(cap: u64) -> Self {
        Self { cap }
    }

    /// Whether the sender could ever hold this many bytes.
    pub(crate) const fn holds(&self, bytes: u64) -> bool {
        bytes <= self.cap
    }

    /// Bytes that the application may write now.
    pub fn room(&self, load: Load, pacer: &Pacer) -> u64 {
        let bytes = |packets: u32| u64::from(packets) * load.payload_size as u64;
        let (held, in_flight) = (bytes(load.held), bytes(load.in_flight));
        let useful =
            load.filling.map_or(u64::MAX, |filling| (2 * bytes(filling) + MAX_UNSENT).saturating_sub(in_flight));
        let unsent = in_flight.min(useful).clamp(least(load, pacer), MAX_UNSENT).saturating_sub(held - in_flight);
        unsent.min(self.cap.saturating_sub(held))
    }

    /// Whether to wake a writer that found no room: half of the lower limit is free again.
    pub fn has_room_again(&self, load: Load, pacer: &Pacer) -> bool {
        self.room(load, pacer) >= least(load, pacer).min(self.cap) / 2
    }
}

/// The lower limit of unsent data for this path, bytes.
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
        Intake::new(cap).room(load, &Pacer::default())
    }

    #[test]
    fn unsent_data_is_limited_to_the_data_in_flight_within_bounds() {
        assert_eq!(room(CAP, load(0, 0, None)), MIN_UNSENT);
        assert_eq!(room(CAP, load(5_000, 5_000, None)), 5_000_000);
        assert_eq!(room(CAP, load(7_000, 5_000, None)), 3_000_000);
        assert_eq!(room(CAP, load(30_000, 30_000, None)), MAX_UNSENT);
        assert_eq!(room(31_000_000, load(30_000, 30_000, None)), 1_000_000, "the cap holds whatever there is");
    }

    #[test]
    fn beyond_twice_the_path_only_the_lower_limit_may_wait() {
        assert_eq!(room(CAP, load(10_000, 10_000, Some(5_000))), 10_000_000);
        assert_eq!(room(CAP, load(40_000, 40_000, Some(5_000))), MIN_UNSENT);
    }

    #[test]
    fn on_a_slow_path_no_more_waits_than_leaves_in_a_quarter_of_a_second() {
        let mut pacer = Pacer::default();
        for (micros, packets) in [(10_000.0, 25), (1e6, LEAST_PACKETS)] {
            pacer.set_period(SendPeriod::from_micros(micros), Duration::from_millis(10));
            assert_eq!(Intake::new(CAP).room(load(0, 0, None), &pacer), packets * 1_000);
        }
    }

    #[test]
    fn a_writer_into_a_small_buffer_is_woken_when_half_of_it_is_free() {
        let intake = Intake::new(100_000);
        assert!(!intake.has_room_again(load(51, 51, None), &Pacer::default()));
        assert!(intake.has_room_again(load(50, 50, None), &Pacer::default()));
    }
}
