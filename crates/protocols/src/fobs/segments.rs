//! The segments of a sender: which packets left in which, and what the peer's bitmaps say of them.

use std::collections::VecDeque;

use farhaul_units::{SeqNo, SeqRange};
use farhaul_wire::fobs::{Bitmap, MAX_PACKETS, Segment, encode_segment};

use crate::blast::numbered::FIRST;
use farhaul_proto::seq_set::SeqSet;

/// The segments whose loss is not known yet, and the packets that are.
#[derive(Debug)]
pub(super) struct Segments {
    /// Packets of a full segment.
    size: u32,
    /// The number of the segment under way, its range and its packets.
    number: u32,
    range: Option<SeqRange>,
    packets: u32,
    /// Complete segments and their packets, in the order of their numbers.
    awaited: VecDeque<(Segment, u32)>,
    /// How many of the last ones the peer was not told.
    untold: usize,
    /// For each packet from `base` on, the segment in which it last left. A bitmap counts for those of its own segment
    /// alone, since later repetitions may still be under way.
    left_in: VecDeque<u32>,
    base: SeqNo,
    /// Known to be missing.
    lost: SeqSet,
    /// Where the circle of repetitions goes on.
    cursor: SeqNo,
}

/// The loss of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Loss {
    pub(super) lost: u32,
    pub(super) packets: u32,
}

impl Segments {
    pub(super) fn new(size: u32) -> Self {
        Self {
            size: size.clamp(1, MAX_PACKETS),
            number: 0,
            range: None,
            packets: 0,
            awaited: VecDeque::new(),
            untold: 0,
            left_in: VecDeque::new(),
            base: FIRST,
            lost: SeqSet::new(FIRST),
            cursor: FIRST,
        }
    }

    /// Packets until the segment under way is complete.
    pub(super) const fn room(&self) -> u32 {
        self.size - self.packets
    }

    /// Segments without a bitmap.
    pub(super) fn awaited(&self) -> usize {
        self.awaited.len()
    }

    /// Packets known to be missing.
    pub(super) const fn lost(&self) -> &SeqSet {
        &self.lost
    }

    /// The next packet to repeat.
    pub(super) fn next(&mut self, end: SeqNo) -> Option<SeqNo> {
        self.lost.next_present(self.cursor, end).or_else(|| self.lost.first())
    }

    /// A packet has left, for the first time or again.
    pub(super) fn on_sent(&mut self, packet: SeqNo) {
        let joined = self.range.map_or(SeqRange::new(packet, packet), |range| {
            SeqRange::new(range.first.earlier(packet), range.last.later(packet))
        });
        if joined.len() > MAX_PACKETS {
            self.close();
        }
        self.range = Some(if self.packets == 0 { SeqRange::new(packet, packet) } else { joined });
        self.packets += 1;
        let at = packet.distance_from(self.base).unsigned_abs() as usize;
        match self.left_in.get_mut(at) {
            Some(left_in) => {
                *left_in = self.number;
                self.lost.remove(packet);
                self.cursor = packet.next();
            }
            None => self.left_in.push_back(self.number),
        }
        if self.packets == self.size {
            self.close();
        }
    }

    /// Nothing more can leave now, so the segment under way is complete.
    pub(super) fn close(&mut self) {
        if let Some(range) = self.range.take() {
            self.awaited.push_back((Segment { number: self.number, range }, self.packets));
            self.untold += 1;
            self.number = self.number.wrapping_add(1);
            self.packets = 0;
        }
    }

    /// Tells which segments have left.
    pub(super) fn poll_control(&mut self, out: &mut Vec<u8>) {
        for (segment, _) in self.awaited.range(self.awaited.len() - self.untold..) {
            encode_segment(*segment, out);
        }
        self.untold = 0;
    }

    /// The peer says what arrived of a segment. `None` if it is not the next segment to hear of.
    pub(super) fn on_feedback(&mut self, segment: Segment, bitmap: Bitmap<'_>) -> Option<Loss> {
        let (awaited, packets) = *self.awaited.front()?;
        if awaited != segment || self.awaited.len() == self.untold {
            return None;
        }
        self.awaited.pop_front();
        let held = SeqRange::new(self.base, self.base.plus(self.left_in.len() as u32).minus(1));
        let mut lost = 0;
        for range in bitmap.missing(segment.range).filter_map(|range| range.clip(held)) {
            for offset in 0..range.len() {
                let packet = range.first.plus(offset);
                let at = packet.distance_from(self.base).unsigned_abs() as usize;
                if self.left_in.get(at) == Some(&segment.number) {
                    lost += u32::from(self.lost.insert(packet));
                }
            }
        }
        Some(Loss { lost, packets })
    }

