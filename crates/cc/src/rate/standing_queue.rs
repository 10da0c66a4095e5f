//! How long a queue has stood on the path, and whether others keep it.
//!
//! A flow that sends no more than arrives sees its own queue drain. One that goes on standing is fed by others, which shows on
//! any path, also where packets come in groups and pairs of them tell nothing about the link. Whoever has found them counts
//! on them for a while, then looks again as if alone: a flow that leads beside others keeps its own queue standing, too.
//!
//! A queue that goes on growing meanwhile is fed by others as well, and that shows sooner. It is weaker evidence, since round trips
//! grow for other reasons, too: for flows that know nothing better. While others are counted on neither is looked at: the flow then makes
//! its own queue grow and stand, and would find itself.

use farhaul_units::{Duration, Instant};

use super::link_class::pairs_say_nothing;
use super::loss_cause::{is_raised, raise};
use super::syn::SYN_INTERVAL;
use crate::Path;

/// A queue that has stood for so long without a break is kept by others. One flow's own drained after 0.4 s at 16 ms and 1.1 s
/// at 110 ms, with real hosts on an emulated network.
const LONG: Duration = Duration::from_secs(2);
/// And for so many round trips, of the longest meanwhile: as long as a flow alone takes to drain that (growth.rs).
const LONG_ROUNDS: u32 = 20;
/// After so long without a look nobody knows whether the queue stood meanwhile: after a pause of the application it would at once
/// have done so for long.
const SILENCE: Duration = Duration::from_secs(1);
const SILENT_ROUNDS: u32 = 10;
/// How long others are counted on then: as long as a least round trip is remembered. TCP's sawtooth lets the queue drain for a
/// moment every few seconds, and for two seconds after each the flow took itself to be alone and grew by nothing: half of the
/// time, beside two of Reno (A16, emulated).
const OTHERS_STAY: Duration = Duration::from_secs(20);
/// A queue that has grown by so many times what makes one visible, since the flow came down to what arrives, is fed by others. TCP
/// and flows that fill a queue of 50 ms until it overflows do not let it stand for two seconds: one of ten that joined two others there
/// stayed at 24 to 60 of 1000 Mbit/s (D4, emulated).
const GROWN: u32 = 4;
/// If it stays so long: a host that stood still makes up for it in a burst, whose queue drains at once (growth.rs). With half as much
/// growth and no time the flow to Canarie led for twenty seconds after such bursts (A14, emulated: 570 and 573 of 580 Mbit/s).
const STAYS: Duration = Duration::from_millis(500);
/// The flow comes down when a queue is first proven, and what it had sent before has arrived when that happens the second time.
const CAME_DOWN: u32 = 2;

/// How long a queue has stood.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct QueueWatch {
    looked: Instant,
    /// When it began to stand.
    began: Option<Instant>,
    /// When that was last proven; before it was, when it began.
    since: Instant,
    /// How often.
    proofs: u32,
    /// Others are counted on until then.
    others_until: Instant,
    /// The shortest round trip since the flow has come down, and the longest since it began; both only while no others are
    /// counted on.
    shortest: Option<Duration>,
    longest: Duration,
    /// Since when it is seen to have grown.
    grown: Option<Instant>,
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
        let raised = is_raised(path);
        let silence = path.now - self.looked;
        if !raised || silence > SILENCE.max(path.rtt.saturating_mul(SILENT_ROUNDS)) {
            *self = Self { others_until: self.others_until, ..Self::default() };
        }
        self.looked = path.now;
        if !raised {
            return Queue::None;
        }
        let began = *self.began.get_or_insert_with(|| {
            self.since = path.now;
            path.now
        });
        // The receiver's speed is smoothed over some ten acknowledgements.
        let anew = path.now - self.since >= path.rtt.saturating_add(SYN_INTERVAL * 10);
        if anew {
            self.since = path.now;
            self.proofs += 1;
        }
        if self.is_kept_by_others(path) {
            (self.shortest, self.longest, self.grown) = (None, Duration::ZERO, None);
        } else if self.has_stood(began, path) || self.has_grown(path) {
            self.others_until = path.now + OTHERS_STAY;
        }
        match self.proofs {
            0 => Queue::New,
            _ if anew => Queue::Proven,
            _ => Queue::Standing,
        }
    }

    fn has_stood(&mut self, began: Instant, path: &Path) -> bool {
        self.longest = self.longest.max(path.rtt);
        path.now - began.max(self.others_until) > LONG.max(self.longest.saturating_mul(LONG_ROUNDS))
    }

    fn has_grown(&mut self, path: &Path) -> bool {
        if self.proofs < CAME_DOWN || !pairs_say_nothing(path) {
            return false;
        }
        let (now, Some(least)) = (path.round_trip_now(), path.min_rtt) else { return false };
        let far = raise(least) * GROWN;
        let shortest = self.shortest.map_or(now, |shortest| shortest.min(now));
        self.shortest = Some(shortest);
        if now <= shortest.saturating_add(far) {
            self.grown = None;
            return false;
        }
        path.now - *self.grown.get_or_insert(path.now) >= STAYS
    }

    /// Whether others keep the queue, or did of late.
    pub(super) fn is_kept_by_others(&self, path: &Path) -> bool {
        path.now < self.others_until
    }
}

#[cfg(test)]
mod tests {
    use farhaul_units::PacketRate;

