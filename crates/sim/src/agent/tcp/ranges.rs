//! A set of segments as sorted, disjoint, non-adjacent ranges: the segments beyond the gaps, at receiver and sender.
//!
//! The size is the number of gaps, for any window. Most changes are at the ends: new data extends the last range,
//! repairs remove the first. A binary search finds other ranges.

use std::collections::VecDeque;

use crate::packet::segment::Block;

/// A set of segment numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranges {
    ranges: VecDeque<Block>,
    /// Number of segments in the set.
    len: u64,
}

impl Ranges {
    pub(super) const fn len(&self) -> u64 {
        self.len
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn clear(&mut self) {
        self.ranges.clear();
        self.len = 0;
    }

    /// The lowest range.
    pub(super) fn first(&self) -> Option<Block> {
        self.ranges.front().copied()
    }

    /// The ranges from the highest down.
    pub(super) fn descending(&self) -> impl Iterator<Item = Block> + '_ {
        self.ranges.iter().rev().copied()
    }

    /// The range that contains `seq`.
    pub(super) fn range_of(&self, seq: u64) -> Option<Block> {
        let range = *self.ranges.get(self.first_ending_after(seq))?;
        (range.start <= seq).then_some(range)
    }

    /// The first number from `seq` on that is not in the set.
    pub(super) fn first_gap(&self, seq: u64) -> u64 {
        self.range_of(seq).map_or(seq, |range| range.end)
    }

    /// How many numbers of `block` are in the set.
    pub(super) fn count_in(&self, block: Block) -> u64 {
        let from = self.first_ending_after(block.start);
        let touched = self.ranges.range(from..).take_while(|range| range.start < block.end);
        touched.map(|range| range.end.min(block.end) - range.start.max(block.start)).sum()
    }

    /// Adds `block`. Reports each part of it that was not in the set to `news`, lowest first.
    pub(super) fn insert(&mut self, block: Block, mut news: impl FnMut(Block)) {
        if block.is_empty() {
            return;
        }
        // The usual cases: the first range, a new last range, or an extension of the last range.
        match self.ranges.back_mut() {
            Some(last) if block.start >= last.start && block.start <= last.end => {
                if block.end > last.end {
                    let part = Block::new(last.end, block.end);
                    last.end = block.end;
                    self.len += part.len();
                    news(part);
                }
                return;
            }
            Some(last) if block.start < last.start => {}
            _ => {
                self.ranges.push_back(block);
                self.len += block.len();
                return news(block);
            }
        }
        self.insert_inside(block, news);
    }

    /// Adds `block`, which begins before the last range.
    fn insert_inside(&mut self, block: Block, mut news: impl FnMut(Block)) {
        // Adjacent ranges merge with the block, too.
        let from = self.ranges.partition_point(|range| range.end < block.start);
        let mut merged = block;
        let (mut to, mut position) = (from, block.start);
        while let Some(range) = self.ranges.get(to).filter(|range| range.start <= block.end) {
            if position < range.start {
                news(Block::new(position, range.start));
                self.len += range.start - position;
            }
            position = position.max(range.end);
            merged = Block::new(merged.start.min(range.start), merged.end.max(range.end));
            to += 1;
        }
        if position < block.end {
            news(Block::new(position, block.end));
            self.len += block.end - position;
        }
        if from == to {
            self.ranges.insert(from, merged);
        } else {
            self.ranges[from] = merged;
            if to - from > 1 {
                self.ranges.drain(from + 1..to);
            }
        }
    }

    /// Removes all numbers before `seq` and returns how many they were.
    pub(super) fn remove_before(&mut self, seq: u64) -> u64 {
        let before = self.len;
        while let Some(first) = self.ranges.front_mut().filter(|first| first.start < seq) {
            self.len -= first.len_before(seq);
            if first.end > seq {
                first.start = seq;
                break;
            }
            self.ranges.pop_front();
        }
        before - self.len
    }

    /// The index of the first range that ends after `seq`.
    fn first_ending_after(&self, seq: u64) -> usize {
        if self.ranges.front().is_none_or(|first| seq < first.end) {
            return 0;
        }
        self.ranges.partition_point(|range| range.end <= seq)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// The same set as a list of numbers.
    fn numbers(ranges: &Ranges) -> BTreeSet<u64> {
        ranges.ranges.iter().flat_map(|range| range.start..range.end).collect()
    }

    fn is_tidy(ranges: &Ranges) -> bool {
        let pairs = ranges.ranges.iter().zip(ranges.ranges.iter().skip(1));
        ranges.ranges.iter().all(|range| !range.is_empty()) && pairs.into_iter().all(|(a, b)| a.end < b.start)
    }

    proptest! {
        #[test]
        fn ranges_equal_the_set_of_inserted_numbers(
            steps in prop::collection::vec((0u64..120, 0u64..12, prop::option::weighted(0.1, 0u64..120)), 1..80),
        ) {
            let (mut ranges, mut model) = (Ranges::default(), BTreeSet::new());
            for (start, len, remove) in steps {
                let block = Block::new(start, start + len);
                let mut news = Vec::new();
                ranges.insert(block, |part| news.extend(part.start..part.end));
                let expected: Vec<u64> = (start..start + len).filter(|number| model.insert(*number)).collect();
                prop_assert_eq!(news, expected);
                if let Some(below) = remove {
                    let kept = model.split_off(&below);
                    prop_assert_eq!(ranges.remove_before(below), model.len() as u64);
                    model = kept;
                }
                prop_assert!(is_tidy(&ranges));
                prop_assert_eq!(&numbers(&ranges), &model);
                prop_assert_eq!(ranges.len(), model.len() as u64);
                prop_assert_eq!(ranges.first_gap(start), (start..).find(|number| !model.contains(number)).unwrap());
                let counted = Block::new(start / 2, start + len);
                let expected = (counted.start..counted.end).filter(|number| model.contains(number)).count();
                prop_assert_eq!(ranges.count_in(counted), expected as u64);
            }
        }
    }
}
