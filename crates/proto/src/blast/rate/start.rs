//! The start of a search for the rate: grow until the path carries no more, then see what it carries.
//!
//! ```text
//! grow    r ← r·4^(Δt/RTT), at most 4·arrived           until arrived < 0.8·sent
//! settle  r ← arrived, and note the most that arrives   until as much arrives as is sent
//! found   r ← the most that arrived
//! ```
//!
//! On a dedicated channel an overload for one RTT costs nothing but repetitions: the link is full all the time. So a
//! fast start is better than a gentle one. While the queue of the overload empties, arrivals show the capacity. All of
//! this is ours.

use farhaul_units::{Duration, Instant};

use super::counts::Counts;

/// Growth per RTT. From 64 packets per RTT to 2 Gbit/s at 200 ms takes five RTTs.
const GROWTH: f64 = 4.0;
/// The path carries no more if less than this share of what was sent arrives.
const SATURATED: f64 = 0.8;
/// The queue of the overload is empty when no more than this share of what is sent arrives.
const EMPTY: f64 = 1.02;
/// Longest time to wait for that, in RTTs and at least so long. A queue may be far longer than the path.
const LONGEST_SETTLING: (u32, Duration) = (4, Duration::from_secs(2));
/// Shortest time of a comparison. Feedback comes every 10 ms.
const SHORTEST: Duration = Duration::from_millis(20);
/// And at least so many packets, since one more or less must not decide.
const PACKETS: f64 = 20.0;
/// Bits of a packet on the wire, about.
const PACKET_BITS: f64 = 12_000.0;
/// The rate grows only if this share of it leaves. Otherwise the application or the credit limits the sender, and the
/// path is not tested.
const TESTED: f64 = 0.5;
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

    /// The next rate, bit/s.
    pub(super) fn next(&mut self, now: Instant, rate: f64, round_trip: Duration, counts: &Counts) -> Next {
        let packets = Duration::from_secs_f64(PACKET_BITS * PACKETS / rate.max(1.0));
        let least = SHORTEST.max(round_trip / PART).max(packets);
        let latest = counts.latest().unwrap_or(now);
        let longest = (round_trip * LONGEST_SETTLING.0).max(LONGEST_SETTLING.1);
        let Some(compared) = counts.compare_latest(least, round_trip) else {
            return match self {
                Self::Settling { since, most } if now >= *since + longest => Next::Found(*most),
                _ => Next::Rate(rate),
            };
        };
        match self {
            Self::Growing(grown) => {
                // A sender that had little to send has not tested the path. An RTT and a report ago the rate was that much lower.
                let tested = compared.sent >= TESTED * rate / (GROWTH * GROWTH);
                if tested && compared.arrived < SATURATED * compared.sent {
                    *self = Self::Settling { since: now, most: compared.arrived };
                    return Next::Rate(compared.arrived);
                }
                let since = now - grown.unwrap_or(now);
                *grown = Some(now);
                if counts.sent_between(now.saturating_sub(least), now) < TESTED * rate {
                    return Next::Rate(rate);
                }
                let growth = libm::pow(GROWTH, since.as_secs_f64() / round_trip.as_secs_f64());
                Next::Rate((rate * growth).min(GROWTH * compared.arrived).max(rate))
            }
            Self::Settling { since, most } => {
                *most = most.max(compared.arrived);
                // What was sent an RTT ago was the overload until then.
                let judged = latest >= *since + round_trip + least * 2;
                if (judged && compared.arrived <= EMPTY * compared.sent) || now >= *since + longest {
                    return Next::Found(*most);
                }
                Next::Rate(rate)
            }
        }
    }
}