    use super::*;

    /// A watch that looks once per SYN interval, on a path of 50 ms of which pairs say nothing: 3 ms make a queue visible.
    struct Look {
        watch: QueueWatch,
        path: Path,
    }

    impl Look {
        fn new() -> Self {
            let path = Path {
                min_rtt: Some(Duration::from_millis(50)),
                capacity: Some(PacketRate::new(1e6)),
                ..Path::default()
            };
            Self { watch: QueueWatch::default(), path }
        }

        /// What the look at `millis` shows if the round trip is `rtt` ms.
        fn at(&mut self, millis: u64, rtt: u64) -> Queue {
            (self.path.now, self.path.rtt) =
                (Instant::ZERO + Duration::from_millis(millis), Duration::from_millis(rtt));
            self.watch.on_syn(&self.path)
        }

        /// When others are first counted on, in ms, between `from` and `to`, if the round trip is then `rtt(millis)` ms.
        fn finds_others(&mut self, from: u64, to: u64, rtt: impl Fn(u64) -> u64) -> Option<u64> {
            (from..to).step_by(10).find(|millis| {
                self.at(*millis, rtt(*millis));
                self.counts_on_others()
            })
        }

        fn counts_on_others(&self) -> bool {
            self.watch.is_kept_by_others(&self.path)
        }
    }

    #[test]
    fn a_queue_is_new_for_a_round_trip_then_proven_and_again_after_each_further_one() {
        let mut look = Look::new();
        let seen: Vec<Queue> = (0..50).map(|syn| look.at(syn * 10, 60)).collect();
        assert!(seen[..16].iter().all(|queue| *queue == Queue::New));
        let proven: Vec<usize> = (0..50).filter(|syn| seen[*syn] == Queue::Proven).collect();
        assert_eq!(proven, [16, 32, 48]);
        assert!(seen[17..32].iter().all(|queue| *queue == Queue::Standing));
    }

    #[test]
    fn a_queue_that_does_not_drain_is_kept_by_others() {
        assert_eq!(Look::new().finds_others(0, 9_000, |_| 60), Some(2_010));
        let drained = |millis| if millis == 1_990 { 51 } else { 60 };
        assert_eq!(Look::new().finds_others(0, 9_000, drained), Some(4_010), "counted from when it came again");
    }

    #[test]
    fn a_long_queue_has_the_time_that_a_flow_alone_takes_to_drain_it() {
        assert_eq!(Look::new().finds_others(0, 9_000, |_| 150), Some(3_010), "20 round trips");
        // A twentieth of the time.
        let draining = |millis: u64| 200_u64.saturating_sub(millis / 20).max(51);
        assert_eq!(Look::new().finds_others(0, 9_000, draining), None);
    }

    #[test]
    fn who_has_found_others_counts_on_them_for_twenty_seconds_and_then_looks_again() {
        let mut look = Look::new();
        assert_eq!(look.finds_others(0, 9_000, |_| 60), Some(2_010));
        // Whatever the queue does meanwhile.
        for millis in (2_020..22_010).step_by(10) {
            look.at(millis, if millis < 9_000 { 51 } else { 60 + millis / 500 });
            assert!(look.counts_on_others());
        }
        assert_eq!(look.finds_others(22_010, 40_000, |_| 60), Some(24_020));
    }

    #[test]
    fn a_queue_that_grows_after_it_was_proven_is_fed_by_others() {
        // 50 ms per second; 12 ms show after 260, and half a second later that they stay.
        let grows = |millis: u64| 60 + millis.saturating_sub(400) / 20;
        assert_eq!(Look::new().finds_others(0, 2_000, grows), Some(1_160));
        // Bursts of 20 ms, half of whose queue has drained after 350 ms.
        let burst = |at: u64, now: u64| now.checked_sub(at).map_or(0, |since| 20 >> (since / 350));
        let bursts = |millis| 60 + burst(500, millis) + burst(1_100, millis);
        assert_eq!(Look::new().finds_others(0, 2_000, bursts), None);
        assert_eq!(
            Look::new().finds_others(0, 2_000, |millis| 60 + 20 * u64::from(millis < 100)),
            None,
            "while it was new"
        );
        let mut look = Look::new();
        look.path.capacity = Some(PacketRate::new(83_000.0));
        assert_eq!(look.finds_others(0, 2_000, grows), None, "pairs say better what the link carries");
    }

    #[test]
    fn a_flow_that_makes_its_own_queue_grow_beside_others_does_not_find_itself() {
        let mut look = Look::new();
        assert_eq!(look.finds_others(0, 2_000, |millis| 60 + millis / 20), Some(1_100));
        assert_eq!((look.at(21_090, 250), look.counts_on_others()), (Queue::New, true));
        assert_eq!(look.finds_others(21_100, 24_000, |millis| 250 - (millis - 21_100) / 20), None, "it drains");
    }

    #[test]
    fn what_drains_begins_anew_and_so_does_what_nobody_has_looked_at() {
        let mut look = Look::new();
        look.finds_others(0, 200, |_| 60);
        assert_eq!((look.at(200, 51), look.at(210, 60)), (Queue::None, Queue::New));
        look.finds_others(210, 420, |_| 60);
        assert_eq!((look.at(1_400, 60), look.at(2_410, 60)), (Queue::Proven, Queue::New), "a second");
    }
}
