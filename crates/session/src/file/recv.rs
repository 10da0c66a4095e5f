//! The side that gets the files.

mod answers;
mod entries;
mod wanted;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::{FileEvent, MAX_EVENTS, Progress, Totals};
use crate::course::Course;
use crate::error::{Abort, SessionError};
use crate::figures::Figures;
use crate::framing::{Decoder, Piece};
use crate::integrity::{Digest, Hasher};
use crate::manifest::{Entry, EntryId, OpenDirectories};
use crate::opening::{Accept, INITIAL_CREDIT, Open, Pull, Request, RequestError};
use crate::outbox::Outbox;
use crate::store::Store;
use wanted::Wanted;

/// Commits that may be under way at a time; then no more input is taken until some are done.
const MAX_COMMITTING: usize = 4096;
/// A grant is sent once it is worth this part of the window: rarely, but long before the sender runs dry.
const GRANT_PART: u64 = 8;

/// What a receiver lets a sender do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiveLimits {
    /// Bytes that the sender may be ahead of this side's disk; at least 1 MiB is granted. Must exceed the bandwidth ×
    /// RTT of the path by a seventh, or it limits the rate. Default 256 MiB.
    pub window: u64,
    /// Largest file in bytes; larger ones fail, the others go on. Default: no limit.
    pub file_size: u64,
    /// Most bytes in a session; more ends it. Default: no limit.
    pub bytes: u64,
    /// Most entries, skipped ones included, in a session; more ends it. Default: no limit, since entries cost no memory.
    pub entries: u64,
}

impl Default for ReceiveLimits {
    fn default() -> Self {
        Self { window: 256 << 20, file_size: u64::MAX, bytes: u64::MAX, entries: u64::MAX }
    }
}

/// Receives files and directories into a [`Store`], verifies them and answers for each.
///
/// **Contract.** As for [`FileSender`](crate::FileSender), with input and output exchanged. What is pending is written
/// before input is given, which may take as long as the disk does: the peer gives up an opening that is not answered
/// soon. Received bytes go through
/// [`handle_received`](Self::handle_received), best 64 to 256 KiB at a time: file content goes on to the store in
/// slices of what is given here, hashed just before. When it takes fewer bytes than given, the host writes what is pending,
/// drains events, and gives the rest again. After progress of a store that works in the background it calls
/// [`handle_store`](Self::handle_store).
#[derive(Debug)]
pub struct FileReceiver {
    decoder: Decoder,
    state: State,
}

#[derive(Debug)]
struct State {
    course: Course<Phase>,
    /// The answer to our OPEN is still to come.
    awaits_accept: bool,
    limits: ReceiveLimits,
    /// What a pull asked for; a push may bring anything.
    wanted: Option<Wanted>,
    out: Outbox,
    events: VecDeque<FileEvent>,
    open: OpenDirectories<Directory>,
    current: Option<Current>,
    hasher: Hasher,
    committing: BTreeMap<EntryId, Committing>,
    /// Number of the next entry, which is the count of those begun.
    entries: u64,
    skipped: u64,
    received: u64,
    granted: u64,
    stored: u64,
    totals: Totals,
    /// What the sender reported about itself.
    peer: Option<Figures>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Receiving,
    /// END came; commits are under way.
    Ended,
}

#[derive(Debug)]
struct Directory {
    id: EntryId,
    entry: Arc<Entry>,
    /// Whether it stands, so that entries can be made in it.
    stands: bool,
}

#[derive(Debug)]
struct Current {
    id: EntryId,
    entry: Arc<Entry>,
    received: u64,
    /// It failed and was reported; what still comes is thrown away.
    refused: bool,
}

#[derive(Debug)]
struct Committing {
    entry: Arc<Entry>,
    /// Of a file; directories have none.
    digest: Option<Digest>,
}

impl FileReceiver {
    /// A receiver that connects and pulls; the opening frame is pending at once.
    ///
    /// # Errors
    /// The request cannot be made in one session.
    pub fn connect(pull: Pull, limits: ReceiveLimits) -> Result<Self, RequestError> {
        pull.check()?;
        let mut state = State::new(limits, true);
        state.wanted = Some(Wanted::new(&pull));
        Open::new(Request::Pull(pull), state.granted).put(state.out.bytes());
        Ok(Self { decoder: Decoder::default(), state })
    }

