//! The side that has the files.

mod answers;
mod buffer;
mod entries;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::{FileEvent, MAX_EVENTS, Progress, Totals};
use crate::course::Course;
use crate::error::{Abort, SessionError, Violation};
use crate::figures::Figures;
use crate::framing::{Decoder, FrameKind, HEADER_LEN, Piece};
use crate::integrity::{Digest, Hasher};
use crate::manifest::{Entry, EntryId, OpenDirectories};
use crate::opening::{Accept, INITIAL_CREDIT, Open, Push, Request, put_abort};
use crate::store::Source;
use buffer::{Buffer, MARGIN};

/// Most bytes read, hashed and framed at a time: enough for a disk, few enough to stay in the processor's cache until
/// the transport has taken them.
const CHUNK: usize = 256 << 10;
/// A chunk smaller than this only at the end of a file: not because the buffer happens to be nearly full.
const WORTHWHILE: usize = CHUNK / 4;
/// Entries that may wait for the receiver's answer, beside the directories that are open. At an RTT of 100 ms this
/// allows 40 000 small files per second.
const MAX_UNCONFIRMED: usize = 4096;

/// Sends files and directories and learns what became of them.
///
/// **Contract.** Sans-IO: the host moves bytes. After any input it writes [`poll_write`](Self::poll_write)'s bytes as
/// far as the stream takes them, tells how many by [`handle_written`](Self::handle_written), and repeats until nothing
/// is pending or the stream is full; then it drains [`poll_event`](Self::poll_event). Received bytes are always given,
/// also while there is much to write: grants and answers come that way. The first frame comes before the source is
/// touched, since the peer does not wait for a disk to hear it. When [`is_over`](Self::is_over), the pending
/// bytes are written and the stream is finished. Success is [`FileEvent::Done`] and nothing else.
#[derive(Debug)]
pub struct FileSender {
    decoder: Decoder,
    /// Bytes of the first frame that are not written yet.
    opening: usize,
    state: State,
}

#[derive(Debug)]
struct State {
    course: Course<Phase>,
    /// The answer to our OPEN is still to come.
    awaits_accept: bool,
    out: Buffer,
    events: VecDeque<FileEvent>,
    open: OpenDirectories<EntryId>,
    current: Option<Current>,
    hasher: Hasher,
    unconfirmed: BTreeMap<EntryId, Unconfirmed>,
    /// Number of the next entry, which is the count of those sent.
    entries: u64,
    skipped: u64,
    sent: u64,
    granted: u64,
    stored: u64,
    totals: Totals,
    /// What the receiver reported about itself.
    peer: Option<Figures>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Sending,
    /// END is written; answers are missing.
    Ended,
}

#[derive(Debug)]
struct Current {
    id: EntryId,
    entry: Arc<Entry>,
    sent: u64,
    /// The receiver cannot take it: no use in going on.
    refused: bool,
}

#[derive(Debug)]
struct Unconfirmed {
    entry: Arc<Entry>,
    /// Of a file that was sent completely.
    digest: Option<Digest>,
}

impl FileSender {
    /// A sender that connects and pushes; the opening frame is pending at once, and the first data after it.
    pub fn connect(push: Push) -> Self {
        let mut state = State::new(true);
        let credit = 0; // nothing comes back but answers
        state.out.put(|out| Open::new(Request::Push(push), credit).put(out));
        Self::begin(state)
    }

    /// A sender that serves an accepted pull. The host has checked the request and made a [`Source`] of what it asks
    /// for, in which each path comes under its last component.
    pub fn accept(open: &Open) -> Self {
        let mut state = State::new(false);
        state.granted = open.credit.max(INITIAL_CREDIT);
        state.out.put(|out| Accept::new(0).put(out));
        Self::begin(state)
    }

    fn begin(state: State) -> Self {
        Self { decoder: Decoder::default(), opening: state.out.pending().len(), state }
    }

