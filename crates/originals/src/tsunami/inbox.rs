//! Bytes of the channel that do not make a whole message yet.

/// Received bytes in order.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    bytes: Vec<u8>,
    /// Bytes at the front that were read.
    read: usize,
}

impl Inbox {
    /// Adds received bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.read);
        self.read = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// The bytes that were not read.
    pub(super) fn rest(&self) -> &[u8] {
        &self.bytes[self.read..]
    }

    /// The next `N` bytes, which count as read; `None` if fewer have arrived.
    pub(super) fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let taken = *self.rest().first_chunk()?;
        self.read += N;
        Some(taken)
    }

    /// `count` bytes were read.
    pub(super) fn consume(&mut self, count: usize) {
        self.read = (self.read + count).min(self.bytes.len());
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}
