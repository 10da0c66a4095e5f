//! A set of sequence numbers inside a sliding window, one bit each.
//!
//! Loss lists and receive buffers use it. Its memory depends only on the width of the window, never on a peer's claims
//! inside it (attack B5, B7). Operations on a range cost one step per 64 packets.

use farhaul_units::{SeqNo, SeqRange};

/// Bits per word.
const WORD: u32 = 64;
/// Smallest capacity: one cache line of bits.
const MIN_CAPACITY: u32 = 512;
/// Largest capacity. A quarter of the number space keeps the order inside the window unambiguous.
pub const MAX_CAPACITY: u32 = 1 << 29;

/// A set of sequence numbers from `base` on. Bit positions are the low bits of the numbers, so sliding the window moves
/// nothing. The capacity is a power of two and therefore divides the number space evenly.
#[derive(Clone, Debug)]
pub struct SeqSet {
    /// Nothing before this number is in the set.
    base: SeqNo,
    /// No number from `base` to here (exclusive) is in the set, so the search for the first one begins here.
    first_hint: SeqNo,
    words: Vec<u64>,
    len: u32,
}

impl SeqSet {
    /// The empty set of a window that begins at `base`.
    pub const fn new(base: SeqNo) -> Self {
        Self { base, first_hint: base, words: Vec::new(), len: 0 }
    }

    /// Numbers in the set.
    pub const fn len(&self) -> u32 {
        self.len
    }

    /// Whether the set is empty.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Nothing before this number is in the set.
    pub(crate) const fn base(&self) -> SeqNo {
        self.base
    }

    /// How many numbers of `range` are in both sets.
    pub(crate) fn common(&self, other: &Self, range: SeqRange) -> u32 {
        if self.is_empty() || other.is_empty() {
            return 0;
        }
        let reach = |set: &Self| set.base.plus(set.capacity());
        let mut at = range.first.later(self.base).later(other.base);
        let end = range.last.next().earlier(reach(self)).earlier(reach(other));
        let mut common = 0;
        while at.is_before(end) {
            let in_word = at.value() % WORD;
            let take = (WORD - in_word).min(end.distance_from(at).unsigned_abs());
            let both = self.words[self.position(at).0] & other.words[other.position(at).0];
            common += (both & mask_of(in_word, in_word + take - 1)).count_ones();
            at = at.plus(take);
        }
        common
    }

    /// Bytes of memory held.
    pub fn memory(&self) -> usize {
        self.words.capacity() * size_of::<u64>()
    }

    /// Numbers that the window can hold without growing.
    fn capacity(&self) -> u32 {
        self.words.len() as u32 * WORD
    }

    /// Whether `seq` is in the set; false outside the window.
    pub fn contains(&self, seq: SeqNo) -> bool {
        match self.offset(seq) {
            Some(offset) if offset < self.capacity() => {
                let (word, bit) = self.position(seq);
                self.words[word] & bit != 0
            }
            _ => false,
        }
    }

    /// Adds one number and returns whether it is new. Numbers before the window or too far ahead are ignored.
    pub fn insert(&mut self, seq: SeqNo) -> bool {
        let Some(offset) = self.offset(seq) else { return false };
        if !self.grow_to(offset) {
            return false;
        }
        let (word, bit) = self.position(seq);
        if self.words[word] & bit != 0 {
            return false;
        }
        self.words[word] |= bit;
        self.len += 1;
        self.first_hint = self.first_hint.earlier(seq);
        true
    }

    /// Adds a range and returns how many of its numbers are new.
    pub fn insert_range(&mut self, range: SeqRange) -> u32 {
        let Some(range) = self.clip_front(range) else { return 0 };
        if !self.grow_to(range.last.distance_from(self.base).unsigned_abs()) {
            return 0;
        }
        let mut added = 0;
        self.for_each_word(range, |word, mask| {
            added += (mask & !*word).count_ones();
            *word |= mask;
        });
        self.len += added;
        if added > 0 {
            self.first_hint = self.first_hint.earlier(range.first);
        }
        added
    }

    /// Removes one number and returns whether it was in the set.
    pub fn remove(&mut self, seq: SeqNo) -> bool {
        if !self.contains(seq) {
            return false;
        }
        let (word, bit) = self.position(seq);
        self.words[word] &= !bit;
        self.len -= 1;
        true
    }

    /// Removes a range and returns how many of its numbers were in the set.
    pub fn remove_range(&mut self, range: SeqRange) -> u32 {
        let Some(range) = self.clip_front(range) else { return 0 };
        if self.words.is_empty() || self.len == 0 {
            return 0;
        }
        let Some(range) = range.clip(SeqRange::new(self.base, self.base.plus(self.capacity() - 1))) else { return 0 };
        let mut removed = 0;
        self.for_each_word(range, |word, mask| {
            removed += (mask & *word).count_ones();
            *word &= !mask;
        });
        self.len -= removed;
        removed
    }