    /// Takes received bytes; how many of them. Fewer than given: events are to be drained first.
    ///
    /// # Errors
    /// The session is over and failed; what is pending tells the peer why. Later calls take and ignore everything.
    pub fn handle_received(&mut self, bytes: &[u8]) -> Result<usize, SessionError> {
        let mut rest = bytes;
        while !self.is_over() && self.state.events.len() < MAX_EVENTS {
            let handled = match self.decoder.next(&mut rest) {
                Ok(None) => break,
                Ok(Some(Piece::Data(_))) => Err(Violation::OutOfPlace(FrameKind::Data).into()),
                Ok(Some(Piece::Frame(kind, body))) => self.state.on_frame(kind, body),
                Err(violation) => Err(violation.into()),
            };
            handled.map_err(|error| self.state.fail(error))?;
        }
        Ok(if self.is_over() { bytes.len() } else { bytes.len() - rest.len() })
    }

    /// The peer's stream ended.
    ///
    /// # Errors
    /// It ended before every entry was answered.
    pub fn handle_end(&mut self) -> Result<(), SessionError> {
        if self.is_over() { Ok(()) } else { Err(self.state.fail(SessionError::PeerLeft)) }
    }

    /// The first frame, as far as it is not written: pending without a source. A driver whose source takes long to
    /// open writes it before that.
    pub fn opening(&self) -> &[u8] {
        &self.state.out.pending()[..self.opening]
    }

    /// Bytes to write: first the [`opening`](Self::opening), then what the source gives as far as credit and the buffer
    /// allow. Until they are written, later calls may append to them. Empty: wait for the peer or, after
    /// [`Chunk::Pending`](crate::Chunk::Pending) or [`Next::Pending`](crate::Next::Pending), for the source.
    pub fn poll_write<S: Source + ?Sized>(&mut self, source: &mut S) -> &[u8] {
        if self.opening > 0 {
            return self.opening();
        }
        // Small frames leave together with the data after them.
        if self.state.out.pending().len() < MARGIN || self.is_over() {
            self.state.fill(source);
        }
        self.state.out.pending()
    }

    /// The first `count` bytes that were pending are with the transport.
    ///
    /// # Panics
    /// If fewer were pending.
    pub fn handle_written(&mut self, count: usize) {
        self.state.out.handle_written(count);
        self.opening = self.opening.saturating_sub(count);
    }

    /// What happened since the last call.
    pub fn poll_event(&mut self) -> Option<FileEvent> {
        self.state.events.pop_front()
    }

    /// Stops: the peer is told by what is then pending, and keeps what is complete.
    pub fn cancel(&mut self, abort: Abort) {
        if !self.is_over() {
            self.state.fail(SessionError::Cancelled(abort));
        }
    }

    /// Whether nothing more will happen, apart from writing what is pending.
    pub const fn is_over(&self) -> bool {
        self.state.course.is_over()
    }

    /// Why the session failed, if it did.
    pub const fn error(&self) -> Option<&SessionError> {
        self.state.course.error()
    }

    /// How far it is.
    pub fn progress(&self) -> Progress {
        let state = &self.state;
        let current = state.current.as_ref().map(|current| (current.id, current.entry.size, current.sent));
        Progress { entries: state.entries, bytes: state.sent, stored: state.stored, current }
    }

    /// What the receiver has confirmed so far.
    pub const fn totals(&self) -> Totals {
        self.state.totals
    }

    /// What the receiver reported about itself; known once the session is done.
    pub const fn peer_figures(&self) -> Option<&Figures> {
        self.state.peer.as_ref()
    }

    /// Whether a file waits for the receiver's grant: its disk is what limits.
    pub const fn waits_for_grant(&self) -> bool {
        self.state.current.is_some() && self.state.sent >= self.state.granted
    }
}

impl State {
    fn new(awaits_accept: bool) -> Self {
        Self {
            course: Course::At(Phase::Sending),
            awaits_accept,
            out: Buffer::new(HEADER_LEN + CHUNK),
            events: VecDeque::new(),
            open: OpenDirectories::default(),
            current: None,
            hasher: Hasher::default(),
            unconfirmed: BTreeMap::new(),
            entries: 0,
            skipped: 0,
            sent: 0,
            granted: INITIAL_CREDIT,
            stored: 0,
            totals: Totals::default(),
            peer: None,
        }
    }

    fn fail(&mut self, error: SessionError) -> SessionError {
        self.course.fail(error, |abort| self.out.put(|out| put_abort(out, abort)))
    }
}
