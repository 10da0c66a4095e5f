//! Paths so short that computers cannot space packets as a link does: the window governs alone (departure D23).
//!
//! ```text
//! per ACK    W ← min(W + acked, 2·D·(min RTT + 2 ms), 8 MB, L);  L ← L + acked/W      (1)
//! per loss   W, L ← 8/9·W, once per round trip, and per 2 ms                          (2)
//! ends       for good after 8 losses at the smallest window, each within 0.1 s of the one before (3)
//!            for as long as, and 20 s longer than, the round trip stands 6 ms above its least, the window
//!            at its own, or L at no more than twice that                                           (4)
//! ```
//!
//! Acknowledgements come once per 10 ms or per 64 packets. A queue too short for 64 packets at once would leave one queue
//! length per 10 ms, hence (3): such a path is paced after all.
//!
//! The window of (1) makes a queue of 4 ms at most. One that stands longer is kept by others, whom a window that shrinks as
//! the delivery rate does would leave the whole link: there the rate law takes over, (4). So it does where the window is at its
//! least: alone on a path of more than 170 Mbit/s it is larger, and on a slower one it would only make a queue. And where losses
//! keep it small: it leaves in one burst, and that is what is lost (380 of 1000 Mbit/s with a queue of 84 packets).
//!
//! | here | unit |
//! | --- | --- |
//! | `W` the window, `L` what losses allow | packets |
//! | `D` the delivery rate | packets/s |

use farhaul_units::{Duration, Instant, SendPeriod};

use super::flow_control::{cwnd, set_cwnd};
use crate::{AckEvent, Control, Path};

/// A path is near below this round trip.
const NEAR: Duration = Duration::from_millis(1);
/// A near path is far again above this one: its own queue must not make it so.
const FAR: Duration = Duration::from_millis(2);
/// Time that the window stands for beside the round trip: what two computers' schedulers may be late.
const SLACK: Duration = Duration::from_millis(2);
/// Most bytes in flight: 100 Gbit/s for two thirds of a millisecond. More would only wait in the receiver's socket buffer,
/// and overflow it when the receiver is not scheduled for a moment.
const MAX_BYTES: f64 = 8_388_608.0;
/// Window after a loss, (2). Source: UDT's decrease, 1/1.125.
const DECREASE: f64 = 8.0 / 9.0;
/// Smallest window that it is cut to: what one light acknowledgement stands for.
const MIN_WINDOW: f64 = 64.0;
/// A window that losses keep as small as this leaves in one burst, which is what overflows the queue, (4).
const LOSSY_WINDOW: f64 = 2.0 * MIN_WINDOW;
/// Losses at the smallest window that end it, (3): a receiver that is not scheduled for a moment has fewer in a row.
const ENOUGH: u32 = 8;
/// So far apart they have nothing to do with each other, (3): ten acknowledgements.
const APART: Duration = Duration::from_millis(100);
/// A round trip this much above its least is not of this window's making, (4): with the least of a path that has become
/// near, and the slack twice, it would be 5 ms above.
const CROWD: Duration = Duration::from_millis(6);
/// How long it has to stand, (4): a receiver that is not scheduled is back sooner.
const CROWD_STANDS: Duration = Duration::from_millis(200);
/// How long the rate law then stays, (4): as long as a least round trip is remembered.
const CROWD_STAYS: Duration = Duration::from_secs(20);

/// The window of a near path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Near {
    holds: bool,
    /// The largest window that losses allow.
    limit: f64,
    last_cut: Instant,
    /// Losses at the smallest window, (3).
    in_vain: u32,
    /// When a queue of others began to stand; `None` while there is none.
    crowd_since: Option<Instant>,
    /// When the window came to its least, or losses made it small; `None` while it is larger.
    small_since: Option<Instant>,
    /// When one of both was last seen to have stood for long, (4).
    crowded: Option<Instant>,
}

