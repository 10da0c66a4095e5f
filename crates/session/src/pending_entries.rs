//! Values of entries that wait for something, by the numbers of the entries.

use std::collections::VecDeque;

use crate::manifest::EntryId;

/// Values by the numbers of entries, which are mostly added and taken in ascending order. A sender has
/// thousands of them, and a tree of nodes takes twice the memory and several times the time.
#[derive(Debug)]
pub struct PendingEntries<T> {
    /// In ascending order. `None` for what was taken, if values before and behind it wait.
    slots: VecDeque<(EntryId, Option<T>)>,
    held: usize,
}

/// Slots without a value that do not matter.
const FEW: usize = 64;

impl<T> Default for PendingEntries<T> {
    fn default() -> Self {
        Self { slots: VecDeque::new(), held: 0 }
    }
}

impl<T> PendingEntries<T> {
    /// Adds the value of an entry, in the place of the one that it had. Costs little behind all others alone.
    pub fn insert(&mut self, id: EntryId, value: T) {
        if self.slots.back().is_none_or(|(last, _)| *last < id) {
            self.slots.push_back((id, Some(value)));
            self.held += 1;
            return;
        }
        match self.slots.binary_search_by_key(&id, |(its, _)| *its) {
            Ok(place) => self.held += usize::from(self.slots[place].1.replace(value).is_none()),
            Err(place) => {
                self.slots.insert(place, (id, Some(value)));
                self.held += 1;
            }
        }
    }

    /// The value of an entry.
    pub fn get(&self, id: EntryId) -> Option<&T> {
        self.slots[self.place(id)?].1.as_ref()
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self, id: EntryId) -> Option<&mut T> {
        let place = self.place(id)?;
        self.slots[place].1.as_mut()
    }

    /// Takes the value of an entry out.
    pub fn remove(&mut self, id: EntryId) -> Option<T> {
        let place = self.place(id)?;
        let value = self.slots[place].1.take()?;
        self.held -= 1;
        while self.slots.front().is_some_and(|(_, value)| value.is_none()) {
            self.slots.pop_front();
        }
        // A number that was given up is that of the next entry.
        while self.slots.back().is_some_and(|(_, value)| value.is_none()) {
            self.slots.pop_back();
        }
        // One that waits for long holds no memory for those behind it.
        if self.slots.len() > 2 * self.held + FEW {
            self.slots.retain(|(_, value)| value.is_some());
        }
        Some(value)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.held == 0
    }

    fn place(&self, id: EntryId) -> Option<usize> {
        match self.slots.front() {
            Some((first, _)) if *first == id => Some(0),
            _ => self.slots.binary_search_by_key(&id, |(its, _)| *its).ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn values_are_those_of_a_map(steps in proptest::collection::vec((0_u64..3, 0_u64..400), 0..800)) {
            let (mut entries, mut map, mut next) = (PendingEntries::default(), BTreeMap::new(), 0);
            for (kind, number) in steps {
                if kind == 0 {
                    next = if number < 20 { number } else { next + 1 + number % 3 };
                    entries.insert(EntryId(next), number);
                    map.insert(next, number);
                } else {
                    prop_assert_eq!(entries.get(EntryId(number)), map.get(&number));
                    prop_assert_eq!(entries.remove(EntryId(number)), map.remove(&number));
                }
                prop_assert_eq!(entries.is_empty(), map.is_empty());
            }
        }
    }

    #[test]
    fn a_number_that_was_given_up_is_that_of_the_next_entry() {
        let mut entries = PendingEntries::default();
        entries.insert(EntryId(0), "first");
        for value in ["given up", "second"] {
            entries.insert(EntryId(1), value);
            assert_eq!(entries.remove(EntryId(1)), Some(value));
        }
        assert_eq!((entries.remove(EntryId(0)), entries.is_empty()), (Some("first"), true));
    }

    #[test]
    fn an_entry_that_waits_for_ever_holds_no_memory_for_others() {
        let mut entries = PendingEntries::default();
        for number in 0..100_000 {
            entries.insert(EntryId(number), ());
            if number > 0 {
                assert_eq!(entries.remove(EntryId(number)), Some(()));
            }
            assert!(entries.slots.len() <= FEW + 3);
        }
        assert_eq!((entries.get(EntryId(0)), entries.get(EntryId(7))), (Some(&()), None));
    }
}
