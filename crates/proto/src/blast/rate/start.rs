//! The start of a search for the rate: grow until the path carries no more.
//!
//! ```text
//! r ← r·4^(Δt/RTT), at most doubled per feedback     until arrived < 0.8·sent, then r ← arrived
//! ```
//!
//! On a dedicated channel an overload for one RTT costs nothing but repetitions: the link is full all the time. So a
//! fast start is better than a gentle one. All of this is ours.

use farhaul_units::{Duration, Instant};

use super::counts::Counts;

/// Growth per RTT. From 64 packets per RTT to 2 Gbit/s at 200 ms takes five RTTs.
const GROWTH: f64 = 4.0;
/// Most growth from one feedback to the next. On a short path several RTTs pass between two.
const LARGEST_STEP: f64 = 2.0;
/// The path carries no more if less than this share of what was sent arrives.
const SATURATED: f64 = 0.8;
/// Shortest time of a comparison. Feedback comes every 10 ms.
const SHORTEST: Duration = Duration::from_millis(20);
/// A comparison spans this part of an RTT on long paths, in which the rate grows by half.
const PART: u32 = 4;

/// The growing rate.
#[derive(Clone, Debug)]
pub(super) struct Start {
    /// When the rate last grew; `None` before the first feedback.
    grown: Option<Instant>,
}

/// What the start wants.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Next {
    /// Send at this rate.
    Rate(f64),
    /// The path carries this rate.
    Found(f64),
}

impl Start {
    pub(super) const fn new() -> Self {
        Self { grown: None }
    }

    /// The next rate, bit/s.
    pub(super) fn next(&mut self, now: Instant, rate: f64, round_trip: Duration, counts: &Counts) -> Next {
        let least = SHORTEST.max(round_trip / PART);
        let compared = counts.compare(now.saturating_sub(least * 2), least, round_trip);
        if let Some(compared) = compared.filter(|compared| compared.arrived < SATURATED * compared.sent) {
            return Next::Found(compared.arrived);
        }
        let since = now - self.grown.unwrap_or(now);
        self.grown = Some(now);
        // A path that cannot be compared, because the application pauses, must not be overrun.
        if compared.is_none() && self.grown.is_some() && since > round_trip {
            return Next::Rate(rate);
        }
        let growth = libm::pow(GROWTH, since.as_secs_f64() / round_trip.as_secs_f64());
        Next::Rate(rate * growth.min(LARGEST_STEP))
    }
}