impl Default for Near {
    fn default() -> Self {
        Self {
            holds: false,
            limit: f64::INFINITY,
            last_cut: Instant::ZERO,
            in_vain: 0,
            crowd_since: None,
            small_since: None,
            crowded: None,
        }
    }
}

impl Near {
    /// Whether the path is near.
    pub(super) fn holds(&mut self, path: &Path) -> bool {
        self.watch(path);
        let bound = if self.holds { FAR } else { NEAR };
        let short = path.min_rtt.is_some_and(|rtt| rtt < bound);
        self.holds = short && self.in_vain < ENOUGH && !self.is_crowded();
        // The next time begins anew.
        self.small_since = self.small_since.filter(|_| self.holds);
        self.holds
    }

    /// Whether this window would leave the path to others, (4).
    pub(super) fn is_crowded(&self) -> bool {
        self.crowded.is_some()
    }

    fn watch(&mut self, path: &Path) {
        let crowd = path.min_rtt.is_some_and(|least| path.round_trip_now() > least.saturating_add(CROWD));
        if has_stood(&mut self.crowd_since, crowd, path.now) {
            self.crowded = Some(path.now);
        }
        self.crowded = self.crowded.filter(|seen| path.now - *seen <= CROWD_STAYS);
    }

    pub(super) fn on_ack(&mut self, path: &Path, ack: &AckEvent, control: &mut Control) {
        control.send_period = SendPeriod::UNPACED;
        self.limit += f64::from(ack.newly_acked) / cwnd(control).max(1.0);
        let floor = path.min_rtt.unwrap_or(path.rtt);
        let filled = path.delivery_rate.map_or(0.0, |rate| rate.packets_in(floor.saturating_add(SLACK)) * 2.0);
        let most = (MAX_BYTES / f64::from(path.mss.max(1))).max(MIN_WINDOW);
        let target = filled.clamp(MIN_WINDOW, most).min(self.limit);
        set_cwnd(path, control, (cwnd(control) + f64::from(ack.newly_acked)).min(target));
        let small = cwnd(control) <= MIN_WINDOW || self.limit <= LOSSY_WINDOW;
        if has_stood(&mut self.small_since, small && !path.application_limited, path.now) {
            self.crowded = Some(path.now);
        }
    }

    pub(super) fn on_loss(&mut self, path: &Path, control: &mut Control) {
        let since = path.now - self.last_cut;
        if since > path.rtt.max(SLACK) {
            self.last_cut = path.now;
            let smallest = cwnd(control) <= MIN_WINDOW / DECREASE;
            self.in_vain = if smallest && since <= APART { self.in_vain + 1 } else { 0 };
            let cut = (cwnd(control) * DECREASE).max(MIN_WINDOW).min(cwnd(control));
            self.limit = cut;
            set_cwnd(path, control, cut);
        }
    }
}

