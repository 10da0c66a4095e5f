//! How long a queue has stood on the path, and whether others keep it.
//!
//! A flow that sends no more than arrives sees its own queue drain. One that goes on standing is fed by others, which shows on
//! any path, also where packets come in groups and pairs of them tell nothing about the link. Whoever has found them counts
//! on them for a while, then looks again as if alone: a flow that leads beside others keeps its own queue standing, too.
//!
//! A queue that grows meanwhile is fed by others as well, and that shows at once. It is weaker evidence, since round trips grow for
//! other reasons, too: for flows that know nothing better.

use farhaul_units::{Duration, Instant};

use super::loss_cause::{is_raised, raise};
use super::syn::SYN_INTERVAL;
use crate::Path;

/// A queue that has stood for so long without a break is kept by others. One flow's own drained after 0.4 s at 16 ms and 1.1 s
/// at 110 ms, with real hosts on an emulated network.
const LONG: Duration = Duration::from_secs(2);
/// And for so many round trips.
const LONG_ROUNDS: u32 = 20;
/// How long others are counted on then: as long as a least round trip is remembered. TCP's sawtooth lets the queue drain for a
/// moment every few seconds, and for two seconds after each the flow took itself to be alone and grew by nothing: half of the
/// time, beside two of Reno (A16, emulated).
const OTHERS_STAY: Duration = Duration::from_secs(20);
/// A queue that has grown by so many times what makes one visible, since the flow came down to what arrives, is fed by others. TCP
/// and flows that fill a queue of 50 ms until it overflows do not let it stand for two seconds: one of ten that joined two others there
/// stayed at 24 to 60 of 1000 Mbit/s (D4, emulated).
const GROWN: u32 = 2;

/// How long a queue has stood.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct QueueWatch {
    /// When it began to stand.
    began: Option<Instant>,
    /// When that was last proven; before it was, when it began.
    since: Instant,
    proven: bool,
    /// Others are counted on until then.
    others_until: Instant,
    /// The shortest round trip since the queue was first proven.
    shortest: Option<Duration>,
    /// The same for those who were seen to feed it.
    fed_until: Instant,
}

/// What stands on the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Queue {
    None,
    /// A queue, for less than a round trip: what is delivered may still be less than the bottleneck can do.
    New,
    /// A queue, for a round trip now: what is delivered is what the bottleneck can do.
    Proven,
    /// A queue, for longer; proven anew every round trip.
    Standing,
}

impl QueueWatch {
    /// Looks at the path, once per SYN interval.
    pub(super) fn on_syn(&mut self, path: &Path) -> Queue {
        if !is_raised(path) {
            *self = Self { others_until: self.others_until, fed_until: self.fed_until, ..Self::default() };
            return Queue::None;
        }
        let began = *self.began.get_or_insert_with(|| {
            self.since = path.now;
            path.now
        });
        let stood = path.now - began.max(self.others_until);
        if stood > LONG.max(path.rtt.saturating_mul(LONG_ROUNDS)) {
            self.others_until = path.now + OTHERS_STAY;
        }
        // The receiver's speed is smoothed over some ten acknowledgements.
        if path.now - self.since >= path.rtt.saturating_add(SYN_INTERVAL * 10) {
            self.since = path.now;
            self.proven = true;
            self.watch_growth(path);
            return Queue::Proven;
        }
        if !self.proven {
            return Queue::New;
        }
        self.watch_growth(path);
        Queue::Standing
    }

    fn watch_growth(&mut self, path: &Path) {
        let now = path.round_trip_now();
        let shortest = self.shortest.map_or(now, |shortest| shortest.min(now));
        self.shortest = Some(shortest);
        if path.min_rtt.is_some_and(|least| now > shortest.saturating_add(raise(least) * GROWN)) {
            self.fed_until = path.now + OTHERS_STAY;
        }
    }

    /// Whether others feed the queue, or did of late: weaker evidence than that they keep it.
    pub(super) fn is_fed_by_others(&self, path: &Path) -> bool {
        path.now < self.fed_until
    }

