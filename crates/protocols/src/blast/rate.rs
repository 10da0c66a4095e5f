//! The sending rate of a blast protocol: set by the user, or found during the transfer.
//!
//! A dedicated channel carries a rate without loss up to its capacity. Beyond, goodput stays on a plateau while loss
//! grows (paper:ornl §2, throughput profile). So the best rate is where the plateau begins. A sender that has no rate
//! finds it in two steps:
//!
//! ```text
//! Start  the rate grows fourfold per RTT until less arrives than was sent        start.rs
//! Climb  stochastic approximation of the best rate, for the rest of the transfer climb.rs
//! ```
//!
//! Both see only what left and the receiver's counts, so they need no records of the protocol. A rate that the
//! application or the receiver's credit did not let the sender reach is not judged.

mod climb;
pub(crate) mod counts;
mod start;

use farhaul_units::{Duration, Instant, Rate};

use self::climb::Climb;
use self::counts::Counts;
use self::start::Start;
use super::engine::{Feedback, RoundTrips, Setup};

/// The first rate without a hint, bit/s: four times that of the slowest channel for which these protocols are meant, 20
/// Mbit/s. So the slowest ones see the fourfold overload with which every start ends. It does not depend on the RTT.
/// A number of packets per RTT would cost long paths several RTTs (departure D332).
const FIRST: f64 = 80e6;
/// Bytes of IPv4 and UDP headers per datagram, which the rate includes.
const IP_UDP_HEADERS: f64 = 28.0;
/// Slowest and fastest rate that is ever tried, bit/s.
const SLOWEST: f64 = 1e5;
const FASTEST: f64 = 1e11;

/// How to find the rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RateChoice {
    /// Find it during the transfer.
    #[default]
    Auto,
    /// Always this rate, headers of IP and UDP included.
    Fixed(Rate),
}

impl RateChoice {
    /// This choice, or the fixed rate of a cap if there is one and the rate would be found.
    #[must_use]
    pub(crate) fn or_fixed(self, cap: Option<Rate>) -> Self {
        match (self, cap) {
            (Self::Auto, Some(rate)) => Self::Fixed(rate),
            _ => self,
        }
    }
}

/// The rate of one sender.
#[derive(Clone, Debug)]
pub(crate) struct RateControl {
    /// Bits per second.
    rate: f64,
    /// What the connection permits at most.
    most: Option<Rate>,
    finder: Option<Finder>,
}

/// Finds a rate.
#[derive(Clone, Debug)]
struct Finder {
    path: RoundTrips,
    counts: Counts,
    step: Step,
}

#[derive(Clone, Debug)]
enum Step {
    Start(Start),
    Climb(Climb),
}

impl RateControl {
    /// The control of an engine with this setup. The cap of the connection bounds the rate, and the search goes on as
    /// without it.
    pub(crate) fn of(choice: RateChoice, setup: &Setup<'_>) -> Self {
        let most = setup.config.max_rate;
        Self { most, ..Self::new(choice, setup.config.first_rate, setup.round_trip) }
    }

    /// The control of a new sender without a cap. A rate that is found begins at `hint`, such as what a profile found earlier. A
    /// wrong hint costs what a wrong first rate costs: the start grows or falls from there within a few RTTs.
    fn new(choice: RateChoice, hint: Option<Rate>, round_trip: Duration) -> Self {
        match choice {
            RateChoice::Fixed(rate) => Self { rate: rate.bits_per_second() as f64, most: None, finder: None },
            RateChoice::Auto => {
                let path = RoundTrips { least: round_trip, smoothed: round_trip, variation: Duration::ZERO };
                let first = hint.map_or(FIRST, |hint| hint.bits_per_second() as f64).clamp(SLOWEST, FASTEST);
                let step = Step::Start(Start::new(first));
                Self { rate: first, most: None, finder: Some(Finder { path, counts: Counts::default(), step }) }
            }
        }
    }

    /// The present rate, headers of IP and UDP included.
    pub(crate) fn rate(&self) -> Rate {
        let rate = Rate::from_bits_per_second(self.rate as u64);
        self.most.map_or(rate, |most| rate.min(most))
    }

    /// Datagrams left, `bytes` bytes in all, tags included. Repetitions count as well.
    pub(crate) fn on_sent(&mut self, now: Instant, datagrams: u32, bytes: usize) {
        if let Some(finder) = &mut self.finder {
            finder.counts.on_sent(now, (bytes as f64 + f64::from(datagrams) * IP_UDP_HEADERS) * 8.0);
        }
    }

    /// Counts of the peer's receiver.
    pub(crate) fn on_feedback(&mut self, now: Instant, feedback: &Feedback) {
        let Some(finder) = &mut self.finder else { return };
        finder.counts.on_feedback(now, feedback);
        if !feedback.path.smoothed.is_zero() {
            finder.path = feedback.path;
        }
        let next = match &mut finder.step {
            Step::Start(start) => match start.next(now, self.rate, &finder.path, &finder.counts) {
                start::Next::Rate(rate) => rate,
                start::Next::Found(rate) => {
                    finder.step = Step::Climb(Climb::new(rate));
                    rate
                }
            },
            Step::Climb(climb) => match climb.next(now, &finder.path, &finder.counts) {
                climb::Next::Rate(rate) => rate,
                climb::Next::Grow(rate) => {
                    finder.step = Step::Start(Start::new(rate));
                    rate
                }
                climb::Next::Fall(rate) => {
                    finder.step = Step::Start(Start::after_overload(now, rate));
                    rate
                }
            },
        };
        // Counts of a peer that lies may give no number.
        self.rate = if next.is_nan() { SLOWEST } else { next.clamp(SLOWEST, FASTEST) };
    }
}

#[cfg(test)]
mod tests;
