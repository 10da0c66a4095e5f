//! The pending bytes of a file sender, read from files directly behind the headers of their frames.

use super::BLOCK;
use crate::framing::HEADER_LEN;

/// Room for the frames between two chunks. The longest of them has a path and a message. With fewer pending bytes than
/// this, more are added.
pub(super) const MARGIN: usize = 8 << 10;

/// The pending bytes, in memory that is allocated once, and grows only for entries with long attributes.
pub(super) struct Buffer {
    bytes: Box<[u8]>,
    start: usize,
    end: usize,
    /// Builds small frames before they are moved behind the pending bytes.
    frame: Vec<u8>,
}

impl Default for Buffer {
    /// A buffer for one frame of a [`BLOCK`] and the small ones around it.
    fn default() -> Self {
        let room = HEADER_LEN + BLOCK + 4 * MARGIN;
        Self { bytes: vec![0; room].into_boxed_slice(), start: 0, end: 0, frame: Vec::new() }
    }
}

impl Buffer {
    pub(super) fn pending(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Bytes that may be appended. One more small frame always fits, for the last message.
    pub(super) fn room(&self) -> usize {
        (self.bytes.len() - self.end).saturating_sub(MARGIN)
    }

    /// The memory behind the pending bytes.
    pub(super) fn free(&mut self) -> &mut [u8] {
        &mut self.bytes[self.end..]
    }

    /// Makes the first `count` bytes of [`free`](Self::free) pending.
    pub(super) fn advance(&mut self, count: usize) {
        self.end += count;
    }

    /// Appends the small frame that `fill` writes.
    pub(super) fn put(&mut self, fill: impl FnOnce(&mut Vec<u8>)) {
        self.frame.clear();
        fill(&mut self.frame);
        if self.bytes.len() - self.end < self.frame.len() {
            self.make_room();
        }
        let end = self.end + self.frame.len();
        self.bytes[self.end..end].copy_from_slice(&self.frame);
        self.end = end;
    }

    /// Makes room for the frame: an entry with long attributes.
    #[cold]
    fn make_room(&mut self) {
        self.bytes.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        let needed = self.end + self.frame.len() + MARGIN;
        if needed > self.bytes.len() {
            let mut bytes = std::mem::take(&mut self.bytes).into_vec();
            bytes.resize(needed, 0);
            self.bytes = bytes.into_boxed_slice();
        }
    }

    pub(super) fn handle_written(&mut self, count: usize) {
        assert!(count <= self.pending().len(), "the driver wrote more than was pending");
        self.start += count;
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
    }
}

impl std::fmt::Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Buffer({} pending)", self.end - self.start)
    }
}
