//! Small frames that wait for the driver to write them.

use crate::frame_kind::FrameKind;
use crate::framing::put_frame;

/// With this many waiting bytes, a session takes no more input. So a peer that never reads cannot make it grow.
const FULL: usize = 64 << 10;

/// Bytes that wait to be written, in order.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    bytes: Vec<u8>,
    written: usize,
}

impl Outbox {
    pub(crate) fn pending(&self) -> &[u8] {
        &self.bytes[self.written..]
    }

    /// # Panics
    /// If more was written than was pending.
    pub(crate) fn handle_written(&mut self, count: usize) {
        assert!(count <= self.pending().len(), "the driver wrote more than was pending");
        self.written += count;
        if self.written == self.bytes.len() {
            self.bytes.clear();
            self.written = 0;
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.pending().len() >= FULL
    }

    /// The buffer, for appending whole frames.
    pub(crate) fn bytes(&mut self) -> &mut Vec<u8> {
        if self.written >= FULL {
            self.bytes.drain(..self.written);
            self.written = 0;
        }
        &mut self.bytes
    }

    pub(crate) fn put(&mut self, kind: FrameKind, fill: impl FnOnce(&mut Vec<u8>)) {
        put_frame(self.bytes(), kind, fill);
    }
}
