//! The start of a search for the rate: grow until the path carries no more, then see what it carries.
//!
//! ```text
//! grow    r ← r·4^(Δt/RTT), at most 4·arrived           until arrived < 0.8·sent, whatever the delay
//! settle  r ← 0.8·arrived, and note the most that arrives   until less arrives
//! found   r ← the most that arrived
//! ```
//!
//! On a dedicated channel an overload for one RTT costs nothing but repetitions: the link is full all the time. So a
//! fast start is better than a gentle one. While the queue of the overload empties, arrivals show the capacity. All of
//! this is ours.

use farhaul_units::{Duration, Instant};

use super::counts::{Counts, telling_time, time_of};
use crate::blast::engine::RoundTrips;

/// Growth per RTT. From 64 packets per RTT to 2 Gbit/s at 200 ms takes five RTTs.
const GROWTH: f64 = 4.0;
/// The queue of the overload empties at this share of what arrived. While it is not empty, arrivals show the capacity.
const DRAINING: f64 = 0.8;
/// It is empty once arrivals fall below this share of the most, which is halfway to what is sent. What is sent itself is
/// no measure, since some of it may be lost or arrive twice.
const FALLEN: f64 = 0.9;
/// Longest time to wait for that, in RTTs and at least so long. A queue may be far longer than the path.
const LONGEST_SETTLING: (u32, Duration) = (4, Duration::from_secs(2));
/// Shortest time of a comparison. Feedback comes every 10 ms.
const SHORTEST: Duration = Duration::from_millis(20);
/// The rate grows as fast as so many packets arrive. A search that grows must not wait for the many that show overload.
const GROWING_PACKETS: f64 = 4.0;
/// The rate grows only if this share of it leaves. Otherwise the application or the credit limits the sender, and the
/// path is not tested.
const TESTED: f64 = 0.5;
/// Shortest RTT in which the rate grows so much. Feedback comes every 10 ms, so nothing shorter can be seen.
const SHORTEST_ROUND_TRIP: Duration = Duration::from_millis(10);
/// A comparison spans this part of an RTT on long paths, in which the rate grows by half.
const PART: u32 = 4;

/// The state of the start.
#[derive(Clone, Copy, Debug)]
pub(super) enum Start {
    /// The rate grows. When it last did; `None` before the first feedback.
    Growing(Option<Instant>),
    /// The overload drains since then. `most` is the most that arrived, bit/s.
    Settling { since: Instant, most: f64 },
}

/// The answer of the start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Next {
    /// Send at this rate.
    Rate(f64),
    /// The path carries this rate.
    Found(f64),
}

impl Start {
    pub(super) const fn new() -> Self {
        Self::Growing(None)
    }

    /// An overload, of which so much arrives, ends now.
    pub(super) const fn after_overload(now: Instant, arrived: f64) -> Self {
        Self::Settling { since: now, most: arrived }
    }

    /// The next rate, bit/s.
    pub(super) fn next(&mut self, now: Instant, rate: f64, path: &RoundTrips, counts: &Counts) -> Next {
        let least = SHORTEST.max(path.smoothed / PART);
        match self {
            Self::Growing(grown) => {
                if let Some(compared) = counts.compare_latest(least.max(telling_time(rate)), path)
                    && compared.shows_overload()
                {
                    *self = Self::after_overload(now, compared.arrived);
                    return Next::Rate(compared.arrived);
                }
                let least = least.max(time_of(GROWING_PACKETS, rate));
                let Some(compared) = counts.compare_latest(least, path) else { return Next::Rate(rate) };
                let since = now - grown.unwrap_or(now);
                *grown = Some(now);
                if counts.sent_between(now.saturating_sub(least), now) < TESTED * rate {
                    return Next::Rate(rate);
                }
                let growth =
                    libm::pow(GROWTH, since.as_secs_f64() / path.smoothed.max(SHORTEST_ROUND_TRIP).as_secs_f64())
                        .min(GROWTH);
                Next::Rate((rate * growth).min(GROWTH * compared.arrived).max(rate))
            }
            Self::Settling { since, most } => {
                let least = least.max(telling_time(rate)) * 2;
                // The overload still arrives until then.
                let from = *since + path.smoothed;
                if let Some(compared) = counts.compare(from, least, path) {
                    *most = most.max(compared.arrived);
                    let latest = counts.compare_latest(least, path);
                    if latest.is_some_and(|latest| latest.arrived < FALLEN * *most) {
                        return Next::Found(*most);
                    }
                }
                let longest = (path.smoothed * LONGEST_SETTLING.0).max(LONGEST_SETTLING.1);
                if now >= *since + longest { Next::Found(*most) } else { Next::Rate(DRAINING * *most) }
            }
        }
    }
}