    /// A receiver that serves an accepted push. The host has checked the request and made a [`Store`] for its target.
    pub fn accept(_open: &Open, limits: ReceiveLimits) -> Self {
        let mut state = State::new(limits, false);
        Accept::new(state.granted).put(state.out.bytes());
        Self { decoder: Decoder::default(), state }
    }

    /// Takes received bytes; how many of them.
    ///
    /// # Errors
    /// The session is over and failed; what is pending tells the peer why. Nothing stays open in the store. Later
    /// calls take and ignore everything.
    pub fn handle_received<S: Store + ?Sized>(&mut self, store: &mut S, bytes: &[u8]) -> Result<usize, SessionError> {
        if !self.state.committing.is_empty() {
            self.handle_store(store)?;
        }
        let mut rest = bytes;
        while !self.is_over() && self.state.has_room() {
            let handled = match self.decoder.next(&mut rest) {
                Ok(None) => break,
                Ok(Some(Piece::Data(data))) => self.state.on_data(store, data),
                Ok(Some(Piece::Frame(kind, body))) => self.state.on_frame(store, kind, body),
                Err(violation) => Err(violation.into()),
            };
            handled.map_err(|error| self.state.fail(store, error))?;
        }
        Ok(if self.is_over() { bytes.len() } else { bytes.len() - rest.len() })
    }

    /// The store may have got on with what it does in the background.
    ///
    /// # Errors
    /// As for [`handle_received`](Self::handle_received).
    pub fn handle_store<S: Store + ?Sized>(&mut self, store: &mut S) -> Result<(), SessionError> {
        if self.is_over() {
            return Ok(());
        }
        self.state.on_store(store).map_err(|error| self.state.fail(store, error))
    }

    /// The peer's stream ended.
    ///
    /// # Errors
    /// It ended before every entry was answered; partial files are kept as the store keeps them.
    pub fn handle_end<S: Store + ?Sized>(&mut self, store: &mut S) -> Result<(), SessionError> {
        if self.is_over() { Ok(()) } else { Err(self.state.fail(store, SessionError::PeerLeft)) }
    }

    /// Bytes to write; the same until [`handle_written`](Self::handle_written).
    pub fn poll_write(&self) -> &[u8] {
        self.state.out.pending()
    }

    /// The first `count` bytes that were pending are with the transport.
    ///
    /// # Panics
    /// If fewer were pending.
    pub fn handle_written(&mut self, count: usize) {
        self.state.out.handle_written(count);
    }

    /// What happened since the last call.
    pub fn poll_event(&mut self) -> Option<FileEvent> {
        self.state.events.pop_front()
    }

    /// Stops: the peer is told by what is then pending; what is complete stays.
    pub fn cancel<S: Store + ?Sized>(&mut self, store: &mut S, abort: Abort) {
        if !self.is_over() {
            self.state.fail(store, SessionError::Cancelled(abort));
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
        let current = state.current.as_ref().map(|current| (current.id, current.entry.size, current.received));
        Progress { entries: state.entries, bytes: state.received, stored: state.stored, current }
    }

    /// What is in place so far.
    pub const fn totals(&self) -> Totals {
        self.state.totals
    }

    /// What the sender reported about itself; known once all of it has come.
    pub const fn peer_figures(&self) -> Option<&Figures> {
        self.state.peer.as_ref()
    }
}

impl State {
    fn new(limits: ReceiveLimits, awaits_accept: bool) -> Self {
        Self {
            course: Course::At(Phase::Receiving),
            awaits_accept,
            limits,
            wanted: None,
            out: Outbox::default(),
            events: VecDeque::new(),
            open: OpenDirectories::default(),
            current: None,
            hasher: Hasher::default(),
            committing: BTreeMap::new(),
            entries: 0,
            skipped: 0,
            received: 0,
            granted: limits.window.max(INITIAL_CREDIT),
            stored: 0,
            totals: Totals::default(),
            peer: None,
        }
    }

    /// One frame may bring at most an answer per open directory.
    fn has_room(&self) -> bool {
        !self.out.is_full() && self.events.len() < MAX_EVENTS && self.committing.len() < MAX_COMMITTING
    }
}
