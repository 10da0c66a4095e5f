//! A SACK sender's view of its flight (paper:rfc6675 §4): segments that arrived, are lost, or are in the pipe.
//!
//! RFC 6675 defines `SetPipe` and `NextSeg` by walks over the whole window. Here two marks and two counts replace the
//! walks. The *lost edge* is the third highest SACKed segment: `IsLost` holds for every segment below it that is not
//! SACKed. The other mark is `HighRxt`. `lost` and `retransmitted` count the segments below each mark that are not SACKed:
//!
//! ```text
//! pipe = flight − SACKed − lost + retransmitted
//! ```
//!
//! The cost of an acknowledgement thus depends on its news, not on the window.
//!
//! Bytes are counted in segments. Both conditions of RFC 6675 for a loss then mean three SACKed segments: more than
//! 2·SMSS bytes, and three ranges.

use super::ranges::Ranges;
use crate::packet::segment::Block;

/// DupThresh.
//= paper:rfc6675 §2
pub(super) const DUP_THRESHOLD: u64 = 3;

/// The flight, segment by segment.
#[derive(Clone, Debug, Default)]
pub(super) struct Scoreboard {
    sacked: Ranges,
    /// The first segment not acknowledged (HighACK + 1).
    first: u64,
    /// Segments below this mark that are not SACKed are lost. Never decreases.
    lost_edge: u64,
    /// Segments below this mark that are not SACKed were retransmitted in this recovery (HighRxt + 1).
    retransmitted_edge: u64,
    /// Segments below the lost edge that are not SACKed.
    lost: u64,
    /// Segments below the retransmitted edge that are not SACKed.
    retransmitted: u64,
}

impl Scoreboard {
    /// Takes an acknowledgement of everything before `ack`, and SACK blocks. `high` is one past the last segment sent
    /// (HighData + 1). Returns whether the blocks brought news.
    //= paper:rfc6675 §4 Update()
    pub(super) fn update(&mut self, ack: u64, blocks: &[Block], high: u64) -> bool {
        self.advance(ack);
        let before = self.sacked.len();
        for block in blocks {
            // Parts below the acknowledgement or above the last sent segment carry no information.
            self.insert(Block::new(block.start.max(self.first), block.end.min(high)));
        }
        let news = self.sacked.len() > before;
        if news {
            self.raise_lost_edge(self.third_highest());
        }
        news
    }

    /// Segments in flight by the estimate of RFC 6675.
    //= paper:rfc6675 §4 SetPipe()
    pub(super) fn pipe(&self, high: u64) -> u64 {
        high - self.first - self.sacked.len() - self.lost + self.retransmitted
    }

    /// Whether the first segment of the flight is lost.
    pub(super) fn first_is_lost(&self) -> bool {
        self.lost > 0 && self.first < self.lost_edge && self.sacked.first().is_none_or(|range| range.start > self.first)
    }

    /// The next lost segment that was not retransmitted.
    //= paper:rfc6675 §4 NextSeg() rule (1)
    pub(super) fn next_lost(&self) -> Option<u64> {
        if self.retransmitted_edge >= self.lost_edge {
            return None;
        }
        Some(self.next_not_retransmitted()).filter(|seq| *seq < self.lost_edge)
    }

    /// The next segment that was not retransmitted and has a SACKed one above it, though it is not yet lost.
    //= paper:rfc6675 §4 NextSeg() rule (3)
    pub(super) fn next_maybe_lost(&self) -> Option<u64> {
        let highest = self.sacked.descending().next()?.end;
        Some(self.next_not_retransmitted()).filter(|seq| *seq < highest)
    }

    /// The highest segment not SACKed.
    //= paper:rfc6675 §4 NextSeg() rule (4)
    pub(super) fn highest_not_sacked(&self, high: u64) -> Option<u64> {
        let top = self.sacked.descending().next().filter(|range| range.end == high);
        top.map_or(high, |range| range.start).checked_sub(1).filter(|seq| *seq >= self.first)
    }

    /// Records that `seq`, chosen by one of the rules, was retransmitted.
    pub(super) fn note_retransmitted(&mut self, seq: u64) {
        self.retransmitted_edge = seq + 1;
        self.retransmitted += 1;
    }

