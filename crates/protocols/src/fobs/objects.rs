//! The objects of a sender: where each ends, and which of them the peer has.

use std::collections::VecDeque;

use farhaul_units::SeqNo;
use farhaul_wire::fobs::{MAX_OBJECT, encode_done};

use crate::blast::numbered::FIRST;

/// The objects that the peer may not have yet.
#[derive(Debug)]
pub(super) struct Objects {
    /// Bytes of a full object: a multiple of a packet's payload.
    size: u32,
    /// Ends of the objects that are complete here and not at the peer.
    closed: VecDeque<SeqNo>,
    /// Ends and bytes of those that the peer was not told.
    untold: VecDeque<(SeqNo, u32)>,
    /// The first packet of the open object, and its bytes so far.
    open: SeqNo,
    bytes: u32,
}

impl Objects {
    /// No objects. Each will have up to `size` bytes, in packets of `payload_size`.
    pub(super) fn new(size: u32, payload_size: usize) -> Self {
        let payload = u32::try_from(payload_size).unwrap_or(MAX_OBJECT);
        let size = (size.min(MAX_OBJECT) / payload).max(1) * payload;
        Self { size, closed: VecDeque::new(), untold: VecDeque::new(), open: FIRST, bytes: 0 }
    }

    /// Bytes until the open object is full. It is never full, because then it is closed.
    pub(super) const fn room(&self) -> usize {
        (self.size - self.bytes) as usize
    }

    /// Bytes were added to the open object, at most its [`room`](Self::room). The packets now end before `end`.
    pub(super) fn wrote(&mut self, bytes: usize, end: SeqNo) {
        self.bytes += bytes as u32;
        if self.bytes == self.size {
            self.close(end);
        }
    }

    /// Ends the open object before `end`, unless it is empty.
    pub(super) fn close(&mut self, end: SeqNo) {
        if self.bytes > 0 {
            self.closed.push_back(end);
            self.untold.push_back((end, self.bytes));
            (self.open, self.bytes) = (end, 0);
        }
    }

    /// Whether an object has bytes and no end.
    pub(super) const fn is_open(&self) -> bool {
        self.bytes > 0
    }

    /// The first packet of the open object, or of the one to come.
    pub(super) const fn open(&self) -> SeqNo {
        self.open
    }

    /// Closed objects that the peer has not completed.
    pub(super) fn closed(&self) -> usize {
        self.closed.len()
    }

    /// The end of the oldest closed object.
    pub(super) fn oldest_end(&self) -> Option<SeqNo> {
        self.closed.front().copied()
    }

    /// Whether this packet belongs to an earlier object than `other`.
    pub(super) fn is_earlier(&self, packet: SeqNo, other: SeqNo) -> bool {
        let at = self.closed.partition_point(|end| !packet.is_before(*end));
        self.closed.get(at).is_some_and(|end| !other.is_before(*end))
    }

    /// The peer has all objects before `end`. Returns whether an object ends there.
    pub(super) fn completed(&mut self, end: SeqNo) -> bool {
        let Some(at) = self.closed.iter().position(|closed| *closed == end) else { return false };
        // Nobody completes an object whose end is not known.
        if at >= self.closed.len() - self.untold.len() {
            return false;
        }
        self.closed.drain(..=at);
        true
    }

    /// Tells the ends of objects.
    pub(super) fn poll_control(&mut self, out: &mut Vec<u8>) {
        for (end, bytes) in self.untold.drain(..) {
            encode_done(end, bytes, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_full_after_whole_packets() {
        let mut objects = Objects::new(1_000, 300);
        assert_eq!(objects.room(), 900);
        objects.wrote(899, SeqNo::new(3));
        assert!(objects.is_open());
        objects.wrote(1, SeqNo::new(3));
        assert_eq!(
            (objects.is_open(), objects.open(), objects.oldest_end()),
            (false, SeqNo::new(3), Some(SeqNo::new(3)))
        );
    }

    #[test]
    fn only_the_end_of_an_object_that_was_told_completes_it() {
        let mut objects = Objects::new(1_000, 500);
        objects.wrote(1_000, SeqNo::new(2));
        assert!(!objects.completed(SeqNo::new(2)), "not told yet");
        objects.poll_control(&mut Vec::new());
        assert!(!objects.completed(SeqNo::new(1)) && objects.completed(SeqNo::new(2)));
        assert!(!objects.completed(SeqNo::new(2)), "once");
    }

    #[test]
    fn packets_of_different_objects_have_an_order() {
        let mut objects = Objects::new(1_000, 500);
        objects.wrote(1_000, SeqNo::new(2));
        objects.wrote(500, SeqNo::new(3));
        let earlier = |packet, other| objects.is_earlier(SeqNo::new(packet), SeqNo::new(other));
        assert!(earlier(1, 2) && !earlier(0, 1) && !earlier(2, 2));
    }
}
