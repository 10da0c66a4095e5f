//! The sender of files.

mod answers;
mod buffer;
mod content;
mod entries;
mod plan;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use super::{FileEvent, MAX_EVENTS, Progress, Totals, Unanswered};
use crate::course::Course;
use crate::error::{Abort, SessionError, Violation};
use crate::figures::Figures;
use crate::frame_kind::FrameKind;
use crate::framing::{Decoded, Decoder};
use crate::handshake::{Accept, INITIAL_CREDIT, Open};
use crate::integrity::Digest;
use crate::manifest::{Entry, EntryId, OpenDirectories};
use crate::name_list::{NameList, NameListBuilder};
use crate::pending_entries::PendingEntries;
use crate::refusal::put_abort;
use crate::request::flows::Bonding;
use crate::request::{Push, Request};
use crate::rules::{Rules, Skip};
use crate::sender_request::Unable;
use crate::store::{Change, Source};
use buffer::{Buffer, MARGIN};
use content::{Current, Repairs};
use plan::Plan;

pub(super) use content::update_zeros;

/// Most bytes read, hashed and framed at a time. It suits disks, and the bytes stay in the processor's cache until the
/// transport has taken them.
const BLOCK: usize = 256 << 10;
/// Smallest piece before the end of a chunk, so that a nearly full buffer does not cause smaller ones.
const WORTHWHILE: usize = BLOCK / 4;

/// Sends files and directories and learns the result for each.
///
/// **Contract.** Sans-IO: the driver moves bytes. After any input, it does the following:
///
/// 1. It writes the bytes of [`poll_write`](Self::poll_write) as far as the stream takes them.
/// 2. It reports the number of bytes by [`handle_written`](Self::handle_written).
/// 3. It repeats this until nothing is pending or the stream is full.
/// 4. It drains [`poll_event`](Self::poll_event).
///
/// The driver always passes received bytes, even with much to write, because grants and answers arrive that way. The
/// first frame comes before the source is used, because the peer does not wait for a disk.
///
/// Once [`is_over`](Self::is_over) is true, the driver writes the pending bytes and finishes the stream. Only
/// [`FileEvent::Done`] means success.
#[derive(Debug)]
pub struct FileSender {
    decoder: Decoder,
    /// Unwritten bytes of the first frame.
    first_frame: usize,
    state: SendState,
}

