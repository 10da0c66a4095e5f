//! Virtual time: the earliest deadline, and the clock it sets.

use farhaul_units::Instant;

/// The heap position of a source without a deadline.
const ABSENT: u32 = u32::MAX;
/// Children of an entry. Four lie side by side in a cache line or two, and make the heap half as deep as two.
const CHILDREN: usize = 4;

/// A deadline before its source, so that one comparison orders both.
type Key = u128;

fn key(deadline: Instant, source: usize) -> Key {
    Key::from(deadline.as_nanos()) << 64 | source as Key
}

fn deadline_of(key: Key) -> Instant {
    Instant::from_nanos((key >> 64) as u64)
}

fn source_of(key: Key) -> usize {
    key as u64 as usize
}

/// Returns the earliest of many deadlines.
///
/// Every source (an agent's timer, a link, a sampler) owns one entry, however many packets it carries. The heap is as
/// small as the topology and does not allocate while a simulation runs. Equal deadlines come in the order of the
/// sources' indices, so that equal scenarios run equally.
#[derive(Clone, Debug, Default)]
pub struct Scheduler {
    now: Instant,
    /// A heap of deadlines and their sources, earliest first.
    heap: Vec<Key>,
    /// Each source's position in the heap.
    places: Vec<u32>,
}

impl Scheduler {
    /// A scheduler without sources, at instant zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// The current virtual time.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Adds a source and returns its index: 0, 1, 2, …
    pub fn add_source(&mut self) -> usize {
        self.places.push(ABSENT);
        self.heap.reserve(self.places.len() - self.heap.len());
        self.places.len() - 1
    }

    /// Sets the deadline of `source`; `None` for none. A deadline in the past is due now.
    pub fn set(&mut self, source: usize, deadline: Option<Instant>) {
        match (deadline.map(|deadline| key(deadline.max(self.now), source)), self.places[source]) {
            (None, ABSENT) => {}
            (None, place) => self.remove(place as usize),
            (Some(key), ABSENT) => {
                self.heap.push(key);
                self.rise(self.heap.len() - 1);
            }
            (Some(key), place) => {
                let place = place as usize;
                let before = core::mem::replace(&mut self.heap[place], key);
                if key < before {
                    self.rise(place);
                } else if key > before {
                    self.sink(place);
                }
            }
        }
    }

    /// Moves time to the earliest deadline not after `limit` and returns its source. The source keeps its deadline
    /// until it sets another. Without such a deadline, moves time to `limit` and returns `None`.
    pub fn advance(&mut self, limit: Instant) -> Option<usize> {
        let due = self.heap.first().copied().filter(|&key| deadline_of(key) <= limit);
        self.now = self.now.max(due.map_or(limit, deadline_of));
        due.map(source_of)
    }

    fn remove(&mut self, place: usize) {
        let last = self.heap.len() - 1;
        self.places[source_of(self.heap[place])] = ABSENT;
        self.heap.swap_remove(place);
        if place < last {
            let place = self.rise(place);
            self.sink(place);
        }
    }

    /// Moves the entry at `place` up to its position, and returns that position.
    fn rise(&mut self, mut place: usize) -> usize {
        let entry = self.heap[place];
        while place > 0 {
            let parent = (place - 1) / CHILDREN;
            if entry >= self.heap[parent] {
                break;
            }
            self.put(place, self.heap[parent]);
            place = parent;
        }
        self.put(place, entry);
        place
    }

    /// Moves the entry at `place` down to its position.
    fn sink(&mut self, mut place: usize) {
        let entry = self.heap[place];
        while let Some(child) = self.earliest_child(place) {
            if self.heap[child] >= entry {
                break;
            }
            self.put(place, self.heap[child]);
            place = child;
        }
        self.put(place, entry);
    }

    fn earliest_child(&self, place: usize) -> Option<usize> {
        let first = CHILDREN * place + 1;
        let earlier = |one, other| if self.heap[other] < self.heap[one] { other } else { one };
        if first + CHILDREN > self.heap.len() {
            return (first..self.heap.len()).reduce(earlier);
        }
        // In pairs, so that the comparisons do not wait for one another.
        Some(earlier(earlier(first, first + 1), earlier(first + 2, first + 3)))
    }

    fn put(&mut self, place: usize, entry: Key) {
        self.heap[place] = entry;
        self.places[source_of(entry)] = place as u32;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    #[test]
    fn deadlines_on_the_same_instant_come_in_the_order_of_their_sources() {
        let mut scheduler = Scheduler::new();
        let sources: Vec<usize> = (0..4).map(|_| scheduler.add_source()).collect();
        for &source in sources.iter().rev() {
            scheduler.set(source, Some(at(5)));
        }
        for &source in &sources {
            assert_eq!(scheduler.advance(Instant::FAR_FUTURE), Some(source));
            scheduler.set(source, None);
        }
    }

    #[test]
    fn time_stops_at_the_limit_and_never_goes_back() {
        let mut scheduler = Scheduler::new();
        let source = scheduler.add_source();
        scheduler.set(source, Some(at(100)));
        assert_eq!(scheduler.advance(at(50)), None);
        assert_eq!(scheduler.now(), at(50));
        scheduler.set(source, Some(at(10)));
        assert_eq!(scheduler.advance(at(60)), Some(source));
        assert_eq!(scheduler.now(), at(50), "a deadline in the past is due now");
    }

    proptest! {
        #[test]
        fn the_earliest_source_always_comes_first(
            steps in prop::collection::vec((0usize..12, prop::option::of(0u64..40)), 1..200),
        ) {
            let mut scheduler = Scheduler::new();
            let mut model = [None; 12];
            for _ in 0..model.len() {
                scheduler.add_source();
            }
            for (source, deadline) in steps {
                scheduler.set(source, deadline.map(at));
                model[source] = deadline.map(at);
                let expected = (0..12).filter_map(|i| model[i].map(|deadline| (deadline, i))).min();
                prop_assert_eq!(scheduler.clone().advance(Instant::FAR_FUTURE), expected.map(|(_, i)| i));
            }
        }
    }
}
