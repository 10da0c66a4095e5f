//! Sleeps of the driver thread, so that one wake-up serves many datagrams, or a deadline and the datagrams before it.

use std::time::Duration;

use farhaul_units::Instant;

use super::wake_coalescing::ENOUGH;

/// Longest sleep. At 1 Gbit/s, paced traffic brings a datagram every 12 µs. A wake-up for each costs more than all
/// protocol work. A sleep of 0.5 ms gathers forty and is short compared with any wide-area RTT.
const LONGEST: Duration = Duration::from_micros(500);
/// Shorter sleeps cost as much as they save.
pub(super) const SHORTEST: Duration = Duration::from_micros(60);
/// Arrivals further apart are no stream of data, so each is answered at once.
const BUSY_WITHIN: Duration = Duration::from_micros(250);
/// At most one part in this many of the socket's receive buffer may fill during a sleep.
const BUFFER_SHARE: u64 = 8;

/// Decides about sleeps by the times and sizes of arrivals, and by the time until the next deadline.
#[derive(Debug)]
pub(super) struct ReceiveCoalescing {
    /// Size of the socket's receive buffer, bytes.
    buffer: u64,
    last_arrival: Instant,
    /// Time in which the latest arrivals would fill the permitted part of the buffer.
    fill: Duration,
}

impl ReceiveCoalescing {
    pub(super) fn new(buffer: u64) -> Self {
        Self { buffer, last_arrival: Instant::ZERO, fill: LONGEST }
    }

    /// Length of the sleep after an access in which `bytes` arrived. `rest` is the time until the next deadline. Zero for
    /// none.
    ///
    /// If the next deadline is near, the thread sleeps until then without looking for arrivals: it would be woken twice.
    pub(super) fn after_access(&mut self, now: Instant, bytes: usize, rest: Option<Duration>) -> Duration {
        let is_stream = bytes > 0 && self.note_arrival(now, bytes);
        let sleep = match rest {
            Some(rest) if rest <= LONGEST => rest.min(self.fill),
            _ if is_stream => LONGEST.min(self.fill),
            _ => Duration::ZERO,
        };
        if sleep < SHORTEST { Duration::ZERO } else { sleep }
    }

    /// Length of the sleep of a reader that has come back for more of a stream and found nothing: until as much as it reads at a time
    /// has arrived. Without it, each packet would wake the reader.
    pub(super) fn after_return(&self, now: Instant) -> Duration {
        let is_stream = now.saturating_since(self.last_arrival) <= BUSY_WITHIN + LONGEST;
        let share = (ENOUGH as u64 * BUFFER_SHARE) as f64 / self.buffer.max(1) as f64;
        let sleep = LONGEST.min(self.fill).min(self.fill.mul_f64(share));
        if is_stream && sleep >= SHORTEST { sleep } else { Duration::ZERO }
    }

    /// Time in which arrivals as of late fill half of the socket's receive buffer.
    pub(super) fn time_to_half(&self) -> Duration {
        self.fill * u32::try_from(BUFFER_SHARE / 2).unwrap_or(1)
    }

    /// Returns whether arrivals follow one another like a stream.
    pub(super) fn note_arrival(&mut self, now: Instant, bytes: usize) -> bool {
        let gap = now.saturating_since(self.last_arrival);
        self.last_arrival = now;
        let nanos = u128::from(self.buffer / BUFFER_SHARE) * gap.as_nanos() / bytes as u128;
        self.fill = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        gap <= BUSY_WITHIN + LONGEST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::from_nanos(micros * 1_000)
    }

    #[test]
    fn a_lone_datagram_is_answered_at_once() {
        let mut coalescing = ReceiveCoalescing::new(8 << 20);
        assert_eq!(coalescing.after_access(at(10_000), 1_500, None), Duration::ZERO);
        assert_eq!(coalescing.after_access(at(20_000), 1_500, None), Duration::ZERO);
    }

    #[test]
    fn a_paced_gigabit_is_gathered() {
        let mut coalescing = ReceiveCoalescing::new(8 << 20);
        coalescing.after_access(at(10_000), 1_500, None);
        assert_eq!(coalescing.after_access(at(10_012), 1_500, None), LONGEST);
        assert_eq!(coalescing.after_access(at(10_512), 62_500, None), LONGEST);
    }

    #[test]
    fn a_reader_that_comes_back_waits_for_a_block_of_a_stream_and_for_no_lone_packet() {
        let mut coalescing = ReceiveCoalescing::new(8 << 20);
        coalescing.note_arrival(at(10_000), 1_500);
        assert_eq!(coalescing.after_return(at(11_000)), Duration::ZERO, "no stream");
        coalescing.note_arrival(at(11_500), 62_500);
        assert_eq!(coalescing.after_return(at(11_510)), LONGEST, "a gigabit");
        coalescing.note_arrival(at(11_600), 125_000);
        assert_eq!(coalescing.after_return(at(11_610)).as_micros(), 209, "ten");
        coalescing.note_arrival(at(11_625), 125_000);
        assert_eq!(coalescing.after_return(at(11_626)), Duration::ZERO, "forty: a block is soon there");
    }

    #[test]
    fn a_sleep_never_fills_the_sockets_buffer() {
        let mut coalescing = ReceiveCoalescing::new(1 << 20);
        coalescing.after_access(at(10_000), 65_536, None);
        let sleep = coalescing.after_access(at(10_100), 131_072, None);
        assert_eq!(sleep, Duration::from_micros(100), "an eighth of the buffer at this rate");
    }

    #[test]
    fn arrivals_wait_for_a_deadline_that_is_near() {
        let mut coalescing = ReceiveCoalescing::new(8 << 20);
        let rest = Duration::from_micros(400);
        assert_eq!(coalescing.after_access(at(10_000), 0, Some(rest)), rest);
        assert_eq!(coalescing.after_access(at(90_000), 40, Some(rest)), rest);
        assert_eq!(coalescing.after_access(at(90_400), 0, Some(Duration::from_micros(501))), Duration::ZERO);
    }

    #[test]
    fn a_sleep_never_outlasts_the_rest() {
        let mut coalescing = ReceiveCoalescing::new(8 << 20);
        coalescing.after_access(at(10_000), 1_500, None);
        assert_eq!(
            coalescing.after_access(at(10_012), 1_500, Some(Duration::from_micros(100))),
            Duration::from_micros(100)
        );
        assert_eq!(coalescing.after_access(at(10_024), 1_500, Some(Duration::from_micros(1))), Duration::ZERO);
    }
}