#[derive(Debug, Default)]
struct SendState {
    course: Course<SendPhase>,
    /// The answer to this side's OPEN is missing.
    awaits_accept: bool,
    /// The names that the receiver restricts the copy to. Nothing is announced before.
    names: Names,
    out: Buffer,
    events: VecDeque<FileEvent>,
    open: OpenDirectories<EntryId>,
    /// Entries without their last answer.
    pending: PendingEntries<Pending>,
    /// Those among them that are no open directories.
    waiting: Unanswered,
    /// Files among them whose content the receiver may still ask for.
    undecided: u64,
    /// Files that this side gave up before their first answer, which is still in flight.
    given_up: BTreeSet<EntryId>,
    /// Whether any file was answered.
    is_heard: bool,
    /// Until then, the files announced and not sent.
    unrequested: VecDeque<EntryId>,
    /// Files that are wanted and not sent, in the order of the answers.
    wanted: VecDeque<EntryId>,
    repairs: Repairs,
    current: Option<Current>,
    /// Entries whose last answer the source does not know of yet.
    forgotten: Vec<EntryId>,
    /// Entries announced since the last piece of content.
    between: u32,
    /// The source has no more entries.
    is_walked: bool,
    /// Whether a file that changes all the time is accepted.
    allows_changes: bool,
    /// Nothing is sent of a file that differs.
    compares_only: bool,
    /// Number of the next entry, which equals the number of entries sent.
    entries: u64,
    skipped: u64,
    /// Files announced, and their bytes. `None` once one of them has no size.
    expected: Option<(u64, u64)>,
    sent: u64,
    spared: u64,
    /// Bytes of holes hashed and of chunks compared since the last poll.
    work: u64,
    /// Files of which the receiver claims chunks.
    claimed: BTreeSet<EntryId>,
    granted: u64,
    stored: u64,
    totals: Totals,
    /// Files among those kept whose content was compared.
    compared: u64,
    /// The receiver's figures.
    peer: Option<Figures>,
    /// Room for chunks that are compared.
    scratch: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum SendPhase {
    #[default]
    Sending,
    /// END is queued, and answers are missing.
    Ended,
}

/// The list of names of a pull.
#[derive(Debug, Default)]
enum Names {
    /// There is none, or the source has it.
    #[default]
    None,
    Incomplete(NameListBuilder),
    Complete(NameList),
}

/// An entry without its last answer.
#[derive(Debug)]
struct Pending {
    entry: Arc<Entry>,
    /// Its memory, once it counts among those that wait.
    weight: Option<usize>,
    stage: Stage,
    /// What it changes at the receiver.
    change: Change,
    /// Whether the receiver has said if it wants it. True for all but files.
    is_answered: bool,
    /// Whether chunks of it were sent.
    has_sent: bool,
    /// How often the receiver asked for damaged chunks.
    repairs: u8,
}

/// How far the content of a file is.
#[derive(Debug)]
enum Stage {
    Announced,
    /// In a box, because many files wait, and few of them have more than one chunk.
    Wanted(Box<Plan>),
    Sending,
    /// With this digest.
    Sent(Digest),
}

impl Pending {
    /// Whether its first answer is missing, and may ask for content. Content that was sent answers every question.
    const fn is_undecided(&self) -> bool {
        !self.is_answered && !matches!(self.stage, Stage::Sent(_))
    }
}

impl FileSender {
    /// A sender that pushes. The opening frame is pending at once, and the first data after it.
    pub fn push(push: Push) -> Self {
        Self::push_over(push, None)
    }

    /// The same, with an offer of further flows.
    pub fn push_over(push: Push, bonding: Option<Bonding>) -> Self {
        let mut state = SendState::new(true);
        state.obey(&push.rules);
        let credit = 0; // nothing comes back but answers
        state.out.put(|out| Open::new(Request::Push(push), credit).bonded_by(bonding).put(out));
        Self::begin(state)
    }

    /// A sender that serves an accepted pull. The driver has checked the request and made a [`Source`] for it. In the
    /// source each path appears under its last component.
    pub fn answer(open: &Open) -> Self {
        Self::answer_unable(open, Unable::default())
    }

    /// The same for a sender that cannot do some of what it was asked for. It tells the receiver.
    pub fn answer_unable(open: &Open, unable: Unable) -> Self {
        let mut state = SendState::new(false);
        state.granted = open.credit.max(INITIAL_CREDIT);
        if let Request::Pull(pull) = &open.request {
            state.obey(&pull.scope.rules);
            if pull.scope.names.is_some() {
                state.names = Names::Incomplete(NameListBuilder::default());
            }
        }
        state.out.put(|out| Accept::new(0).offering(unable.to_capabilities()).put(out));
        Self::begin(state)
    }

    fn begin(state: SendState) -> Self {
        Self { decoder: Decoder::default(), first_frame: state.out.pending().len(), state }
    }

    /// Takes received bytes and returns how many. If it takes fewer than passed, drain events first.
    ///
    /// # Errors
    /// The session has failed. The pending bytes tell the peer why. Later calls take and ignore everything.
    pub fn handle_received(&mut self, bytes: &[u8]) -> Result<usize, SessionError> {
        let mut rest = bytes;
        while !self.is_over() && self.state.events.len() < MAX_EVENTS {
            let handled = match self.decoder.next(&mut rest) {
                Ok(None) => break,
                Ok(Some(Decoded::Data(_))) => Err(Violation::OutOfPlace(FrameKind::Data).into()),
                Ok(Some(Decoded::Frame(kind, body))) => self.state.on_frame(kind, body),
                Err(violation) => Err(violation.into()),
            };
            handled.map_err(|error| self.state.fail(error))?;
        }
        Ok(if self.is_over() { bytes.len() } else { bytes.len() - rest.len() })
    }