    /// A recovery begins, with nothing retransmitted.
    pub(super) fn begin_recovery(&mut self) {
        (self.retransmitted_edge, self.retransmitted) = (self.first, 0);
    }

    /// After a time-out, forgets SACKed segments, which the receiver may have discarded, and marks everything as lost.
    //= paper:rfc6675 §5.1
    pub(super) fn lose_all(&mut self, high: u64) {
        self.sacked.clear();
        (self.lost_edge, self.lost) = (high, high - self.first);
        self.begin_recovery();
    }

    /// Number of SACKed segments.
    #[cfg(test)]
    pub(super) fn sacked(&self) -> u64 {
        self.sacked.len()
    }

    fn next_not_retransmitted(&self) -> u64 {
        self.sacked.first_gap(self.retransmitted_edge.max(self.first))
    }

    fn advance(&mut self, ack: u64) {
        if ack <= self.first {
            return;
        }
        let gone = |edge: u64| Block::new(self.first, ack.min(edge));
        if self.lost > 0 {
            let gone = gone(self.lost_edge);
            self.lost -= gone.len() - self.sacked.count_in(gone);
        }
        if self.retransmitted > 0 {
            let gone = gone(self.retransmitted_edge);
            self.retransmitted -= gone.len() - self.sacked.count_in(gone);
        }
        self.sacked.remove_before(ack);
        self.first = ack;
    }

    fn insert(&mut self, block: Block) {
        let Self { sacked, lost_edge, retransmitted_edge, lost, retransmitted, .. } = self;
        sacked.insert(block, |news| {
            *lost -= news.len_before(*lost_edge);
            *retransmitted -= news.len_before(*retransmitted_edge);
        });
    }

    /// The third highest SACKed segment; zero if there are fewer.
    fn third_highest(&self) -> u64 {
        let mut missing = DUP_THRESHOLD;
        for range in self.sacked.descending() {
            if range.len() >= missing {
                return range.end - missing;
            }
            missing -= range.len();
        }
        0
    }

