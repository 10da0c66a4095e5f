//! The thread that reads: messages to the program, and frames of the stream to it or to whom they are passed on.

use std::io::Read;

use super::frame::{Frame, Malformed};
use super::{Gone, SILENCE, Shared};

/// Bytes per read.
const BLOCK: usize = 256 << 10;

impl Shared {
    /// Reads until the pipe ends, or nobody wants more.
    pub(super) fn read_from(
        &self,
        (mut from, first): (impl Read, Vec<u8>),
        mut hear: impl FnMut(&[u8]) -> Result<(), Gone>,
    ) {
        // The bytes `begin..end` of it wait.
        let (mut begin, mut end, mut buffer) = (0, first.len(), first);
        loop {
            match self.take_all(&buffer[begin..end], &mut hear) {
                Ok(taken) => begin += taken,
                Err(End::Malformed) => {
                    self.state().malformed();
                    break;
                }
                Err(End::Unheard) => break,
            }
            buffer.copy_within(begin..end, 0);
            (begin, end) = (0, end - begin);
            if buffer.len() < end + BLOCK {
                buffer.resize(end + BLOCK, 0);
            }
            match from.read(&mut buffer[end..]) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => break,
                Ok(len) => end += len,
            }
        }
        self.state().lose_in();
        self.notify();
    }

    /// Takes the whole frames of these bytes, and returns their length.
    fn take_all(&self, bytes: &[u8], hear: &mut impl FnMut(&[u8]) -> Result<(), Gone>) -> Result<usize, End> {
        let mut taken = 0;
        while let Some((frame, len)) = Frame::first_of(&bytes[taken..])? {
            let whole = &bytes[taken..taken + len];
            taken += len;
            match (frame, self.relayed_to.get()) {
                (Frame::Message(message), _) => hear(message).map_err(|Gone| End::Unheard)?,
                (_, Some(other)) => {
                    if let Some(other) = other.upgrade() {
                        other.pass(whole);
                    }
                }
                _ => {
                    let (mut state, now) = (self.state(), self.clock.now());
                    state.handle(frame, now);
                    state.hear(now);
                    drop(state);
                    self.work.notify_one();
                    self.changed.notify_all();
                }
            }
        }
        Ok(taken)
    }

    /// Passes on a frame of another stream, once there is room for it. A pipe that takes nothing for the time of a silent peer is gone:
    /// messages behind the frame are heard in any case.
    fn pass(&self, frame: &[u8]) {
        let deadline = self.clock.now() + SILENCE;
        let mut state = self.state();
        while !state.has_queue() {
            if self.clock.now() >= deadline {
                state.lose_out();
            }
            state = self.wait_until(state, Some(deadline));
        }
        state.pass(frame);
        drop(state);
        self.work.notify_one();
    }
}

/// Why nothing more is read.
enum End {
    Malformed,
    /// Nobody wants more messages.
    Unheard,
}

impl From<Malformed> for End {
    fn from(_: Malformed) -> Self {
        Self::Malformed
    }
}