    /// Slides the window to `base` and removes all numbers before it.
    pub fn advance(&mut self, base: SeqNo) {
        if !base.is_after(self.base) {
            return;
        }
        if self.len > 0 {
            self.remove_range(SeqRange::new(self.base, base.minus(1)));
        }
        self.base = base;
        self.first_hint = self.first_hint.later(base);
    }

    /// The first number in the set.
    pub fn first(&mut self) -> Option<SeqNo> {
        if self.len == 0 {
            return None;
        }
        let end = self.base.plus(self.capacity());
        let first = self.next_present(self.first_hint, end)?;
        self.first_hint = first;
        Some(first)
    }

    /// The first number in the set in `from..end`.
    pub fn next_present(&self, from: SeqNo, end: SeqNo) -> Option<SeqNo> {
        self.search(from, end, 0)
    }

    /// The first number in `from..end` that is not in the set; `end` if all are.
    pub fn next_absent(&self, from: SeqNo, end: SeqNo) -> SeqNo {
        self.search(from, end, u64::MAX).unwrap_or(end)
    }

    /// The first number in `from..end` whose bit differs from that of `skip`.
    fn search(&self, from: SeqNo, end: SeqNo, skip: u64) -> Option<SeqNo> {
        let mut at = from.later(self.base);
        while at.is_before(end) {
            let left = self.capacity().saturating_sub(self.offset(at)?);
            if left == 0 {
                // Nothing beyond the capacity is in the set.
                return (skip != 0).then_some(at);
            }
            let in_word = at.value() % WORD;
            let take = (WORD - in_word).min(left).min(end.distance_from(at).unsigned_abs());
            let bits = (self.words[self.position(at).0] ^ skip) & mask_of(in_word, in_word + take - 1);
            if bits != 0 {
                return Some(at.plus(bits.trailing_zeros() - in_word));
            }
            at = at.plus(take);
        }
        None
    }

    /// The runs of numbers in `from..end` that are not in the set.
    pub fn absent_runs(&self, from: SeqNo, end: SeqNo) -> impl Iterator<Item = SeqRange> + '_ {
        let mut at = from;
        std::iter::from_fn(move || {
            let first = self.next_absent(at, end);
            if !first.is_before(end) {
                return None;
            }
            let next = self.next_present(first, end).unwrap_or(end);
            at = next;
            Some(SeqRange::new(first, next.minus(1)))
        })
    }

    fn offset(&self, seq: SeqNo) -> Option<u32> {
        u32::try_from(seq.distance_from(self.base)).ok()
    }

    fn position(&self, seq: SeqNo) -> (usize, u64) {
        let slot = seq.value() & (self.capacity() - 1);
        ((slot / WORD) as usize, 1 << (slot % WORD))
    }

    fn clip_front(&self, range: SeqRange) -> Option<SeqRange> {
        let clipped = SeqRange::new(range.first.later(self.base), range.last);
        (!clipped.is_empty()).then_some(clipped)
    }

    /// Makes room for the number at `offset` from the base. Returns false beyond the largest capacity.
    #[inline]
    fn grow_to(&mut self, offset: u32) -> bool {
        offset < self.capacity() || self.grow(offset)
    }

    /// The same where there is no room yet. Apart, because each packet asks.
    #[cold]
    fn grow(&mut self, offset: u32) -> bool {
        if offset >= MAX_CAPACITY {
            return false;
        }
        let capacity = (offset + 1).next_power_of_two().max(MIN_CAPACITY);
        let old = std::mem::replace(&mut self.words, vec![0; (capacity / WORD) as usize]);
        let old_capacity = old.len() as u32 * WORD;
        // Both capacities are multiples of 64 and the window is walked word by word, so whole words move.
        let mut moved = 0;
        while moved < old_capacity {
            let seq = self.base.plus(moved);
            let in_word = seq.value() % WORD;
            let take = (WORD - in_word).min(old_capacity - moved);
            let mask = mask_of(in_word, in_word + take - 1);
            let from = ((seq.value() & (old_capacity - 1)) / WORD) as usize;
            let to = ((seq.value() & (capacity - 1)) / WORD) as usize;
            self.words[to] |= old[from] & mask;
            moved += take;
        }
        true
    }

    /// Calls `change` with each word that the range touches and the mask of its bits inside the range.
    fn for_each_word(&mut self, range: SeqRange, mut change: impl FnMut(&mut u64, u64)) {
        let mut at = range.first;
        let mut left = range.len();
        while left > 0 {
            let in_word = at.value() % WORD;
            let take = (WORD - in_word).min(left);
            let (word, _) = self.position(at);
            change(&mut self.words[word], mask_of(in_word, in_word + take - 1));
            at = at.plus(take);
            left -= take;
        }
    }
}

/// The bits `first..=last` of a word.
const fn mask_of(first: u32, last: u32) -> u64 {
    (u64::MAX << first) & (u64::MAX >> (WORD - 1 - last))
}

#[cfg(test)]
mod tests;