    fn raise_lost_edge(&mut self, edge: u64) {
        if edge > self.lost_edge {
            let between = Block::new(self.lost_edge.max(self.first), edge);
            self.lost += between.len() - self.sacked.count_in(between);
            self.lost_edge = edge;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn update(board: &mut Scoreboard, ack: u64, blocks: &[(u64, u64)]) -> bool {
        let blocks: Vec<_> = blocks.iter().map(|&(start, end)| Block::new(start, end)).collect();
        board.update(ack, &blocks, 20)
    }

    #[test]
    fn a_segment_is_lost_once_three_above_it_are_sacked() {
        let mut board = Scoreboard::default();
        assert!(update(&mut board, 5, &[(6, 7)]));
        assert!(update(&mut board, 5, &[(6, 8)]));
        assert!(!board.first_is_lost());
        assert!(update(&mut board, 5, &[(6, 9)]));
        assert!(board.first_is_lost());
        assert!(!update(&mut board, 5, &[(6, 9)]), "nothing new");
        assert_eq!(board.next_lost(), Some(5));
    }

    #[test]
    fn the_pipe_excludes_sacked_and_lost_segments_and_counts_retransmissions() {
        let mut board = Scoreboard::default();
        assert_eq!(board.pipe(20), 20);
        update(&mut board, 5, &[(8, 9), (11, 12)]);
        assert_eq!(board.pipe(20), 13, "15 in flight, 2 SACKed");
        update(&mut board, 5, &[(14, 15)]);
        assert_eq!(board.pipe(20), 9, "15 in flight, 3 SACKed; 5, 6 and 7 are lost");
        board.begin_recovery();
        board.note_retransmitted(5);
        assert_eq!(board.pipe(20), 10);
        update(&mut board, 6, &[]);
        assert_eq!(board.pipe(20), 9);
    }

    #[test]
    fn retransmissions_follow_the_rules_of_next_seg() {
        let mut board = Scoreboard::default();
        update(&mut board, 5, &[(7, 9), (11, 12), (14, 15)]);
        board.begin_recovery();
        for lost in [5, 6] {
            assert_eq!(board.next_lost(), Some(lost), "rule 1");
            board.note_retransmitted(lost);
        }
        assert_eq!(board.next_lost(), None, "two segments alone are SACKed above 9");
        for maybe_lost in [9, 10, 12, 13] {
            assert_eq!(board.next_maybe_lost(), Some(maybe_lost), "rule 3");
            board.note_retransmitted(maybe_lost);
        }
        assert_eq!(board.next_maybe_lost(), None);
        assert_eq!(board.highest_not_sacked(20), Some(19), "rule 4");
        update(&mut board, 5, &[(18, 20)]);
        assert_eq!(board.highest_not_sacked(20), Some(17));
    }

    #[test]
    fn after_a_timeout_everything_is_lost_until_it_is_sacked_again() {
        let mut board = Scoreboard::default();
        update(&mut board, 5, &[(7, 12)]);
        board.lose_all(20);
        assert_eq!((board.pipe(20), board.next_lost()), (0, Some(5)));
        board.note_retransmitted(5);
        update(&mut board, 6, &[(7, 12)]);
        assert_eq!((board.pipe(20), board.next_lost()), (0, Some(6)));
        board.note_retransmitted(6);
        assert_eq!((board.pipe(20), board.next_lost()), (1, Some(12)));
    }

    /// The definitions of RFC 6675 §4, computed by walking over the window.
    #[derive(Default)]
    struct Model {
        first: u64,
        sacked: BTreeSet<u64>,
        lost_edge: u64,
        retransmitted_edge: u64,
    }

    impl Model {
        fn is_lost(&self, seq: u64) -> bool {
            seq < self.lost_edge || self.sacked.range(seq..).count() >= 3
        }

        fn pipe(&self, high: u64) -> u64 {
            let flight = (self.first..high).filter(|seq| !self.sacked.contains(seq));
            flight.map(|seq| u64::from(!self.is_lost(seq)) + u64::from(seq < self.retransmitted_edge)).sum()
        }

        fn next(&self, high: u64, rule: impl Fn(u64) -> bool) -> Option<u64> {
            let from = self.first.max(self.retransmitted_edge);
            (from..high).find(|seq| !self.sacked.contains(seq) && rule(*seq))
        }
    }

    proptest! {
        #[test]
        fn marks_and_counts_agree_with_the_definitions(
            steps in prop::collection::vec((0u64..6, 0u64..40, 0u64..8, 0u8..8), 1..120),
        ) {
            let (mut board, mut model, mut high) = (Scoreboard::default(), Model::default(), 0);
            for (ack, start, len, what) in steps {
                high += 2;
                let ack = (model.first + ack / 3).min(high);
                let block = Block::new(ack + start, (ack + start + len).min(high));
                model.first = ack;
                model.sacked = model.sacked.split_off(&ack);
                let held = model.sacked.len();
                model.sacked.extend(block.start..block.end);
                // A lost segment stays lost, even after the acknowledgement of the segments that revealed the loss.
                let third = model.sacked.iter().rev().nth(2).copied().unwrap_or(0);
                if model.sacked.len() > held {
                    model.lost_edge = model.lost_edge.max(third);
                }
                prop_assert_eq!(board.update(ack, &[block], high), model.sacked.len() > held);
                match what {
                    0 => {
                        board.begin_recovery();
                        model.retransmitted_edge = model.first;
                    }
                    1 => {
                        board.lose_all(high);
                        model.sacked.clear();
                        (model.lost_edge, model.retransmitted_edge) = (high, model.first);
                    }
                    _ => if let Some(seq) = board.next_lost().or(board.next_maybe_lost()) {
                        board.note_retransmitted(seq);
                        model.retransmitted_edge = seq + 1;
                    }
                }
                let highest = model.sacked.last().copied().unwrap_or(0);
                prop_assert_eq!(board.sacked(), model.sacked.len() as u64);
                prop_assert_eq!(board.pipe(high), model.pipe(high));
                prop_assert_eq!(board.next_lost(), model.next(high, |seq| model.is_lost(seq)));
                prop_assert_eq!(board.next_maybe_lost(), model.next(high, |seq| seq < highest));
                let last = (ack..high).rev().find(|seq| !model.sacked.contains(seq));
                prop_assert_eq!(board.highest_not_sacked(high), last);
                let first_lost = ack < high && !model.sacked.contains(&ack) && model.is_lost(ack);
                prop_assert_eq!(board.first_is_lost(), first_lost);
            }
        }
    }
}
