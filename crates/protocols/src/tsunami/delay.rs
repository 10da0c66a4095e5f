//! The delay between datagrams, which the error rate of the client sets (tsunami-udp 1.1; paper:survey, Tsunami).
//!
//! ```text
//! target  ← 8·10^6·block / target rate                      µs
//! start   = 3·target
//! e > E:    delay ← delay·(1 + (slower − 1)·(1 + e − E)/(100 000 − E))      (1)
//! else:     delay ← delay·faster                                           (2)
//! delay within target and 10 ms                                            (3)
//! ```
//!
//! e is the reported error rate and E its threshold, in thousandths of a percent. So the rate never exceeds the target,
//! and even an error rate of 50 % adds only 1.9 % to the delay.

use farhaul_units::Rate;
use farhaul_wire::tsunami::Ratio;

/// The first delay as a multiple of the target (seen on the wire).
pub const START_FACTOR: f64 = 3.0;
/// The longest delay, µs, (3).
pub const MAX_DELAY: f64 = 10_000.0;
/// An error rate of 100 %.
pub const ALL: u32 = 100_000;
/// Default threshold, E: 7.5 %.
pub const DEFAULT_THRESHOLD: u32 = 7_500;
/// Default factor of (1).
pub const DEFAULT_SLOWER: Ratio = Ratio { numerator: 25, denominator: 24 };
/// Default factor of (2).
pub const DEFAULT_FASTER: Ratio = Ratio { numerator: 5, denominator: 6 };
/// The shortest target, µs. The original waits whole microseconds, and one is the least that is a delay.
const MIN_TARGET: f64 = 1.0;

/// The settings of (1) and (2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Law {
    threshold: u32,
    slower: f64,
    faster: f64,
}

impl Law {
    /// A factor that would act against its purpose counts as 1: a peer must not make losses raise the rate.
    pub fn new(threshold: u32, slower: Ratio, faster: Ratio) -> Self {
        let (slower, faster) = (slower.value().max(1.0), faster.value().min(1.0));
        Self { threshold: threshold.min(ALL - 1), slower, faster }
    }
}

/// The target delay of the original, µs: whole microseconds, without headers.
pub fn whole_target(block: usize, rate: Rate) -> f64 {
    libm::floor(exact_target(block, rate)).max(MIN_TARGET)
}

/// The delay at which datagrams of `bytes` make exactly `rate`, µs.
pub fn exact_target(bytes: usize, rate: Rate) -> f64 {
    bytes as f64 * 8e6 / (rate.bits_per_second().max(1)) as f64
}

/// The delay of one sender.
#[derive(Clone, Copy, Debug)]
pub struct Delay {
    law: Law,
    target: f64,
    delay: f64,
}

impl Delay {
    /// A sender that begins at `factor` times `target` µs.
    pub fn new(law: Law, target: f64, factor: f64) -> Self {
        let mut delay = Self { law, target, delay: target * factor };
        delay.clamp();
        delay
    }

    /// The present delay, µs.
    pub const fn micros(&self) -> f64 {
        self.delay
    }

    /// The target delay, µs.
    #[cfg(test)]
    pub const fn target(&self) -> f64 {
        self.target
    }

    /// Another target. The delay stays the same multiple of it.
    pub fn set_target(&mut self, target: f64) {
        self.delay *= target / self.target;
        self.target = target;
        self.clamp();
    }

    /// The client reports an error rate, in thousandths of a percent.
    pub fn on_report(&mut self, error: u32) {
        let (error, threshold) = (error.min(ALL), self.law.threshold);
        if error > threshold {
            let excess = f64::from(1 + error - threshold) / f64::from(ALL - threshold);
            self.delay *= 1.0 + (self.law.slower - 1.0) * excess;
        } else {
            self.delay *= self.law.faster;
        }
        self.clamp();
    }

    /// (3). A target beyond the longest delay is the delay.
    fn clamp(&mut self) {
        self.delay = self.delay.min(MAX_DELAY).max(self.target);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delay(target: f64, factor: f64) -> Delay {
        Delay::new(Law::new(DEFAULT_THRESHOLD, DEFAULT_SLOWER, DEFAULT_FASTER), target, factor)
    }

    #[test]
    fn the_reports_of_the_original_move_the_delay_as_they_did_there() {
        // A client with 1 Gbit/s and blocks of 1024 bytes: 8.192 µs, of which the original takes 8.
        let target = whole_target(1_024, Rate::from_megabits_per_second(1_000));
        let mut delay = delay(target, START_FACTOR);
        assert_eq!((target, delay.micros()), (8.0, 24.0));
        delay.on_report(10_173);
        assert_eq!(format!("{:.2}", delay.micros()), "24.03");
        let before = delay.micros();
        delay.on_report(50_000);
        assert_eq!(format!("{:.3}", delay.micros() / before), "1.019", "half of all lost adds 1.9 %");
    }

    #[test]
    fn seven_good_reports_lead_to_the_full_rate() {
        let mut delay = delay(8.0, START_FACTOR);
        for report in 1..=7 {
            assert!(delay.micros() > 8.0, "before report {report}");
            delay.on_report(0);
        }
        assert_eq!(delay.micros(), 8.0);
        delay.on_report(DEFAULT_THRESHOLD);
        assert_eq!(delay.micros(), 8.0, "never faster than the target");
    }

    #[test]
    fn the_delay_ends_at_ten_milliseconds_and_a_claim_beyond_all_counts_as_all() {
        let mut delay = delay(8.0, START_FACTOR);
        delay.on_report(u32::MAX);
        assert!((delay.micros() / 24.0 - (1.0 + 1.0 / 24.0)).abs() < 1e-5);
        for _ in 0..1_000 {
            delay.on_report(ALL);
        }
        assert_eq!(delay.micros(), MAX_DELAY);
        assert_eq!(self::delay(20_000.0, START_FACTOR).micros(), 20_000.0, "a slower target is the delay");
    }

    #[test]
    fn a_new_target_keeps_the_slowdown() {
        let mut delay = delay(8.0, START_FACTOR);
        delay.set_target(16.0);
        assert_eq!((delay.micros(), delay.target()), (48.0, 16.0));
        delay.set_target(4.0);
        assert_eq!(delay.micros(), 12.0);
    }

    #[test]
    fn factors_against_their_purpose_do_nothing() {
        let (half, twice) = (Ratio { numerator: 1, denominator: 2 }, Ratio { numerator: 2, denominator: 1 });
        let mut delay = Delay::new(Law::new(DEFAULT_THRESHOLD, half, twice), 8.0, START_FACTOR);
        delay.on_report(ALL);
        delay.on_report(0);
        assert_eq!(delay.micros(), 24.0);
    }
}
