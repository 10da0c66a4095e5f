//! The side that has the files.

mod buffer;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::{FileEvent, MAX_EVENTS, Progress, Side, Totals, decode_failed, entry_id, put_failed};
use crate::error::{Abort, SessionError, Violation};
use crate::failure::{FailCode, Failure};
use crate::field::decode_whole;
use crate::figures::Figures;
use crate::framing::{Decoder, FrameKind, HEADER_LEN, Piece, header, put_frame};
use crate::integrity::{Digest, Hasher};
use crate::manifest::{Entry, EntryId, EntryKind, OpenDirectories, ShownPath};
use crate::opening::{Accept, INITIAL_CREDIT, Open, Push, Request, put_abort, received_abort};
use crate::store::{Chunk, Next, Source};
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
/// also while there is much to write: grants and answers come that way. When [`is_over`](Self::is_over), the pending
/// bytes are written and the stream is finished. Success is [`FileEvent::Done`] and nothing else.
#[derive(Debug)]
pub struct FileSender {
    decoder: Decoder,
    state: State,
}

#[derive(Debug)]
struct State {
    phase: Phase,
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

#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    Sending,
    /// END is written; answers are missing.
    Ended,
    Done,
    Failed(SessionError),
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
    /// A sender that connects and pushes; the opening frame and the first data are pending at once.
    pub fn connect(push: Push) -> Self {
        let mut state = State::new(true);
        let credit = 0; // nothing comes back but answers
        state.out.put(|out| Open::new(Request::Push(push), credit).put(out));
        Self { decoder: Decoder::default(), state }
    }

