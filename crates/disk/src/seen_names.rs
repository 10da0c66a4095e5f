//! The names that a source has in each directory, noted until the directory is complete. Of each directory, memory holds the
//! place of its last name alone. Each record has the place of the name before it. Hard links are noted late, so names need not ascend.

use std::collections::BTreeMap;

use farhaul_session::{Component, Failure, MAX_NAME, Records, RelPath, Scratch};

/// Bytes before a name: the place of the record before it and one, or zero, and its length.
const HEADER: usize = 8 + 1;

#[derive(Debug, Default)]
pub(super) struct SeenNames {
    records: Records,
    /// The last record of each directory that is not complete.
    last: BTreeMap<RelPath, u64>,
}

impl SeenNames {
    /// Notes a name.
    pub(super) fn note(
        &mut self,
        directory: RelPath,
        name: &Component,
        scratch: impl FnOnce() -> Result<Box<dyn Scratch>, Failure>,
    ) -> Result<(), Failure> {
        let before = self.last.get(&directory).map_or(0, |place| place + 1);
        let bytes = name.as_bytes();
        let length = u8::try_from(bytes.len()).unwrap_or(u8::MAX);
        let place = self.records.push(&[&before.to_be_bytes()[..], &[length], bytes].concat(), scratch)?;
        self.last.insert(directory, place);
        Ok(())
    }

    /// Takes the last name of a directory that is complete.
    pub(super) fn take(&mut self, directory: &RelPath) -> Option<u64> {
        self.last.remove(directory)
    }

    /// These names, which ascend, without those from the record `last` backwards. Of those, `unlisted` gets each that is not among them.
    pub(super) fn without(
        &self,
        mut last: Option<u64>,
        mut names: Vec<Component>,
        mut unlisted: impl FnMut(&[u8]),
    ) -> Result<Vec<Component>, Failure> {
        let mut is_seen = vec![false; names.len()];
        let mut record = [0; HEADER + MAX_NAME];
        while let Some(place) = last {
            let count = self.records.read(place, &mut record)?;
            let [a, b, c, d, e, f, g, h, length, ..] = record;
            let before = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
            let seen = &record[HEADER..count.min(HEADER + usize::from(length))];
            match names.binary_search_by(|name| name.as_bytes().cmp(seen)) {
                Ok(index) => is_seen[index] = true,
                Err(_) => unlisted(seen),
            }
            last = before.checked_sub(1);
        }
        let mut is_seen = is_seen.into_iter();
        names.retain(|_| is_seen.next() == Some(false));
        Ok(names)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::directory::Directory;
    use crate::scratch::scratch_in;

    fn component(number: u16, long: bool) -> Component {
        let tail = if long { "x".repeat(240) } else { String::new() };
        Component::new(format!("{number:05}{tail}").as_bytes()).unwrap()
    }

    /// Ten times what is kept in memory. Of two directories that take turns, each keeps its own names.
    #[test]
    fn names_beyond_memory_are_on_the_disk_and_found_again() {
        let here = Directory::open(&std::env::temp_dir()).unwrap();
        let (mut seen, mut files) = (SeenNames::default(), 0);
        let [one, other] = [b"one", b"two"].map(|name| RelPath::parse(name).unwrap());
        for number in 0..11_000 {
            let directory = if number % 3 == 0 { &other } else { &one };
            let scratch = || {
                files += 1;
                scratch_in(&here, None)
            };
            seen.note(directory.clone(), &component(number, true), scratch).unwrap();
        }
        assert!(seen.records.len() > 10 << 18 && files == 1 && seen.last.len() == 2);
        let all: Vec<_> = (0..12_000).map(|number| component(number, true)).collect();
        let last = seen.take(&other);
        let left = seen.without(last, all, |_| unreachable!("all are listed")).unwrap();
        assert_eq!(left.len(), 12_000 - 11_000_usize.div_ceil(3));
        assert!(!left.contains(&component(999, true)) && left.contains(&component(998, true)));
        assert_eq!((seen.take(&other), seen.last.len()), (None, 1));
    }

    proptest! {
        /// Against a simple model: a set.
        #[test]
        fn names_without_the_noted_ones_are_those_of_a_set(
            noted in proptest::collection::btree_set(0u16..60, 0..40).prop_flat_map(|noted| Just(Vec::from_iter(noted)).prop_shuffle()),
            there in proptest::collection::btree_set(0u16..60, 0..40),
        ) {
            let mut seen = SeenNames::default();
            for &number in &noted {
                seen.note(RelPath::root(), &component(number, false), || unreachable!("few")).unwrap();
            }
            let last = seen.take(&RelPath::root());
            let components = |numbers: &mut dyn Iterator<Item = &u16>| -> Vec<_> {
                numbers.map(|&number| component(number, false)).collect()
            };
            let mut unlisted = BTreeSet::new();
            let note = |name: &[u8]| assert!(unlisted.insert(Component::new(name).unwrap()));
            let left = seen.without(last, components(&mut there.iter()), note).unwrap();
            let noted = BTreeSet::from_iter(noted);
            prop_assert_eq!(left, components(&mut there.difference(&noted)));
            prop_assert_eq!(Vec::from_iter(unlisted), components(&mut noted.difference(&there)));
        }
    }
}