/// Whether something `stands` for long, which has stood since `since`.
fn has_stood(since: &mut Option<Instant>, stands: bool, now: Instant) -> bool {
    *since = since.or(Some(now)).filter(|_| stands);
    since.is_some_and(|since| now - since >= CROWD_STANDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYN: Duration = Duration::from_millis(10);

    fn path(micros: u64) -> Path {
        Path {
            min_rtt: Some(Duration::from_micros(micros)),
            rtt: Duration::from_micros(micros),
            max_window: 100_000,
            mss: 1_500,
            ..Path::default()
        }
    }

    #[test]
    fn a_near_path_does_not_become_far_by_a_little_queue() {
        let mut near = Near::default();
        assert!(near.holds(&path(900)));
        assert!(near.holds(&path(1_900)));
        assert!(!near.holds(&path(2_100)));
        assert!(!near.holds(&path(1_900)));
    }

    /// After how many losses, `apart` from each other and beginning at 1000 packets, it does not hold any longer.
    fn losses_that_end_it(apart: Duration) -> Option<u32> {
        let (mut near, mut control) = (Near::default(), Control::initial());
        let mut lossy = path(100);
        set_cwnd(&lossy, &mut control, 1_000.0);
        (1..=100).find(|_| {
            lossy.now += apart;
            near.on_loss(&lossy, &mut control);
            !near.holds(&lossy)
        })
    }

    #[test]
    fn losses_at_the_smallest_window_show_a_queue_that_needs_pacing() {
        // 23 cuts lead from 1000 packets to less than 72.
        assert_eq!(losses_that_end_it(Duration::from_millis(10)), Some(23 + ENOUGH));
        assert_eq!(losses_that_end_it(Duration::from_secs(1)), None, "each for itself");
    }

    #[test]
    fn a_queue_of_others_calls_for_the_rate_law_until_it_is_long_gone() {
        let mut near = Near::default();
        let mut at = |round_trip_ms, millis| {
            let now = Instant::ZERO + Duration::from_millis(millis);
            near.holds(&Path { now, rtt: Duration::from_millis(round_trip_ms), ..path(500) })
        };
        assert!(at(5, 0) && at(5, 1_000), "its own");
        assert!(at(9, 2_000) && at(9, 2_199), "for a moment");
        assert!(!at(9, 2_200) && !at(9, 30_000));
        assert!(!at(2, 30_010) && !at(2, 50_000) && at(2, 50_001));
    }

    #[test]
    fn a_window_that_stays_at_its_least_calls_for_it_too_and_each_time_anew() {
        let (mut near, mut control) = (Near::default(), Control::initial());
        let mut now = Instant::ZERO;
        let mut ends = |packets_per_second, application_limited| {
            let rate = Some(farhaul_units::PacketRate::new(packets_per_second));
            (0..100).find(|_| {
                now += SYN;
                let path = Path { now, delivery_rate: rate, application_limited, ..path(300) };
                near.on_ack(&path, &AckEvent { newly_acked: 64, ..AckEvent::default() }, &mut control);
                let held = near.holds(&path);
                if !held {
                    now += CROWD_STAYS + SYN;
                    near.holds(&Path { now, ..path });
                }
                !held
            })
        };
        assert_eq!(ends(6_400.0, false), Some(20), "64 packets in 10 ms");
        assert_eq!(ends(6_400.0, false), Some(20), "again, when the path has been left alone for long");
        assert_eq!(ends(6_400.0, true), None, "the application has no more to send");
        assert_eq!(ends(83_000.0, false), None, "1 Gbit/s");
    }

    #[test]
    fn a_window_that_losses_keep_small_calls_for_it_too() {
        let (mut near, mut control) = (Near::default(), Control::initial());
        let mut path = Path { delivery_rate: Some(farhaul_units::PacketRate::new(83_000.0)), ..path(900) };
        set_cwnd(&path, &mut control, 100.0);
        let ends = (0..100).find(|round| {
            path.now += SYN;
            if round % 5 == 0 {
                near.on_loss(&path, &mut control);
            }
            near.on_ack(&path, &AckEvent { newly_acked: 64, ..AckEvent::default() }, &mut control);
            !near.holds(&path)
        });
        assert_eq!(ends, Some(20), "cut to 64 to 90 packets every 50 ms");
    }

    #[test]
    fn a_loss_cuts_once_per_round_trip_and_the_window_stays_bounded() {
        let (mut near, mut control) = (Near::default(), Control::initial());
        let mut fast = path(100);
        fast.delivery_rate = Some(farhaul_units::PacketRate::new(5e6));
        fast.now = Instant::ZERO + Duration::from_secs(1);
        for _ in 0..1_000 {
            near.on_ack(&fast, &AckEvent { newly_acked: 64, ..AckEvent::default() }, &mut control);
        }
        assert!((cwnd(&control) - MAX_BYTES / 1_500.0).abs() < 1.0);
        near.on_loss(&fast, &mut control);
        near.on_loss(&fast, &mut control);
        assert!((cwnd(&control) - MAX_BYTES / 1_500.0 * DECREASE).abs() < 1.0);
    }
}
