//! The sending rate of a blast protocol: set by the user, or found during the transfer.
//!
//! A dedicated channel carries a rate without loss up to its capacity. Beyond, goodput stays on a plateau while loss
//! grows (paper:ornl, throughput profile). So the best rate is where the plateau begins.

use farhaul_units::{Duration, Instant, Rate};

use super::engine::Feedback;

/// The rate of a sender that finds its rate, before the first feedback: ten packets of 1500 bytes in an RTT.
const FIRST_PACKETS: f64 = 10.0;
/// Shortest RTT that counts, so that a loopback does not begin at the speed of light.
const SHORTEST_ROUND_TRIP: Duration = Duration::from_millis(1);
/// Slowest and fastest rate that is ever tried, bit/s.
const SLOWEST: f64 = 1e5;
const FASTEST: f64 = 1e11;
/// During the start-up the rate doubles per measurement as long as this share of it arrives.
const KEEPS_UP: f64 = 0.9;
/// Shortest time of one measurement. Shorter ones count too few packets.
const SHORTEST_MEASUREMENT: Duration = Duration::from_millis(20);
/// Bytes of IPv4 and UDP headers per datagram, which count into the rate.
const HEADERS: u64 = 28;

/// How to find the rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RateChoice {
    /// Find it during the transfer.
    #[default]
    Auto,
    /// Always this rate, headers of IP and UDP included.
    Fixed(Rate),
}

/// The rate of one sender.
#[derive(Clone, Debug)]
pub(crate) struct RateControl {
    rate: f64,
    search: Option<Search>,
}

/// The start-up of a sender that finds its rate.
#[derive(Clone, Debug)]
struct Search {
    round_trip: Duration,
    /// The last feedback, and when it came.
    last: Option<(Feedback, Instant)>,
    /// Not before then is the effect of the present rate measured.
    settled: Instant,
    doubles: bool,
}

impl RateControl {
    /// The control of a new sender.
    pub(crate) fn new(choice: RateChoice, round_trip: Duration, now: Instant) -> Self {
        match choice {
            RateChoice::Fixed(rate) => Self { rate: rate.bits_per_second() as f64, search: None },
            RateChoice::Auto => {
                let round_trip = round_trip.max(SHORTEST_ROUND_TRIP);
                let rate = FIRST_PACKETS * 1_500.0 * 8.0 / round_trip.as_secs_f64();
                let search = Search { round_trip, last: None, settled: now + round_trip, doubles: true };
                Self { rate: rate.clamp(SLOWEST, FASTEST), search: Some(search) }
            }
        }
    }

    /// The present rate, headers of IP and UDP included.
    pub(crate) fn rate(&self) -> Rate {
        Rate::from_bits_per_second(self.rate as u64)
    }

    /// A new estimate of the RTT.
    pub(crate) fn set_round_trip(&mut self, round_trip: Duration) {
        if let Some(search) = &mut self.search {
            search.round_trip = round_trip.max(SHORTEST_ROUND_TRIP);
        }
    }

    /// Counts of the peer's receiver. `busy` is whether the sender always had something to send since the last ones.
    pub(crate) fn on_feedback(&mut self, now: Instant, feedback: &Feedback, busy: bool) {
        let Some(search) = &mut self.search else { return };
        let Some((last, at)) = search.last else {
            search.last = Some((*feedback, now));
            return;
        };
        // The counts to compare with must show the present rate too.
        if at < search.settled || !busy {
            search.last = Some((*feedback, now));
            return;
        }
        if now - at < SHORTEST_MEASUREMENT.max(search.round_trip / 2) {
            return;
        }
        search.last = Some((*feedback, now));
        let time = feedback.clock.saturating_sub(last.clock).as_secs_f64();
        let datagrams = feedback.datagrams.saturating_sub(last.datagrams);
        let bytes = feedback.bytes.saturating_sub(last.bytes).saturating_add(datagrams.saturating_mul(HEADERS));
        if time <= 0.0 {
            return;
        }
        let arrives = bytes as f64 * 8.0 / time;
        search.settled = now + search.round_trip;
        if search.doubles && arrives >= KEEPS_UP * self.rate {
            self.rate = (self.rate * 2.0).min(FASTEST);
        } else if search.doubles {
            search.doubles = false;
            self.rate = arrives.clamp(SLOWEST, FASTEST);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fixed_rate_does_not_move() {
        let rate = Rate::from_bits_per_second(5_000_000);
        let mut control = RateControl::new(RateChoice::Fixed(rate), Duration::from_millis(10), Instant::ZERO);
        let feedback = Feedback { datagrams: 0, bytes: 0, clock: Duration::from_secs(1) };
        control.on_feedback(Instant::ZERO, &feedback, true);
        assert_eq!(control.rate(), rate);
    }

    #[test]
    fn counts_that_no_path_carries_keep_the_rate_within_its_bounds() {
        let mut control = RateControl::new(RateChoice::Auto, Duration::from_millis(20), Instant::ZERO);
        for second in 1..10 {
            let datagrams = if second % 2 == 0 { u64::MAX } else { 0 };
            let feedback = Feedback { datagrams, bytes: datagrams, clock: Duration::from_secs(second) };
            control.on_feedback(Instant::ZERO + Duration::from_secs(second), &feedback, true);
        }
        assert!(control.rate().bits_per_second() <= FASTEST as u64);
    }

    #[test]
    fn the_start_up_doubles_until_less_arrives_than_is_sent() {
        let capacity = 100e6;
        let mut control = RateControl::new(RateChoice::Auto, Duration::from_millis(20), Instant::ZERO);
        let (mut bytes, mut now) = (0.0, Instant::ZERO);
        for _ in 0..500 {
            let datagrams = (bytes / 1_500.0) as u64;
            let feedback =
                Feedback { datagrams, bytes: bytes as u64 - datagrams * HEADERS, clock: now - Instant::ZERO };
            control.on_feedback(now, &feedback, true);
            now += Duration::from_millis(10);
            bytes += (control.rate().bits_per_second() as f64).min(capacity) / 8.0 * 0.01;
        }
        let rate = control.rate().bits_per_second() as f64;
        assert!((0.9 * capacity..=1.1 * capacity).contains(&rate), "{rate}");
    }
}
