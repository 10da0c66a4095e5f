//! The chunks of one file that are still to be sent or compared.

use std::collections::VecDeque;
use std::ops::Range;

use crate::integrity::{ChunkDigest, ChunkDigests, chunk_count, chunk_range};
use crate::manifest::Entry;

/// With so many digests, chunks are compared and sent in turns.
const MANY: usize = 1024;

/// What remains of one file. First the chunks that nobody has, then those that the receiver claims, as it tells their
/// digests.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// Number of chunks, `u64::MAX` if the end is unknown.
    count: u64,
    /// The next chunk that is looked at.
    next: u64,
    /// Chunks to send besides, which were looked at before.
    again: VecDeque<Range<u64>>,
    /// Claimed chunks at or behind `next`, ascending.
    skipped: VecDeque<Range<u64>>,
    /// Claimed chunks without a digest yet, ascending.
    unresolved: VecDeque<Range<u64>>,
    /// Claimed chunks with their digests.
    resolved: VecDeque<(u64, ChunkDigest)>,
    /// Chunks below this one were sent before the receiver's answer.
    sent_before: u64,
    /// Whether the last step sent a chunk while many could be compared.
    has_sent: bool,
    /// Whether the receiver wants the content. Before it says so, the first chunk may be sent, which is all of a small file.
    is_wanted: bool,
}

/// The next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Send this chunk.
    Send(u64),
    /// Compare this chunk with the receiver's digest.
    Compare(u64, ChunkDigest),
    /// The receiver has not said enough yet.
    Wait,
    /// Nothing remains.
    End,
}

impl Plan {
    /// Before the receiver's answer: the first chunk of a file.
    pub(super) fn unanswered(entry: &Entry) -> Self {
        let count = if entry.has_size() { chunk_count(entry.size) } else { u64::MAX };
        Self { is_wanted: !entry.has_size(), ..Self::of(count) }
    }

    fn of(count: u64) -> Self {
        Self { count, is_wanted: true, ..Self::default() }
    }

    /// The receiver wants the content but for the `claimed` chunks, in ascending ranges.
    pub(super) fn want(&mut self, claimed: &[Range<u64>]) {
        self.is_wanted = true;
        self.sent_before = self.next;
        let within = |range: &Range<u64>| range.start..range.end.min(self.count);
        self.skipped = claimed.iter().map(within).filter(|range| !range.is_empty()).collect();
        self.unresolved = claimed.iter().cloned().collect();
    }

    /// The file has this size now.
    pub(super) fn resize(&mut self, size: u64) {
        self.count = chunk_count(size);
        self.skipped.retain(|range| range.start < self.count);
        if let Some(last) = self.skipped.back_mut() {
            last.end = last.end.min(self.count);
        }
        self.again.retain(|range| range.start < self.count);
        self.again.iter_mut().for_each(|range| range.end = range.end.min(self.count));
        self.resolved.retain(|(index, _)| *index < self.count);
    }

    /// These chunks alone.
    pub(super) fn only(chunks: Vec<u64>) -> Self {
        let mut plan = Self::of(0);
        chunks.into_iter().for_each(|index| plan.send_after_all(index));
        plan
    }

    /// All of a file that changed from `old_size` to `size`. The receiver has the chunks in `digests`, and a chunk may be
    /// the same as before if its length is.
    pub(super) fn of_changed(size: u64, old_size: u64, digests: &ChunkDigests) -> Self {
        let mut plan = Self::of(chunk_count(size));
        plan.next = plan.count;
        for index in 0..plan.count {
            match digests.get(index).filter(|_| chunk_range(index, size) == chunk_range(index, old_size)) {
                Some(digest) => plan.resolved.push_back((index, digest)),
                None => plan.send_after_all(index),
            }
        }
        plan
    }

    /// The receiver tells about a claimed chunk. Returns whether it was this chunk's turn. With `most` chunks to compare, further ones
    /// are sent.
    pub(super) fn resolve(&mut self, index: u64, digest: Option<ChunkDigest>, most: usize) -> bool {
        let Some(range) = self.unresolved.front_mut().filter(|range| range.start == index) else { return false };
        range.start += 1;
        if range.is_empty() {
            self.unresolved.pop_front();
        }
        if index < self.sent_before || index >= self.count {
            // It is in flight already, or the file became shorter.
            return true;
        }
        match digest.filter(|_| self.resolved.len() < most) {
            Some(digest) => self.resolved.push_back((index, digest)),
            None => self.send_after_all(index),
        }
        true
    }

    /// A compared chunk differs.
    pub(super) fn send_after_all(&mut self, index: u64) {
        match self.again.back_mut().filter(|last| last.end == index) {
            Some(last) => last.end += 1,
            None => self.again.push_back(index..index + 1),
        }
    }

