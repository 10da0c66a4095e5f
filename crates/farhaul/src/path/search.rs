//! The search for the largest packet that passes.

use std::collections::BTreeSet;

use super::PathMtu;

/// Sizes that links and tunnels have, in bytes: IPv6 at least, VPNs, PPPoE, Ethernet, jumbo frames.
const USUAL: [u32; 12] = [1_280, 1_400, 1_412, 1_420, 1_440, 1_450, 1_472, 1_480, 1_492, 1_500, 8_900, 9_000];
/// Sizes of one round.
const SIZES: u32 = 12;

/// Which sizes passed so far.
#[derive(Debug)]
pub(super) struct Search {
    most: u32,
    /// Smallest size that can be asked.
    least: u32,
    passes: Option<u32>,
    fails: Option<u32>,
}

impl Search {
    /// A search among packets of `least` to `most` bytes.
    pub(super) const fn new(least: u32, most: u32) -> Self {
        Self { most, least, passes: None, fails: None }
    }

    /// The sizes to ask next; none once the answer is exact. `expected`: what the system expects to pass.
    pub(super) fn next(&self, expected: Option<u32>) -> Vec<u32> {
        let (low, high) = (self.passes.map_or(self.least, |passes| passes + 1), self.fails.unwrap_or(self.most + 1));
        if low >= high {
            return Vec::new();
        }
        let mut sizes: BTreeSet<u32> = expected.into_iter().filter(|size| (low..high).contains(size)).collect();
        if self.passes.is_none() && self.fails.is_none() {
            sizes.extend(USUAL.into_iter().filter(|size| (low..high).contains(size)));
            sizes.extend([low, high - 1]);
        } else {
            let step = (high - low).div_ceil(SIZES).max(1);
            sizes.extend((low..high).step_by(step as usize));
        }
        sizes.into_iter().collect()
    }

    /// Takes the sizes of a round, and those that were answered.
    pub(super) fn take(&mut self, asked: &[u32], answered: &BTreeSet<u32>) {
        self.passes = self.passes.max(answered.last().copied());
        let passes = self.passes.unwrap_or(0);
        let failed = asked.iter().copied().filter(|size| *size > passes).min();
        self.fails = match (self.fails, failed) {
            (Some(before), Some(now)) => Some(before.min(now)),
            (before, now) => before.or(now),
        };
    }

    /// The result so far; `None` if nothing passed.
    pub(super) fn found(&self) -> Option<PathMtu> {
        self.passes.map(|passes| PathMtu { passes, fails: self.fails })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches a path that carries `mtu` bytes. Returns the result and the number of rounds.
    fn search(least: u32, most: u32, mtu: u32, expected: Option<u32>) -> (Option<PathMtu>, usize) {
        let mut search = Search::new(least, most);
        for round in 0.. {
            let sizes = search.next(expected);
            if sizes.is_empty() || round == 20 {
                return (search.found(), round);
            }
            assert!(sizes.iter().all(|size| (least..=most).contains(size)), "{sizes:?}");
            search.take(&sizes, &sizes.iter().copied().filter(|size| *size <= mtu).collect());
        }
        unreachable!()
    }

    #[test]
    fn a_path_as_wide_as_the_limit_takes_one_round() {
        for most in [1_500, 9_000] {
            assert_eq!(search(108, most, 9_000, None), (Some(PathMtu { passes: most, fails: None }), 1));
        }
    }

    #[test]
    fn every_size_is_found_exactly_in_a_few_rounds() {
        for mtu in (1_228..9_000).step_by(37) {
            let (found, rounds) = search(1_228, 9_000, mtu, None);
            assert_eq!(found, Some(PathMtu { passes: mtu, fails: Some(mtu + 1) }), "{mtu}");
            assert!(rounds <= 5, "{mtu}: {rounds} rounds");
        }
    }

    #[test]
    fn what_a_router_reported_needs_two_rounds() {
        let (found, rounds) = search(1_228, 9_000, 1_391, Some(1_391));
        assert!(found.is_some_and(|found| found.passes == 1_391) && rounds <= 4, "{rounds}");
    }

    #[test]
    fn a_path_that_carries_nothing_has_no_result() {
        assert_eq!(search(1_228, 1_500, 1_000, None).0, None);
    }
}