    /// The peer's stream ended.
    ///
    /// # Errors
    /// It ended before every entry had its answer.
    pub fn handle_end(&mut self) -> Result<(), SessionError> {
        if self.is_over() { Ok(()) } else { Err(self.state.fail(SessionError::PeerLeft)) }
    }

    /// The unwritten part of the first frame, which needs no source. A driver with a source that opens slowly writes it
    /// first.
    pub fn first_frame(&self) -> &[u8] {
        &self.state.out.pending()[..self.first_frame]
    }

    /// Bytes to write: first the [first frame](Self::first_frame), then the source's data as far as credit and the buffer
    /// permit. Later calls may append to them until they are written.
    ///
    /// If there are none, wait for the peer. After [`Chunk::Pending`](crate::Chunk::Pending) or
    /// [`Next::Pending`](crate::Next::Pending), wait for the source too.
    pub fn poll_write<S: Source + ?Sized>(&mut self, source: &mut S) -> &[u8] {
        if self.first_frame > 0 {
            return self.first_frame();
        }
        // Small frames leave together with later data.
        if self.state.out.pending().len() < MARGIN || self.is_over() {
            self.state.fill(source);
        }
        self.state.out.pending()
    }

    /// The transport took the first `count` pending bytes.
    ///
    /// # Panics
    /// If fewer were pending.
    pub fn handle_written(&mut self, count: usize) {
        self.state.out.handle_written(count);
        self.first_frame = self.first_frame.saturating_sub(count);
    }

    /// The next event since the last call, oldest first.
    pub fn poll_event(&mut self) -> Option<FileEvent> {
        self.state.events.pop_front()
    }

    /// Stops the session. The pending bytes tell the peer, which keeps complete files.
    pub fn cancel(&mut self, abort: Abort) {
        if !self.is_over() {
            self.state.fail(SessionError::Cancelled(abort));
        }
    }

    /// Whether the session has ended. Pending bytes may remain to be written.
    pub const fn is_over(&self) -> bool {
        self.state.course.is_over()
    }

    /// Why the session failed, if it did.
    pub const fn error(&self) -> Option<&SessionError> {
        self.state.course.error()
    }

    /// The progress so far.
    pub fn progress(&self) -> Progress {
        let state = &self.state;
        let current = state.current.as_ref().map(|current| (current.id, current.entry.size, current.done));
        let SendState { entries, sent: bytes, spared, stored, .. } = *state;
        Progress { entries, bytes, spared, stored, current }
    }

    /// The results that the receiver has confirmed so far.
    pub const fn totals(&self) -> Totals {
        self.state.totals
    }

    /// The receiver's figures, once the session is done.
    pub const fn peer_figures(&self) -> Option<&Figures> {
        self.state.peer.as_ref()
    }
}

impl SendState {
    fn new(awaits_accept: bool) -> Self {
        Self { awaits_accept, expected: Some((0, 0)), granted: INITIAL_CREDIT, ..Self::default() }
    }

    fn obey(&mut self, rules: &Rules) {
        self.allows_changes = rules.allow_changing;
        let compares = rules.skip == Skip::Digest;
        self.compares_only = compares && rules.dry_run;
        // Content before the first answer may be what the receiver has.
        self.is_heard = compares;
    }

    /// An entry has its last answer, or needs none any more.
    fn take_pending(&mut self, id: EntryId) -> Option<Pending> {
        let pending = self.pending.remove(id)?;
        self.claimed.remove(&id);
        if let Some(weight) = pending.weight {
            self.waiting.remove(weight);
        }
        Some(pending)
    }

    fn fail(&mut self, error: SessionError) -> SessionError {
        self.course.fail(error, |abort| self.out.put(|out| put_abort(out, abort)))
    }
}