    /// Whether others keep the queue, or did of late.
    pub(super) fn is_kept_by_others(&self, path: &Path) -> bool {
        path.now < self.others_until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is seen at `millis`, on a path of 50 ms, of a round trip of `rtt` ms.
    fn look(watch: &mut QueueWatch, millis: u64, rtt: u64) -> Queue {
        watch.on_syn(&path(millis, rtt))
    }

    /// Whether others keep the queue then.
    fn kept(watch: &mut QueueWatch, millis: u64, rtt: u64) -> bool {
        look(watch, millis, rtt);
        watch.is_kept_by_others(&path(millis, rtt))
    }

    fn path(millis: u64, rtt: u64) -> Path {
        Path {
            now: Instant::ZERO + Duration::from_millis(millis),
            rtt: Duration::from_millis(rtt),
            min_rtt: Some(Duration::from_millis(50)),
            ..Path::default()
        }
    }

    #[test]
    fn a_queue_is_new_for_a_round_trip_then_proven_and_again_after_each_further_one() {
        let mut watch = QueueWatch::default();
        let seen: Vec<Queue> = (0..50).map(|syn| look(&mut watch, syn * 10, 60)).collect();
        assert!(seen[..16].iter().all(|queue| *queue == Queue::New));
        let proven: Vec<usize> = (0..50).filter(|syn| seen[*syn] == Queue::Proven).collect();
        assert_eq!(proven, [16, 32, 48]);
        assert!(seen[17..32].iter().all(|queue| *queue == Queue::Standing));
    }

    #[test]
    fn a_queue_that_does_not_drain_is_kept_by_others() {
        let mut watch = QueueWatch::default();
        assert!(!kept(&mut watch, 0, 60) && !kept(&mut watch, 2_000, 60) && kept(&mut watch, 2_001, 60));
        let mut watch = QueueWatch::default();
        assert!(!kept(&mut watch, 0, 60) && !kept(&mut watch, 1_990, 51), "it drained");
        assert!(!kept(&mut watch, 2_020, 60) && !kept(&mut watch, 4_020, 60) && kept(&mut watch, 4_021, 60));
        let mut watch = QueueWatch::default();
        assert!(
            !kept(&mut watch, 0, 150) && !kept(&mut watch, 3_000, 150) && kept(&mut watch, 3_001, 150),
            "20 round trips"
        );
    }

    #[test]
    fn who_has_found_others_counts_on_them_for_twenty_seconds_and_then_looks_again() {
        let mut watch = QueueWatch::default();
        assert!(!kept(&mut watch, 0, 60) && kept(&mut watch, 2_001, 60));
        assert!(kept(&mut watch, 2_010, 51) && kept(&mut watch, 2_020, 60) && kept(&mut watch, 22_000, 60));
        assert!(!kept(&mut watch, 22_001, 60) && !kept(&mut watch, 24_001, 60) && kept(&mut watch, 24_002, 60));
    }

    #[test]
    fn a_queue_that_grows_after_it_was_proven_is_fed_by_others() {
        let mut watch = QueueWatch::default();
        let mut fed = |millis, rtt| {
            look(&mut watch, millis, rtt);
            watch.is_fed_by_others(&path(millis, rtt))
        };
        // What makes a queue visible on a path of 50 ms are 3 ms.
        assert!(!fed(0, 60) && !fed(100, 70) && !fed(180, 72), "new, and proven");
        assert!(!fed(300, 65) && !fed(400, 71) && fed(410, 72));
        assert!(fed(500, 51) && fed(20_409, 51) && !fed(20_410, 51));
    }

    #[test]
    fn what_drains_begins_anew() {
        let mut watch = QueueWatch::default();
        for syn in 0..20 {
            look(&mut watch, syn * 10, 60);
        }
        assert_eq!((look(&mut watch, 200, 51), look(&mut watch, 210, 60)), (Queue::None, Queue::New));
    }
}
