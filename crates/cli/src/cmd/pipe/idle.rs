//! The idle time-out of a pipe after the end of its input.
//!
//! Without a half-close, nothing says that a direction has ended. Two sides whose inputs have ended, and which both wait for the other,
//! would wait for ever.

use std::time::Duration;

use farhaul_units::Instant;

/// A side's view of both directions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quiet {
    /// When the input ended.
    pub(super) ended: Option<Instant>,
    /// When data came last.
    pub(super) arrived: Option<Instant>,
    /// Some sent data is not acknowledged yet.
    pub(super) outstanding: bool,
    /// This side keeps the connection open for the other direction.
    pub(super) waits: bool,
}

impl Quiet {
    /// The time at which this side gives up; `None` while data is expected.
    ///
    /// A side that only receives waits as long as its sender lives, since the sender closes at its end. A side with
    /// `--wait` gets no such close.
    pub(super) fn ends_at(&self, timeout: Duration) -> Option<Instant> {
        let receives = self.arrived.is_some() && !self.waits;
        let ended = self.ended.filter(|_| !self.outstanding && !receives)?;
        Some(self.arrived.map_or(ended, |arrived| arrived.max(ended)) + timeout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(30);

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    /// An input that ended after ten seconds.
    const ENDED: Quiet =
        Quiet { ended: Some(Instant::from_nanos(10_000_000_000)), arrived: None, outstanding: false, waits: false };

    #[test]
    fn without_data_the_time_out_counts_from_the_end_of_the_input() {
        assert_eq!(ENDED.ends_at(TIMEOUT), Some(at(40)));
        assert_eq!(Quiet { waits: true, ..ENDED }.ends_at(TIMEOUT), Some(at(40)));
    }

    #[test]
    fn an_open_input_or_data_in_flight_is_not_idle() {
        for waits in [false, true] {
            assert_eq!(Quiet { ended: None, waits, ..ENDED }.ends_at(TIMEOUT), None);
            assert_eq!(Quiet { outstanding: true, waits, ..ENDED }.ends_at(TIMEOUT), None);
        }
    }

    #[test]
    fn a_receiver_waits_for_a_slow_sender_for_ever() {
        assert_eq!(Quiet { arrived: Some(at(11)), ..ENDED }.ends_at(TIMEOUT), None);
    }

    #[test]
    fn each_piece_of_data_restarts_the_time_out_of_a_waiting_side() {
        for (arrived, end) in [(5, 40), (25, 55), (54, 84)] {
            let quiet = Quiet { arrived: Some(at(arrived)), waits: true, ..ENDED };
            assert_eq!(quiet.ends_at(TIMEOUT), Some(at(end)));
        }
    }
}
