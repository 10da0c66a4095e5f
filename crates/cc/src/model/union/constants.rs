//! The constants that several parts of the law use, and what follows from the path alone.

use farhaul_units::Duration;

use crate::controller::Path;
use crate::rate::syn::SYN_INTERVAL;

/// g, 1/s. Differences of two flows fall by e in 2/(g·√2) = 2.8 s, if loops are short. In a loop of 2τ, both add a queue of 14 ms.
pub(super) const GROWTH: f64 = 0.5;
/// β: flows that share use (1 + β)/2 = 98 % of the link.
pub(super) const BETA: f64 = 0.96;
/// τ, s: half of the longest stable loop.
pub(super) const TAU: f64 = 0.1;
/// F: share of a known link that a sole flow takes. The rest drains chance queues.
pub(super) const FULL: f64 = 0.99;
/// Two measurements of a rate agree if they differ by less than this share.
pub(super) const AGREE: f64 = 0.1;
/// q*, s: schedulers and timers of hosts delay packets by up to this.
pub(super) const VISIBLE: f64 = 2e-3;
/// q* in multiples of j. Delays by jitter in both directions, each uniform, lie within 4.3 times their mean difference.
pub(super) const SPREAD: f64 = 4.0;
/// q* in packets, the shortest burst, and packets per max(loop, τ) at the least: two probe pairs.
pub(super) const PAIRS: f64 = 4.0;
/// Largest depth of a drain.
pub(super) const HALF: f64 = 0.5;
/// s: the longest loop for UDT. A queue that outlives it is others', its absence means free capacity, a competition
/// looks for flows of this law as often, and crowds that begin together start up within it.
pub(super) const PATIENCE: f64 = 1.0;
/// Pace as a multiple of W/RTT. Source: Linux (tcp_pacing_ca_ratio).
pub(super) const PACING: f64 = 1.2;
/// Window beyond what the law has, since a quarter of an RTT passes before a receipt.
pub(super) const RECEIPTS: f64 = 1.25;
/// Catch-up speed of a late host.
pub(super) const CATCH_UP_PACE: f64 = 1.1;
/// Window as a multiple of what the rate fills.
pub(super) const WINDOW_GAIN: f64 = 2.0;
/// Packets beyond.
pub(super) const HEADROOM: f64 = 16.0;
/// How long an observation counts: longer than queues stand, shorter than routes do.
pub(super) const MEMORY: Duration = Duration::from_secs(10);
/// ε: the first failure is exceeded by more than noise and than what growth regains in one episode.
pub(super) const BEYOND: f64 = 0.05;
/// Share of packets that a path may lose. Source: BBRv3 (BBRLossThresh).
pub(super) const TOLERATED: f64 = 0.02;
/// Loops in which the rate does not grow after a lossy round: reports of the event are over then.
pub(super) const LOSSY_LOOPS: u32 = 3;
/// Share of a link that one of many flows has at most.
pub(super) const SMALL: f64 = 1.0 / 16.0;

/// Time in which a change of the rate comes back as a measurement.
pub(super) fn round(path: &Path) -> Duration {
    path.rtt.saturating_add(SYN_INTERVAL)
}

/// The same, s.
pub(super) fn loop_time(path: &Path) -> f64 {
    round(path).as_secs_f64()
}

/// The lowest rate.
pub(super) fn slowest(path: &Path) -> f64 {
    PAIRS / loop_time(path).max(TAU)
}
