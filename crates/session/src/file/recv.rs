//! The receiver of files.

mod answers;
mod content;
mod directories;
mod entries;
mod first_names;
mod requested_entries;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::{FileEvent, MAX_EVENTS, MAX_WORK, Progress, Totals};
use crate::course::Course;
use crate::error::{Abort, SessionError};
use crate::figures::Figures;
use crate::framing::{Decoded, Decoder};
use crate::handshake::{Accept, INITIAL_CREDIT, Open};
use crate::integrity::Digest;
use crate::manifest::{Entry, EntryId, OpenDirectories};
use crate::outbox::Outbox;
use crate::request::flows::Bonding;
use crate::request::{CopyScope, Pull, Request, RequestError};
use crate::rules::{Kept, Rules};
use crate::store::{Change, Store};
use content::{Content, Pending};
use directories::Directories;
use first_names::FirstNames;
use requested_entries::RequestedEntries;

/// Largest number of commits in progress. Above it, the receiver takes no more input until some are done.
const MAX_COMMITTING: usize = 4096;
/// Most digests of known chunks that wait until the sender has compared them: those of 16 GiB. Meanwhile the store reads no further.
const MAX_KNOWN: usize = 1 << 14;
/// A grant is sent once it is worth this part of the window: rarely, but long before the sender's credit ends.
const GRANT_PART: u64 = 8;

/// Limits of a receiver for its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiveLimits {
    /// Bytes that the sender may be ahead of this side's disk, at least 1 MiB. Default 256 MiB. A value below 8/7 of
    /// the path's bandwidth × RTT limits the rate.
    pub window: u64,
    /// Largest file in bytes. Larger files fail, and the others continue. Default: no limit.
    pub file_size: u64,
    /// Most bytes in a session. More end it. Default: no limit.
    pub bytes: u64,
    /// Most entries in a session, skipped ones included. More end it. Default: no limit, because entries cost no
    /// memory.
    pub entries: u64,
}

impl Default for ReceiveLimits {
    fn default() -> Self {
        Self { window: 256 << 20, file_size: u64::MAX, bytes: u64::MAX, entries: u64::MAX }
    }
}

/// Receives files and directories into a [`Store`], verifies them and answers for each.
///
/// **Contract.** As for [`FileSender`](crate::FileSender), with input and output exchanged. The driver writes pending
/// bytes before it passes input, because input may take as long as the disk. A peer gives up if its opening is not
/// answered soon.
///
/// Received bytes go to [`handle_received`](Self::handle_received), best 64 to 256 KiB at a time. The session hashes
/// file content and passes it to the store in slices of this input. If it takes fewer bytes than passed, the driver
/// writes pending bytes, drains events, looks whether the session is to be cancelled, and passes the rest again. After progress of a store in the background, the
/// driver calls [`handle_store`](Self::handle_store).
#[derive(Debug)]
pub struct FileReceiver {
    decoder: Decoder,
    state: RecvState,
}

#[derive(Debug, Default)]
struct RecvState {
    course: Course<RecvPhase>,
    /// The answer to this side's OPEN is missing.
    awaits_accept: bool,
    limits: ReceiveLimits,
    /// What this side requested. Whoever pushes in their own name may send anything.
    requested: Option<RequestedEntries>,
    /// What the copy keeps of an entry.
    keep: Kept,
    /// Nothing is changed, so a file may turn out to differ without its content.
    dry_run: bool,
    out: Outbox,
    events: VecDeque<FileEvent>,
    /// The entry announced last. The next one is mostly in the same directory.
    last: Option<Arc<Entry>>,
    /// Directories of that entry.
    open: OpenDirectories<EntryId>,
    directories: Directories,
    /// Files announced whose content has not arrived as a whole.
    pending: BTreeMap<EntryId, Pending>,
    /// Files announced that are examined once the store compares fewer others.
    later: VecDeque<(EntryId, Arc<Entry>, Option<EntryId>)>,
    /// Files of which further names may follow.
    first_names: FirstNames,
    /// The file whose content arrives.
    content: Option<Content>,
    committing: BTreeMap<EntryId, Committing>,
    /// Whether surplus entries may be removed, once everything else is answered.
    may_delete: bool,
    /// Number of the next entry, which equals the number of entries announced.
    entries: u64,
    skipped: u64,
    received: u64,
    spared: u64,
    /// Bytes of holes that were hashed for the input under way.
    work: u64,
    /// Files with damaged chunks.
    repairing: usize,
    /// Digests of known chunks that the sender has not compared yet.
    known: usize,
    granted: u64,
    stored: u64,
    totals: Totals,
    /// Files among those kept whose content was compared.
    compared: u64,
    /// The sender's figures.
    peer: Option<Figures>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum RecvPhase {
    #[default]
    Receiving,
    /// END has arrived, and commits or repairs are in progress.
    Ended,
    /// Every entry is answered, and surplus entries of the target are removed.
    Deleting,
}

#[derive(Debug)]
struct Committing {
    entry: Arc<Entry>,
    /// The directory that waits for it.
    parent: Option<EntryId>,
    change: Change,
    /// Digest of a file; `None` for others.
    digest: Option<Digest>,
}

impl FileReceiver {
    /// A receiver that pulls. The opening frame is pending at once.
    ///
    /// # Errors
    /// The request does not fit in one session.
    pub fn pull(pull: impl Into<Pull>, limits: ReceiveLimits) -> Result<Self, RequestError> {
        Self::pull_over(pull.into(), limits, None)
    }

