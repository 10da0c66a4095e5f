//! The analytic model of RBUDP: the goodput follows from rate, RTT and the bytes of a blast.
//!
//! A blast of S bits at a payload rate B lasts S/B, and its last packet and the bitmap take one RTT. So without loss
//!
//! ```text
//! B_achieved / B = 1 / (1 + RTT·B/S)                                      (1)
//! ```
//!
//! With loss of probability p the missing packets are repeated until all have arrived. Each of n packets is sent 1/(1−p)
//! times on average. The number of rounds is the largest of n geometric numbers, whose mean is
//!
//! ```text
//! R = Σ over k ≥ 0 of 1 − (1 − p^k)^n                                     (2)
//! T = S/B / (1 − p) + R·RTT                                               (3)
//! ```
//!
//! (1) is that of the protocol's authors (paper:rbudp-2002). (2) and (3) extend it.

use farhaul_units::{Duration, Rate};

use super::options::payload_rate;

/// Terms of (2) below this size no longer change a rounded result.
const LEAST_TERM: f64 = 1e-9;

/// The path of a transfer, and its rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Model {
    /// Payload bits per second of a blast.
    pub rate: Rate,
    /// The RTT.
    pub round_trip: Duration,
    /// Payload bytes of a packet.
    pub payload: u32,
    /// The probability that a packet is lost, from 0 to below 1.
    pub loss: f64,
}

impl Model {
    /// A path without loss for packets between two Farhaul programs. `rate` counts the headers of IP and UDP, as
    /// [`Options::rate`](super::Options::rate) does.
    pub fn new(rate: Rate, round_trip: Duration, payload: u16) -> Self {
        let rate = payload_rate(rate, usize::from(payload), super::HEADER);
        Self { rate, round_trip, payload: payload.into(), loss: 0.0 }
    }

    /// The share of the rate that a blast of this many bytes achieves, 0 to 1.
    pub fn share(&self, bytes: u64) -> f64 {
        let sending = self.sending(bytes);
        let time = self.seconds(bytes);
        if time > 0.0 { sending / time } else { 0.0 }
    }

    /// Payload bits per second that a blast of this many bytes achieves.
    pub fn goodput(&self, bytes: u64) -> Rate {
        Rate::from_bits_per_second((self.rate.bits_per_second() as f64 * self.share(bytes)) as u64)
    }

    /// The mean number of rounds until every packet of a blast has arrived.
    pub fn rounds(&self, bytes: u64) -> f64 {
        let packets = bytes.div_ceil(u64::from(self.payload.max(1))) as f64;
        let loss = self.loss();
        let (mut rounds, mut lost_so_far) = (1.0, loss);
        // (2), whose term of k = 0 is 1.
        loop {
            let term = -libm::expm1(packets * libm::log1p(-lost_so_far));
            if term < LEAST_TERM {
                return rounds;
            }
            rounds += term;
            lost_so_far *= loss;
        }
    }

    /// Seconds of sending every packet once.
    fn sending(&self, bytes: u64) -> f64 {
        bytes as f64 * 8.0 / self.rate.bits_per_second().max(1) as f64
    }

    /// The mean time from the first packet of a blast until the sender knows that all have arrived: (3), of which (1) is the case without loss.
    pub(super) fn seconds(&self, bytes: u64) -> f64 {
        self.sending(bytes) / (1.0 - self.loss()) + self.rounds(bytes) * self.round_trip.as_secs_f64()
    }

    /// Certain loss would take for ever, and a loss that is no number has no meaning.
    fn loss(&self) -> f64 {
        if self.loss.is_finite() { self.loss.clamp(0.0, 0.999) } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gigabit(millis: u64, loss: f64) -> Model {
        let rate = Rate::from_megabits_per_second(1_000);
        Model { rate, round_trip: Duration::from_millis(millis), payload: 1_000, loss }
    }

    fn near(value: f64, expected: f64) {
        assert!((value - expected).abs() < 1e-3 * expected, "{value}, expected {expected}");
    }

    #[test]
    fn a_second_of_data_at_an_rtt_of_a_tenth_achieves_ten_elevenths() {
        near(gigabit(100, 0.0).share(125_000_000), 10.0 / 11.0);
        near(gigabit(100, 0.0).seconds(125_000_000), 1.1);
    }

    #[test]
    fn a_blast_of_rtt_times_rate_achieves_half() {
        for millis in [1, 10, 100] {
            let model = gigabit(millis, 0.0);
            near(model.share(125_000 * millis), 0.5);
        }
    }

    #[test]
    fn a_thousand_packets_at_a_tenth_of_loss_take_three_and_three_quarters_rounds() {
        // 1 + 1 + 0.99996 + 0.63230 + 0.09516 + 0.00995 + 0.00100 + …
        near(gigabit(100, 0.1).rounds(1_000_000), 3.738_7);
        near(gigabit(100, 0.1).seconds(1_000_000), 0.008 / 0.9 + 0.373_87);
    }

    #[test]
    fn one_packet_takes_as_many_rounds_as_it_is_sent() {
        near(gigabit(100, 0.5).rounds(1), 2.0);
        near(gigabit(100, 0.0).rounds(1), 1.0);
    }

    #[test]
    fn meaningless_inputs_have_finite_results() {
        for loss in [f64::NAN, 1.0, -1.0, f64::INFINITY] {
            let model = Model { rate: Rate::ZERO, payload: 0, ..gigabit(100, loss) };
            assert!((0.0..=1.0).contains(&model.share(1)) && model.rounds(u64::MAX).is_finite());
        }
        assert_eq!(gigabit(100, 0.0).share(0), 0.0);
    }
}