    /// The peer has everything before `packet`.
    pub(super) fn advance(&mut self, packet: SeqNo) {
        let released = packet.distance_from(self.base).max(0).unsigned_abs() as usize;
        self.left_in.drain(..released.min(self.left_in.len()));
        self.base = self.base.later(packet);
        self.lost.advance(packet);
        self.cursor = self.cursor.later(packet);
    }

    /// Bytes of memory held.
    pub(super) fn memory(&self) -> usize {
        self.left_in.capacity() * size_of::<u32>()
            + self.awaited.capacity() * size_of::<(Segment, u32)>()
            + self.lost.memory()
    }
}

#[cfg(test)]
mod tests {
    use farhaul_wire::fobs::{Record, encode_feedback};

    use super::*;

    fn range(first: u32, last: u32) -> SeqRange {
        SeqRange::new(SeqNo::new(first), SeqNo::new(last))
    }

    /// Segments of ten packets, of which packets 0 to 24 have left.
    fn segments() -> Segments {
        let mut segments = Segments::new(10);
        (0..25).for_each(|packet| segments.on_sent(SeqNo::new(packet)));
        segments.poll_control(&mut Vec::new());
        segments
    }

    /// The peer misses `missing` of a segment.
    fn feedback(segments: &mut Segments, number: u32, whole: SeqRange, missing: SeqRange) -> Option<Loss> {
        let mut bytes = Vec::new();
        encode_feedback(Segment { number, range: whole }, [missing].into_iter(), &mut bytes);
        match Record::decode(&bytes) {
            Ok(Some((Record::Feedback(segment, bitmap), _))) => segments.on_feedback(segment, bitmap),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_segment_is_told_when_it_is_full_or_closed() {
        let mut segments = segments();
        assert_eq!((segments.awaited.len(), segments.room()), (2, 5));
        segments.close();
        let mut out = Vec::new();
        segments.poll_control(&mut out);
        assert_eq!(out, [2, 0, 0, 0, 2, 0, 0, 0, 20, 0, 0, 0, 5]);
        segments.close();
        assert_eq!(segments.awaited.len(), 3, "an empty one is none");
    }

    #[test]
    fn feedback_of_another_segment_or_range_is_refused() {
        let mut segments = segments();
        assert_eq!(feedback(&mut segments, 1, range(10, 19), range(10, 10)), None);
        assert_eq!(feedback(&mut segments, 0, range(0, 8), range(1, 1)), None);
        assert_eq!(feedback(&mut segments, 0, range(0, 9), range(3, 4)), Some(Loss { lost: 2, packets: 10 }));
        assert_eq!(feedback(&mut segments, 0, range(0, 9), range(3, 4)), None, "once");
    }

    #[test]
    fn feedback_of_a_segment_that_was_not_told_is_refused() {
        let mut segments = Segments::new(2);
        (0..2).for_each(|packet| segments.on_sent(SeqNo::new(packet)));
        assert_eq!(feedback(&mut segments, 0, range(0, 1), range(0, 0)), None);
    }

    #[test]
    fn a_packet_that_left_again_later_is_not_lost_by_an_earlier_bitmap() {
        let mut segments = segments();
        feedback(&mut segments, 0, range(0, 9), range(3, 4)).unwrap();
        // Segment 2 now has packets 20 to 24, and 3 again.
        segments.on_sent(SeqNo::new(3));
        assert_eq!(segments.next(SeqNo::new(25)), Some(SeqNo::new(4)));
        segments.close();
        segments.poll_control(&mut Vec::new());
        feedback(&mut segments, 1, range(10, 19), range(12, 12)).unwrap();
        segments.on_sent(SeqNo::new(12));
        // The bitmap of segment 2 spans packet 12, whose repetition left in segment 3.
        let loss = feedback(&mut segments, 2, range(3, 24), range(3, 12));
        assert_eq!(loss, Some(Loss { lost: 1, packets: 6 }));
    }

    #[test]
    fn repetitions_go_round() {
        let mut segments = segments();
        feedback(&mut segments, 0, range(0, 9), range(3, 4)).unwrap();
        feedback(&mut segments, 1, range(10, 19), range(15, 15)).unwrap();
        let mut order = Vec::new();
        while let Some(packet) = segments.next(SeqNo::new(25)) {
            segments.on_sent(packet);
            order.push(packet.value());
        }
        assert_eq!(order, [3, 4, 15]);
        segments.advance(SeqNo::new(5));
        assert_eq!((segments.base, segments.left_in.len()), (SeqNo::new(5), 20));
    }
}
