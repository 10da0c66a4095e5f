//! The start of a search for the rate: grow until the path carries no more, then see what it carries.
//!
//! ```text
//! grow    r ← r·4^(Δt/RTT), at most 4·arrived           until arrived < 0.8·sent, whatever the delay
//! settle  r ← 0.8·arrived, and note the most that arrives   until less arrives
//! found   r ← the most that arrived, if a queue was seen, or a second overload shows less than 1.5 times as much
//! ```
//!
//! On a dedicated channel an overload for one RTT costs nothing but repetitions: the link is full all the time. So a
//! fast start is better than a gentle one. While the queue of the overload empties, arrivals show the capacity. If there
//! was no queue, the pause of a host may have been the reason, and the rate grows again. All of this is ours.

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
/// A queue empties if more arrives than leaves, by this factor. Without one, what arrives is what leaves.
const EMPTYING: f64 = 1.1;
/// The path carries what arrived if an overload after that shows less than this multiple.
const CONFIRMED: f64 = 1.5;
/// Longest time to wait for an empty queue, in RTTs and at least so long. A queue may be far longer than the path.
const LONGEST_SETTLING: (u32, Duration) = (4, Duration::from_secs(2));
/// If nothing arrives at all, the growth begins anew after this time and an RTT.
const OUTAGE: Duration = Duration::from_millis(100);
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

/// The start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start {
    state: StartState,
    /// Where the growth begins, bit/s.
    first: f64,
    /// The most that arrived at earlier overloads, bit/s.
    before: Option<f64>,
}

#[derive(Clone, Copy, Debug)]
enum StartState {
    /// The rate grows. When it last did; `None` before the first feedback.
    Growing(Option<Instant>),
    /// The overload drains since then. `most` is the most that arrived, bit/s, and `queued` is whether a queue emptied.
    Settling { since: Instant, most: f64, queued: bool },
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
    /// Begins at the rate `first`.
    pub(super) const fn new(first: f64) -> Self {
        Self { state: StartState::Growing(None), first, before: None }
    }

    /// An overload, of which so much arrives, ends now.
    pub(super) const fn after_overload(now: Instant, arrived: f64) -> Self {
        Self { state: StartState::Settling { since: now, most: arrived, queued: false }, first: arrived, before: None }
    }

    /// The next rate, bit/s.
    pub(super) fn next(&mut self, now: Instant, rate: f64, path: &RoundTrips, counts: &Counts) -> Next {
        let least = SHORTEST.max(path.smoothed / PART);
        match &mut self.state {
            StartState::Growing(grown) => {
                if let Some(compared) = counts.compare_latest(least.max(telling_time(rate)), path)
                    && compared.shows_overload()
                {
                    self.state = StartState::Settling { since: now, most: compared.arrived, queued: false };
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
            StartState::Settling { since, most, queued } => {
                let least = least.max(telling_time(rate)) * 2;
                // The overload still arrives until then.
                let from = *since + path.smoothed;
                let mut is_empty = now >= *since + (path.smoothed * LONGEST_SETTLING.0).max(LONGEST_SETTLING.1);
                if let Some(compared) = counts.compare(from, least, path) {
                    *most = most.max(compared.arrived);
                    *queued |= compared.arrived > EMPTYING * compared.sent;
                    let latest = counts.compare_latest(least, path);
                    is_empty |= latest.is_some_and(|latest| latest.arrived < FALLEN * *most);
                }
                is_empty |= *most == 0.0 && now >= from + OUTAGE;
                let (most, queued) = (*most, *queued);
                if is_empty { self.settled(most, queued) } else { Next::Rate(DRAINING * most) }
            }
        }
    }

    /// The overload is over.
    fn settled(&mut self, most: f64, queued: bool) -> Next {
        let before = self.before.replace(self.before.unwrap_or(0.0).max(most));
        if queued || before.is_some_and(|before| most < CONFIRMED * before) {
            return Next::Found(before.unwrap_or(0.0).max(most));
        }
        self.state = StartState::Growing(None);
        Next::Rate(most.max(self.first))
    }
}