    /// A sender that serves an accepted pull. The host has checked the request and made a [`Source`] of what it asks
    /// for, in which each path comes under its last component.
    pub fn accept(open: &Open) -> Self {
        let mut state = State::new(false);
        state.granted = open.credit.max(INITIAL_CREDIT);
        state.out.put(|out| Accept::new(0).put(out));
        Self { decoder: Decoder::default(), state }
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

    /// Bytes to write, reading the source as far as credit and the buffer allow. Until they are written, later calls
    /// may append to them. Empty: wait for the peer or, after
    /// [`Chunk::Pending`] or [`Next::Pending`], for the source.
    pub fn poll_write<S: Source + ?Sized>(&mut self, source: &mut S) -> &[u8] {
        // The opening frame, for instance, leaves together with the first data.
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
        matches!(self.state.phase, Phase::Done | Phase::Failed(_))
    }

    /// Why the session failed, if it did.
    pub const fn error(&self) -> Option<&SessionError> {
        match &self.state.phase {
            Phase::Failed(error) => Some(error),
            _ => None,
        }
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

/// What goes out.
impl State {
    fn new(awaits_accept: bool) -> Self {
        Self {
            phase: Phase::Sending,
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

    fn fill<S: Source + ?Sized>(&mut self, source: &mut S) {
        if matches!(self.phase, Phase::Failed(_)) {
            if let Some(current) = self.current.take() {
                source.close(current.id);
            }
            return;
        }
        while self.phase == Phase::Sending && self.out.room() >= MARGIN {
            let moved = match &self.current {
                Some(current) if current.refused => self.end_current(source, Err(FailCode::GivenUp.into())),
                Some(current) if current.sent == current.entry.size => self.finish_current(source),
                Some(_) => self.send_chunk(source),
                None => self.next_entry(source),
            };
            if !moved {
                break;
            }
        }
    }

    /// Whether there may be more to do at once; the same for the steps below.
    fn next_entry<S: Source + ?Sized>(&mut self, source: &mut S) -> bool {
        let waiting = self.unconfirmed.len().saturating_sub(self.open.depth());
        if waiting >= MAX_UNCONFIRMED || self.events.len() >= MAX_EVENTS {
            return false;
        }
        let id = EntryId(self.entries);
        match source.next_entry(id) {
            Next::Pending => return false,
            Next::Skipped(path, failure) => self.skip(path, failure),
            Next::Entry(entry) => match self.open.admit(&entry.path) {
                Ok(depth) => self.begin(id, entry, depth),
                Err(_) => {
                    if entry.kind == EntryKind::File {
                        source.close(id);
                    }
                    let failure = Failure::new(FailCode::NameRefused, "the name comes twice or out of order");
                    self.skip(ShownPath::from(&entry.path), failure);
                }
            },
            Next::End => {
                let (entries, skipped) = (self.entries, self.skipped);
                let figures = Figures { bytes: self.sent, ..source.figures() };
                self.out.put(|out| {
                    put_frame(out, FrameKind::End, |out| {
                        out.extend_from_slice(&entries.to_be_bytes());
                        out.extend_from_slice(&skipped.to_be_bytes());
                        figures.encode(out);
                    });
                });
                self.phase = Phase::Ended;
            }
        }
        true
    }

    fn skip(&mut self, path: ShownPath, failure: Failure) {
        self.out.put(|out| {
            put_frame(out, FrameKind::Skipped, |out| {
                path.encode(out);
                failure.encode(out);
            });
        });
        self.skipped += 1;
        self.report_failed(path, failure, Side::Here);
    }

    fn begin(&mut self, id: EntryId, entry: Entry, depth: usize) {
        while self.open.close_to(depth).is_some() {}
        self.entries += 1;
        self.out.put(|out| put_frame(out, FrameKind::Entry, |out| entry.encode(out)));
        let entry = Arc::new(entry);
        self.unconfirmed.insert(id, Unconfirmed { entry: Arc::clone(&entry), digest: None });
        match entry.kind {
            EntryKind::Directory => self.open.open(entry.name().clone(), id),
            EntryKind::File => {
                self.events.push_back(FileEvent::Started(Arc::clone(&entry)));
                self.current = Some(Current { id, entry, sent: 0, refused: false });
            }
        }
    }

    /// Reads straight into the pending bytes, behind the room for the frame's header, which is written afterwards:
    /// only then is it known how much there was.
    fn send_chunk<S: Source + ?Sized>(&mut self, source: &mut S) -> bool {
        let current = self.current.as_mut().expect("only called while a file is under way");
        let left = current.entry.size - current.sent;
        let credit = self.granted.saturating_sub(self.sent);
        let wanted = left.min(credit).min(CHUNK as u64);
        let room = self.out.room() - HEADER_LEN;
        let wanted = usize::try_from(wanted).expect("at most CHUNK");
        if wanted == 0 || room < wanted.min(WORTHWHILE) {
            return false;
        }
        let body = &mut self.out.free()[HEADER_LEN..][..wanted.min(room)];
        match source.read(current.id, current.sent, body) {
            Ok(Chunk::Pending) => false,
            Ok(Chunk::End | Chunk::Data(0)) if !current.entry.has_size() => {
                let entry = Arc::new(Entry { size: current.sent, ..Entry::clone(&current.entry) });
                current.entry = Arc::clone(&entry);
                if let Some(unconfirmed) = self.unconfirmed.get_mut(&current.id) {
                    unconfirmed.entry = entry;
                }
                self.finish_current(source)
            }
            Ok(Chunk::End | Chunk::Data(0)) => {
                let failure = Failure::new(FailCode::SourceChanged, "it ended early");
                self.end_current(source, Err(failure))
            }
            Ok(Chunk::Data(count)) => {
                self.hasher.update(&body[..count]);
                current.sent += count as u64;
                self.sent += count as u64;
                self.out.free()[..HEADER_LEN].copy_from_slice(&header(FrameKind::Data, count));
                self.out.advance(HEADER_LEN + count);
                true
            }
            Err(failure) => self.end_current(source, Err(failure)),
        }
    }

    /// All bytes are sent: were they of one moment?
    fn finish_current<S: Source + ?Sized>(&mut self, source: &mut S) -> bool {
        let current = self.current.as_ref().expect("only called while a file is under way");
        let outcome = match source.recheck(current.id) {
            Ok(stamp) if stamp == current.entry.stamp() => Ok(()),
            Ok(_) => Err(Failure::new(FailCode::SourceChanged, "its size or time is another than before")),
            Err(failure) => Err(failure),
        };
        self.end_current(source, outcome)
    }

    fn end_current<S: Source + ?Sized>(&mut self, source: &mut S, outcome: Result<(), Failure>) -> bool {
        let Current { id, entry, .. } = self.current.take().expect("only called while a file is under way");
        source.close(id);
        let digest = self.hasher.take();
        match outcome {
            Ok(()) => {
                self.out.put(|out| put_frame(out, FrameKind::Digest, |out| out.extend_from_slice(digest.as_bytes())));
                if let Some(unconfirmed) = self.unconfirmed.get_mut(&id) {
                    unconfirmed.digest = Some(digest);
                }
            }
            Err(failure) => {
                self.out.put(|out| put_frame(out, FrameKind::Failed, |out| put_failed(out, id, &failure)));
                // Already reported if the receiver refused it.
                if self.unconfirmed.remove(&id).is_some() {
                    self.report_failed(ShownPath::from(&entry.path), failure, Side::Here);
                }
            }
        }
        true
    }

    fn report_failed(&mut self, path: ShownPath, failure: Failure, by: Side) {
        self.totals.failed += 1;
        self.events.push_back(FileEvent::Failed { path, failure, by });
    }

    fn fail(&mut self, error: SessionError) -> SessionError {
        if let Some(abort) = error.abort() {
            self.out.put(|out| put_abort(out, &abort));
        }
        self.phase = Phase::Failed(error.clone());
        error
    }
}

/// What comes in.
impl State {
    fn on_frame(&mut self, kind: FrameKind, body: &[u8]) -> Result<(), SessionError> {
        if kind == FrameKind::Abort {
            return Err(received_abort(body));
        }
        if self.awaits_accept {
            if kind != FrameKind::Accept {
                return Err(SessionError::NotFarhaul);
            }
            self.awaits_accept = false;
            self.events.push_back(FileEvent::Accepted);
            self.granted = self.granted.max(Accept::decode(body)?.credit);
            return Ok(());
        }
        match kind {
            FrameKind::Grant => self.on_grant(body)?,
            FrameKind::Verified => self.on_verified(body)?,
            FrameKind::Made => self.on_made(body)?,
            FrameKind::Failed => self.on_failed(body)?,
            FrameKind::Done => self.on_done(body)?,
            other => return Err(Violation::OutOfPlace(other).into()),
        }
        Ok(())
    }

    fn on_grant(&mut self, body: &[u8]) -> Result<(), Violation> {
        let (granted, stored) = decode_whole(FrameKind::Grant, body, |fields| Ok((fields.u64()?, fields.u64()?)))?;
        if granted < self.granted || stored < self.stored || stored > self.sent {
            return Err(Violation::CreditWithdrawn);
        }
        (self.granted, self.stored) = (granted, stored);
        Ok(())
    }

    fn on_verified(&mut self, body: &[u8]) -> Result<(), Violation> {
        let (id, digest) = decode_whole(FrameKind::Verified, body, |fields| {
            Ok((entry_id(fields)?, Digest::from_bytes(fields.array()?)))
        })?;
        let Unconfirmed { entry, digest: sent } = self.unconfirmed.remove(&id).ok_or(Violation::UnknownEntry)?;
        let sent = sent.ok_or(Violation::UnknownEntry)?;
        if sent != digest {
            return Err(Violation::WrongDigest(entry.path.to_string()));
        }
        self.totals.files += 1;
        self.totals.bytes += entry.size;
        self.events.push_back(FileEvent::Verified(entry, digest));
        Ok(())
    }

    fn on_made(&mut self, body: &[u8]) -> Result<(), Violation> {
        let id = decode_whole(FrameKind::Made, body, entry_id)?;
        let Unconfirmed { entry, .. } = self.unconfirmed.remove(&id).ok_or(Violation::UnknownEntry)?;
        if entry.kind != EntryKind::Directory {
            return Err(Violation::UnknownEntry);
        }
        self.totals.directories += 1;
        self.events.push_back(FileEvent::Made(entry));
        Ok(())
    }

    /// The answer may cross our own report about the same entry; then that one stands.
    fn on_failed(&mut self, body: &[u8]) -> Result<(), Violation> {
        let (id, failure) = decode_failed(body)?;
        if id.0 >= self.entries {
            return Err(Violation::UnknownEntry);
        }
        let Some(Unconfirmed { entry, .. }) = self.unconfirmed.remove(&id) else { return Ok(()) };
        if let Some(current) = self.current.as_mut().filter(|current| current.id == id) {
            current.refused = true;
        }
        self.report_failed(ShownPath::from(&entry.path), failure, Side::Peer);
        Ok(())
    }

    fn on_done(&mut self, body: &[u8]) -> Result<(), Violation> {
        if self.phase != Phase::Ended {
            return Err(Violation::OutOfPlace(FrameKind::Done));
        }
        let (files, figures) =
            decode_whole(FrameKind::Done, body, |fields| Ok((fields.u64()?, Figures::decode(fields)?)))?;
        if !self.unconfirmed.is_empty() || files != self.totals.files || figures.bytes != self.sent {
            return Err(Violation::Counts);
        }
        self.peer = Some(figures);
        self.phase = Phase::Done;
        self.stored = self.sent;
        self.events.push_back(FileEvent::Done(self.totals));
        Ok(())
    }
}
