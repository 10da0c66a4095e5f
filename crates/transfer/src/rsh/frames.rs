//! The frames of one side, which several threads write.

use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use farhaul::Error as ConnectionError;
use farhaul_bond::BondedStream;
use farhaul_session::{CommandFrame, STREAM_HEADER, StandardStream};

/// Most bytes of a stream in one frame: as many as the library moves at once.
const BLOCK: usize = (256 << 10) - STREAM_HEADER;

/// Writes frames, each of them whole.
#[derive(Debug)]
pub(super) struct FrameWriter {
    state: Mutex<FramesState>,
    /// Streams whose readers have left.
    unread: [AtomicBool; 3],
}

#[derive(Debug)]
struct FramesState {
    /// Gone once the session is over: a thread may wait for its own stream for ever.
    stream: Option<BondedStream>,
    ended: [bool; 3],
}

/// Why no more of a stream is sent.
#[derive(Debug)]
pub(super) enum Unsent {
    /// Nobody reads it.
    Unread,
    /// The connection failed.
    Connection,
}

impl From<ConnectionError> for Unsent {
    fn from(_: ConnectionError) -> Self {
        Self::Connection
    }
}

impl FrameWriter {
    pub(super) fn new(stream: BondedStream) -> Self {
        Self { state: Mutex::new(FramesState { stream: Some(stream), ended: [false; 3] }), unread: Default::default() }
    }

    /// Sends a frame.
    pub(super) fn send(&self, frame: CommandFrame) -> Result<(), ConnectionError> {
        self.state().send(&frame.to_bytes())
    }

    /// Sends bytes that are no frame of a command.
    pub(super) fn send_raw(&self, bytes: &[u8]) -> Result<(), ConnectionError> {
        self.state().send(bytes)
    }

    /// Sends the end of a stream, once.
    pub(super) fn end(&self, stream: StandardStream) -> Result<(), ConnectionError> {
        let mut state = self.state();
        match std::mem::replace(&mut state.ended[stream as usize], true) {
            true => Ok(()),
            false => state.send(&CommandFrame::Ended(stream).to_bytes()),
        }
    }

    /// Has whoever sends this stream stop. Never waits.
    pub(super) fn stop(&self, stream: StandardStream) {
        self.unread[stream as usize].store(true, Ordering::Release);
    }

    /// Sends all that comes from `source`, and its end. A source that cannot be read has ended.
    pub(super) fn pump(&self, mut source: impl Read, stream: StandardStream) -> Result<(), Unsent> {
        let mut block = vec![0; STREAM_HEADER + BLOCK.min(stream.most())];
        loop {
            match source.read(&mut block[STREAM_HEADER..]) {
                Ok(0) => break,
                Ok(len) => self.send_bytes(stream, &mut block[..STREAM_HEADER + len])?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        drop(source);
        Ok(self.end(stream)?)
    }

    /// Sends bytes of a stream, in front of which `block` has room for the header.
    fn send_bytes(&self, stream: StandardStream, block: &mut [u8]) -> Result<(), Unsent> {
        if self.unread[stream as usize].load(Ordering::Acquire) {
            self.end(stream)?;
            return Err(Unsent::Unread);
        }
        let header = stream.header(block.len() - STREAM_HEADER);
        block[..STREAM_HEADER].copy_from_slice(&header);
        let state = self.state();
        match state.ended[stream as usize] {
            true => Err(Unsent::Unread),
            false => Ok(state.send(block)?),
        }
    }

    /// Forgets the connection, which is over.
    pub(super) fn release(&self) {
        self.state().stream = None;
    }

    fn state(&self) -> MutexGuard<'_, FramesState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FramesState {
    fn send(&self, bytes: &[u8]) -> Result<(), ConnectionError> {
        match &self.stream {
            Some(stream) => stream.send_all(bytes),
            None => Err(ConnectionError::Finished),
        }
    }
}