    /// The next step.
    pub(super) fn step(&mut self) -> Step {
        if !self.is_wanted && self.next > 0 && self.next < self.count {
            return Step::Wait;
        }
        // A queue of digests that grows is worked off beside the chunks that are missing.
        if self.resolved.len() >= MANY && std::mem::take(&mut self.has_sent) {
            return self.compare_next();
        }
        self.has_sent = true;
        while let Some(range) = self.skipped.front() {
            if range.end <= self.next {
                self.skipped.pop_front();
            } else if range.start <= self.next {
                self.next = range.end;
            } else {
                break;
            }
        }
        if self.next < self.count {
            self.next += 1;
            return Step::Send(self.next - 1);
        }
        if let Some(range) = self.again.front_mut() {
            let index = range.start;
            range.start += 1;
            if range.is_empty() {
                self.again.pop_front();
            }
            return Step::Send(index);
        }
        self.compare_next()
    }

    fn compare_next(&mut self) -> Step {
        match self.resolved.pop_front() {
            Some((index, digest)) => Step::Compare(index, digest),
            None if self.unresolved.is_empty() => Step::End,
            None => Step::Wait,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::integrity::{CHUNK_LEN, ChunkHasher};

    fn digest(index: u64) -> ChunkDigest {
        ChunkDigest::of(index, b"x")
    }

    fn unanswered(size: u64) -> Plan {
        let mut plan = Plan::of(chunk_count(size));
        plan.is_wanted = false;
        plan
    }

    fn steps(plan: &mut Plan) -> Vec<Step> {
        let mut all = Vec::new();
        loop {
            match plan.step() {
                last @ (Step::Wait | Step::End) => {
                    all.push(last);
                    return all;
                }
                step => all.push(step),
            }
        }
    }

    #[test]
    fn missing_chunks_come_first_and_claimed_ones_as_they_are_told() {
        let mut plan = unanswered(6 * CHUNK_LEN);
        plan.want(&[1..3, 4..5]);
        assert_eq!(steps(&mut plan), [Step::Send(0), Step::Send(3), Step::Send(5), Step::Wait]);
        assert!(!plan.resolve(2, None, MANY), "out of turn");
        assert!(plan.resolve(1, Some(digest(1)), MANY) && plan.resolve(2, None, MANY));
        assert_eq!(steps(&mut plan), [Step::Send(2), Step::Compare(1, digest(1)), Step::Wait]);
        plan.send_after_all(1);
        assert!(plan.resolve(4, Some(digest(4)), MANY));
        assert!(!plan.resolve(5, None, MANY), "never claimed");
        assert_eq!(steps(&mut plan), [Step::Send(1), Step::Compare(4, digest(4)), Step::End]);
    }

    #[test]
    fn before_the_answer_the_first_chunk_alone_is_sent() {
        let mut plan = unanswered(3 * CHUNK_LEN);
        assert_eq!(steps(&mut plan), [Step::Send(0), Step::Wait]);
        plan.want(&[0..1, 1..2]);
        assert_eq!(steps(&mut plan), [Step::Send(2), Step::Wait]);
        assert!(plan.resolve(0, Some(digest(0)), MANY) && plan.resolve(1, None, MANY));
        assert_eq!(steps(&mut plan), [Step::Send(1), Step::End]);
        assert_eq!(steps(&mut unanswered(0)), [Step::End]);
        assert_eq!(steps(&mut unanswered(CHUNK_LEN)), [Step::Send(0), Step::End]);
    }

    #[test]
    fn of_a_changed_file_the_chunks_of_the_same_place_and_length_are_compared() {
        let mut digests = ChunkDigests::default();
        for (index, len) in [(0, 9), (1, 9), (2, 5)] {
            let mut hasher = ChunkHasher::at(index);
            hasher.update(&vec![1; len]);
            digests.put(&hasher);
        }
        let mut plan = Plan::of_changed(3 * CHUNK_LEN, 2 * CHUNK_LEN + 5, &digests);
        let all = steps(&mut plan);
        assert_eq!(all[0], Step::Send(2));
        assert!(matches!(all[1..], [Step::Compare(0, _), Step::Compare(1, _), Step::End]), "{all:?}");
    }

    #[test]
    fn claims_beyond_the_end_are_heard_and_change_nothing() {
        let mut plan = unanswered(CHUNK_LEN);
        plan.want(&[0..1, 5..7]);
        assert!(plan.resolve(0, Some(digest(0)), MANY));
        assert_eq!(steps(&mut plan), [Step::Compare(0, digest(0)), Step::Wait]);
        assert!(plan.resolve(5, None, MANY) && plan.resolve(6, None, MANY));
        assert_eq!(plan.step(), Step::End);
    }

    /// Ten times as many digests as may wait.
    #[test]
    fn digests_beyond_their_bound_are_sent_and_many_are_compared_beside_the_others() {
        let count = 20 * MANY as u64;
        let mut plan = unanswered(count * CHUNK_LEN);
        plan.want(&[0..1, 1..count / 2]);
        let known = digest(0);
        (0..count / 2).for_each(|index| assert!(plan.resolve(index, Some(known), MANY)));
        assert_eq!((plan.resolved.len(), plan.again.len()), (MANY, 1));
        let all = steps(&mut plan);
        assert!(matches!(all[..3], [Step::Send(_), Step::Compare(0, _), Step::Send(_)]), "{:?}", &all[..3]);
        let compared = all.iter().filter(|step| matches!(step, Step::Compare(..))).count();
        let sent = all.iter().filter(|step| matches!(step, Step::Send(_))).count();
        assert_eq!((compared, compared + sent), (MANY, 20 * MANY));
    }
}
