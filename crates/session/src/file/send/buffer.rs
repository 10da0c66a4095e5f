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

    /// The same as a block. `None` for less than half of the memory, all of which a block keeps.
    pub(super) fn pending_block(&mut self) -> Option<Bytes> {
        if self.block.is_empty() {
            if 2 * self.pending().len() < ROOM {
                return None;
            }
            let is_free = self.given.front().is_some_and(Bytes::is_unique);
            let used = if is_free { self.given.pop_front() } else { None };
            let next = used.and_then(|used| used.try_into_mut().ok()).unwrap_or_else(|| BytesMut::zeroed(ROOM));
            let memory = std::mem::replace(&mut self.bytes, next).freeze();
            self.block = memory.slice(self.start..self.end);
            self.given.push_back(memory);
            (self.start, self.end) = (0, 0);
        }
        Some(self.block.clone())
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes so many bytes pending.
    fn put(buffer: &mut Buffer, bytes: usize, value: u8) {
        buffer.free()[..bytes].fill(value);
        buffer.advance(bytes);
    }

    #[test]
    fn a_block_goes_first_and_what_is_added_meanwhile_follows() {
        let mut buffer = Buffer::default();
        put(&mut buffer, BLOCK, 1);
        buffer.handle_written(100);
        let block = buffer.pending_block().unwrap();
        assert_eq!((block.len(), buffer.pending()), (BLOCK - 100, &block[..]));
        buffer.put(|out| out.extend_from_slice(b"next"));
        buffer.handle_written(50);
        assert_eq!(buffer.pending_block().unwrap(), block.slice(50..), "what the transport did not take");
        buffer.handle_written(BLOCK - 150);
        assert_eq!(buffer.pending(), b"next");
        assert!(buffer.pending_block().is_none(), "too little for the memory that it would keep");
        assert!(block.iter().all(|&byte| byte == 1));
    }

    #[test]
    fn memory_comes_back_once_the_transport_has_dropped_the_block() {
        let mut buffer = Buffer::default();
        let mut give = |value| {
            put(&mut buffer, BLOCK, value);
            let block = buffer.pending_block().unwrap();
            buffer.handle_written(block.len());
            block
        };
        let (first, second) = (give(1), give(2));
        let memory = first.as_ptr();
        drop(first);
        drop(give(3));
        assert_eq!(give(4).as_ptr(), memory);
        assert!(second.iter().all(|&byte| byte == 2));
    }
}
