//! How long a queue has stood on the path.

use farhaul_units::Instant;

use super::loss_cause::is_raised;
use super::syn::SYN_INTERVAL;
use crate::Path;

/// How long a queue has stood.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct QueueWatch {
    /// When it began to stand, or when that was last proven.
    since: Option<Instant>,
    proven: bool,
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
            *self = Self::default();
            return Queue::None;
        }
        let first = self.since.is_none();
        let since = *self.since.get_or_insert(path.now);
        // The receiver's speed is smoothed over some ten acknowledgements.
        if path.now - since >= path.rtt.saturating_add(SYN_INTERVAL * 10) {
            self.since = Some(path.now);
            self.proven = true;
            return Queue::Proven;
        }
        self.proven &= !first;
        if self.proven { Queue::Standing } else { Queue::New }
    }
}

#[cfg(test)]
mod tests {
    use farhaul_units::Duration;

    use super::*;

    /// What is seen at `millis`, on a path of 50 ms, of a round trip of `rtt` ms.
    fn look(watch: &mut QueueWatch, millis: u64, rtt: u64) -> Queue {
        watch.on_syn(&Path {
            now: Instant::ZERO + Duration::from_millis(millis),
            rtt: Duration::from_millis(rtt),
            min_rtt: Some(Duration::from_millis(50)),
            ..Path::default()
        })
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
    fn what_drains_begins_anew() {
        let mut watch = QueueWatch::default();
        for syn in 0..20 {
            look(&mut watch, syn * 10, 60);
        }
        assert_eq!((look(&mut watch, 200, 51), look(&mut watch, 210, 60)), (Queue::None, Queue::New));
    }
}
