//! Messages and one stream of bytes, in both directions, through the pipes between two programs that ssh connects.
//!
//! Ssh encrypts, repeats and orders, and TCP below it has congestion control. So all that is left to do is to tell messages from the
//! stream, to hold the stream back where its reader is slow, and to notice a peer that is gone.
//!
//! ```text
//! send ─▶ frames ─▶ writer thread ─▶ pipe ─▶ ssh ─▶ pipe ─▶ reader thread ─▶ blocks ─▶ recv
//!                                                                └─▶ messages
//! ```
//!
//! | part | owns |
//! | --- | --- |
//! | `frame` | the frames and their bytes |
//! | `state` | both directions of the stream, and its end |
//! | `reader` | the thread that reads: where each frame belongs |
//! | `writer` | the thread that writes: turns, the cap, keep-alives |
//! | `stream` | the calls of the stream |
//!
//! **Back-pressure.** Each side has room for `WINDOW` bytes, and tells how far the peer may send. So the reader thread never waits
//! for whoever reads the stream, and messages overtake what waits.

mod frame;
mod reader;
mod state;
mod stream;
#[cfg(test)]
mod tests;
mod writer;

use std::fmt;
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use farhaul_udp::Clock;
use farhaul_units::Instant;

use self::frame::Frame;
use self::state::MuxState;
pub use self::stream::MuxStream;

/// Longest [`opening`] of a stream, in bytes.
pub const MOST_OPENING: usize = frame::MOST_DATA;
/// Bytes of the stream that may be underway or wait at the peer: 1 Gbit/s for 130 ms. A channel of OpenSSH itself has 2 MiB underway.
const WINDOW: u64 = 16 << 20;
/// Time without a word of the peer after which it is lost, unless the stream has another one: the contract of the command line.
const SILENCE: Duration = Duration::from_secs(30);
/// Longest wait without a look at the clock: a peer may have fallen silent.
const LOOK: Duration = Duration::from_secs(1);

/// One end of the pipes. Clones share it. Its threads last as long as the pipes.
#[derive(Clone)]
pub struct Mux(Arc<Shared>);

struct Shared {
    state: Mutex<MuxState>,
    /// There is work for the writer.
    work: Condvar,
    /// There is room for frames, or something to read, or the stream has ended.
    changed: Condvar,
    clock: Clock,
    is_cancelled: AtomicBool,
    /// Where the frames of the stream go, if they are for somebody else.
    relayed_to: OnceLock<Weak<Shared>>,
}

/// The bytes of a pipe whose stream begins with this `data`, no more than [`MOST_OPENING`] of it. They may come in another way, before
/// the mux of their side begins: see [`Mux::begin`].
pub fn opening(data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    if !data.is_empty() {
        Frame::Data(data).put(&mut bytes);
    }
    bytes
}

/// Nobody takes it any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone;

impl Mux {
    /// Begins to read and to write, on threads of its own. `first` are bytes that were received already, and the peer has an
    /// [`opening`] of so many bytes. `hear` gets the messages of the peer, until it says that nobody wants more; `at_end` is called once nothing more
    /// comes.
    pub fn begin(
        (from, first): (impl Read + Send + 'static, Vec<u8>),
        (to, opening): (impl Write + Send + 'static, usize),
        hear: impl FnMut(&[u8]) -> Result<(), Gone> + Send + 'static,
        at_end: impl FnOnce() + Send + 'static,
    ) -> io::Result<Self> {
        let clock = Clock::start();
        let mut state = MuxState::new(clock.now());
        state.has_sent(opening, clock.now());
        let mux = Self(Arc::new(Shared {
            state: Mutex::new(state),
            work: Condvar::new(),
            changed: Condvar::new(),
            clock,
            is_cancelled: AtomicBool::new(false),
            relayed_to: OnceLock::new(),
        }));
        let (reads, writes) = (Arc::clone(&mux.0), Arc::clone(&mux.0));
        thread::Builder::new().name("mux:out".into()).spawn(move || writes.write_to(to))?;
        thread::Builder::new().name("mux:in".into()).spawn(move || {
            reads.read_from((from, first), hear);
            at_end();
        })?;
        Ok(mux)
    }

    /// Says something to the peer. Waits while too much that was said before has not left.
    ///
    /// # Errors
    /// The pipe is gone.
    pub fn say(&self, message: &[u8]) -> Result<(), Gone> {
        let mut state = self.0.state();
        while !state.hears_more() {
            state = self.0.wait_until(state, None);
        }
        state.put(Frame::Message(message))?;
        drop(state);
        self.0.work.notify_one();
        Ok(())
    }

    /// Its stream. There is one, whose peer is lost once it was silent for so long.
    pub fn stream(&self, silence: Duration) -> MuxStream {
        self.0.state().silence = silence;
        MuxStream::of(&self.0)
    }

    /// Hands the stream of the peer of this one to that of `other`, whatever they say. Messages still come here.
    pub fn relay_to(&self, other: &Self) {
        let _ = self.0.relayed_to.set(Arc::downgrade(&other.0));
    }

    /// Waits until everything was written, at most for this time.
    pub fn flush(&self, time: Duration) {
        let deadline = self.0.clock.now() + time;
        let mut state = self.0.state();
        while !state.is_written() && !state.is_pipe_gone() && self.0.clock.now() < deadline {
            state = self.0.wait_until(state, Some(deadline));
        }
    }

    /// Closes the outgoing pipe once everything was written.
    pub fn hang_up(&self) {
        self.0.state().hang_up();
        self.0.work.notify_one();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, MuxState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Acquire)
    }

    /// Notifies everybody that waits.
    fn notify(&self) {
        // A thread that has looked and does not wait yet has it locked.
        drop(self.state());
        self.work.notify_one();
        self.changed.notify_all();
    }

    /// Waits for a change, until the deadline, and no longer than until the next look at a silent peer.
    fn wait_until<'a>(&self, state: MutexGuard<'a, MuxState>, deadline: Option<Instant>) -> MutexGuard<'a, MuxState> {
        let left = deadline.map_or(LOOK, |deadline| deadline.saturating_since(self.clock.now()).min(LOOK));
        let mut state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        state.look(self.clock.now());
        state
    }
}

impl fmt::Debug for Mux {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mux").field("state", &*self.0.state()).finish_non_exhaustive()
    }
}