    /// The same, with an offer of further flows.
    ///
    /// # Errors
    /// As for [`pull`](Self::pull).
    pub fn pull_over(pull: Pull, limits: ReceiveLimits, bonding: Option<Bonding>) -> Result<Self, RequestError> {
        let scope = &pull.scope;
        scope.check()?;
        let mut state = RecvState::new(limits, true);
        state.requested = Some(RequestedEntries::new(scope));
        state.obey(&scope.rules);
        let names = scope.names.clone();
        Open::new(Request::Pull(pull), state.granted).bonded_by(bonding).put(state.out.bytes());
        if let Some(names) = names {
            names.put(state.out.bytes());
        }
        Ok(Self { decoder: Decoder::default(), state })
    }

    /// A receiver that serves an accepted push. The driver has checked the request and made a [`Store`] for its target.
    pub fn answer(open: &Open, limits: ReceiveLimits) -> Self {
        let rules = if let Request::Push(push) = &open.request { push.rules.clone() } else { Rules::default() };
        Self::accepting(None, &rules, limits)
    }

    /// A receiver that serves a push on behalf of a third side, which wants this scope. As in a pull, any other entry ends the
    /// session.
    pub fn answer_only(_open: &Open, scope: &CopyScope, limits: ReceiveLimits) -> Self {
        Self::accepting(Some(RequestedEntries::new(scope)), &scope.rules, limits)
    }

    fn accepting(requested: Option<RequestedEntries>, rules: &Rules, limits: ReceiveLimits) -> Self {
        let mut state = RecvState::new(limits, false);
        state.obey(rules);
        state.requested = requested;
        Accept::new(state.granted).put(state.out.bytes());
        Self { decoder: Decoder::default(), state }
    }

    /// Takes received bytes and returns how many.
    ///
    /// # Errors
    /// The session has failed. The pending bytes tell the peer why. Nothing stays open in the store. Later calls take
    /// and ignore everything.
    pub fn handle_received<S: Store + ?Sized>(&mut self, store: &mut S, bytes: &[u8]) -> Result<usize, SessionError> {
        if !self.state.committing.is_empty() || store.has_unknown() {
            self.handle_store(store)?;
        }
        let mut rest = bytes;
        self.state.work = 0;
        while !self.is_over() && self.state.has_room() && self.state.work < MAX_WORK {
            let handled = match self.decoder.next(&mut rest) {
                Ok(None) => break,
                Ok(Some(Decoded::Data(data))) => self.state.on_data(store, data),
                Ok(Some(Decoded::Frame(kind, body))) => self.state.on_frame(store, kind, body),
                Err(violation) => Err(violation.into()),
            };
            let handled = handled.and_then(|()| self.state.examine_later(store));
            handled.map_err(|error| self.state.fail(store, error))?;
        }
        Ok(if self.is_over() { bytes.len() } else { bytes.len() - rest.len() })
    }

    /// Checks a store that works in the background for progress.
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
    /// It ended before every entry had its answer. The store keeps partial files as it does after any abort.
    pub fn handle_end<S: Store + ?Sized>(&mut self, store: &mut S) -> Result<(), SessionError> {
        if self.is_over() { Ok(()) } else { Err(self.state.fail(store, SessionError::PeerLeft)) }
    }

    /// Bytes to write. They stay the same until [`handle_written`](Self::handle_written).
    pub fn poll_write(&self) -> &[u8] {
        self.state.out.pending()
    }

    /// The transport took the first `count` pending bytes.
    ///
    /// # Panics
    /// If fewer were pending.
    pub fn handle_written(&mut self, count: usize) {
        self.state.out.handle_written(count);
    }

    /// The next event since the last call, oldest first.
    pub fn poll_event(&mut self) -> Option<FileEvent> {
        self.state.events.pop_front()
    }

    /// Stops the session. The pending bytes tell the peer. Complete files stay.
    pub fn cancel<S: Store + ?Sized>(&mut self, store: &mut S, abort: Abort) {
        if !self.is_over() {
            self.state.fail(store, SessionError::Cancelled(abort));
        }
    }

    /// Whether the session has ended. Pending bytes may remain to be written.
    pub const fn is_over(&self) -> bool {
        self.state.course.is_over()
    }

    /// Whether this side has something to do without further input: it removes entries, and paused because its answers were not
    /// written. Then the driver calls [`handle_store`](Self::handle_store).
    pub fn is_busy(&self) -> bool {
        self.state.course.is_at(RecvPhase::Deleting)
    }

    /// Why the session failed, if it did.
    pub const fn error(&self) -> Option<&SessionError> {
        self.state.course.error()
    }

    /// The progress so far.
    pub fn progress(&self) -> Progress {
        let state = &self.state;
        let current = state.content.as_ref().and_then(|content| state.progress_of(content));
        let RecvState { entries, received: bytes, spared, stored, .. } = *state;
        Progress { entries, bytes, spared, stored, current }
    }

    /// The results so far.
    pub const fn totals(&self) -> Totals {
        self.state.totals
    }

    /// Bytes that are kept of what the sender announced, roughly.
    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        self.state.directories.kept() + self.state.first_names.kept()
    }

    /// The sender's figures, once all data has arrived.
    pub const fn peer_figures(&self) -> Option<&Figures> {
        self.state.peer.as_ref()
    }
}

impl RecvState {
    fn new(limits: ReceiveLimits, awaits_accept: bool) -> Self {
        let granted = limits.window.max(INITIAL_CREDIT);
        Self { awaits_accept, limits, granted, ..Self::default() }
    }

    const fn obey(&mut self, rules: &Rules) {
        (self.keep, self.dry_run) = (rules.keep, rules.dry_run);
    }

    /// Whether to take more input. One frame causes at most an answer per open directory.
    fn has_room(&self) -> bool {
        !self.out.is_full() && self.events.len() < MAX_EVENTS && self.committing.len() < MAX_COMMITTING
    }
}
