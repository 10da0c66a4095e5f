//! The pending bytes of a file sender, read from files directly behind the headers of their frames.

use std::collections::VecDeque;

use bytes::{Buf, Bytes, BytesMut};

use super::BLOCK;
use crate::framing::HEADER_LEN;

/// Room for the frames between two chunks. The longest of them has a path and a message. With fewer pending bytes than
/// this, more are added.
pub(super) const MARGIN: usize = 8 << 10;

/// Room for one frame of a [`BLOCK`] and the small ones around it.
const ROOM: usize = HEADER_LEN + BLOCK + 4 * MARGIN;

/// The pending bytes, in memory that is allocated once, and grows only for entries with long attributes. As a block, they become the transport's,
/// and their memory is used again once it has dropped them.
pub(super) struct Buffer {
    /// Pending bytes that were given as a block. They come before all others.
    block: Bytes,
    /// The memory of all such blocks, oldest first.
    given: VecDeque<Bytes>,
    bytes: BytesMut,
    start: usize,
    end: usize,
    /// Builds small frames before they are moved behind the pending bytes.
    frame: Vec<u8>,
}

impl Default for Buffer {
    fn default() -> Self {
        Self {
            block: Bytes::new(),
            given: VecDeque::new(),
            bytes: BytesMut::zeroed(ROOM),
            start: 0,
            end: 0,
            frame: Vec::new(),
        }
    }
}

impl Buffer {
    pub(super) fn pending(&self) -> &[u8] {
        if self.block.is_empty() { &self.bytes[self.start..self.end] } else { &self.block }
    }

    /// The same as a block.
    pub(super) fn pending_block(&mut self) -> Bytes {
        if self.block.is_empty() {
            let is_free = self.given.front().is_some_and(Bytes::is_unique);
            let used = if is_free { self.given.pop_front() } else { None };
            let next = used.and_then(|used| used.try_into_mut().ok()).unwrap_or_else(|| BytesMut::zeroed(ROOM));
            let memory = std::mem::replace(&mut self.bytes, next).freeze();
            self.block = memory.slice(self.start..self.end);
            self.given.push_back(memory);
            (self.start, self.end) = (0, 0);
        }
        self.block.clone()
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
            self.bytes.resize(needed, 0);
        }
    }

    pub(super) fn handle_written(&mut self, count: usize) {
        assert!(count <= self.pending().len(), "the driver wrote more than was pending");
        if !self.block.is_empty() {
            return self.block.advance(count);
        }
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
