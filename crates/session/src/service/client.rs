//! The client of the file service.

use std::collections::{BTreeMap, VecDeque};

use crate::capabilities::Capabilities;
use crate::course::Course;
use crate::error::{Abort, SessionError, Violation};
use crate::failure::{FailCode, Failure};
use crate::field::{Fields, Malformed};
use crate::frame_kind::{FrameKind, MAX_BLOCK};
use crate::framing::{Decoded, Decoder, decode_whole};
use crate::handshake::{Accept, INITIAL_CREDIT, Open};
use crate::integrity::Digest;
use crate::outbox::Outbox;
use crate::refusal::{put_abort, received_abort};
use crate::request::Request;

use super::answer::{Answer, FileRange, ListPage, RangeEnd, Written};
use super::entry::FileInfo;
use super::flow_control::FlowControl;
use super::hasher::Hasher;
use super::limits::{FEW_PUTS, MAX_PUTS, MAX_REQUESTS, OFFERED};
use super::request::{FileRequest, ReadFrom};
use super::tree::TreePage;

/// The number of a request in its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(u32);

/// Events of a client for its driver.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReplyEvent {
    /// The server takes requests.
    Accepted,
    /// A request has its answer.
    Answered(RequestId, Result<Answer, Failure>),
    /// The server has answered everything, and the session is over.
    Done,
}

/// Makes requests to a [`FileServer`](super::FileServer).
///
/// **Contract.** Sans-IO: bytes come in and go out. After any input or request, the driver writes the bytes of
/// [`poll_write`](Self::poll_write), reports their number by [`handle_written`](Self::handle_written), and drains
/// [`poll_event`](Self::poll_event). It always reads: the client has room for everything that it requested, and for nothing else.
#[derive(Debug)]
pub struct FileClient {
    decoder: Decoder,
    state: ClientState,
}

#[derive(Debug)]
struct ClientState {
    course: Course<ClientPhase>,
    out: Outbox,
    events: VecDeque<ReplyEvent>,
    open: BTreeMap<u32, Outstanding>,
    next: u32,
    /// Most puts at a time.
    most_puts: usize,
    flow: FlowControl,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClientPhase {
    AwaitsAccept,
    /// The same, and END is queued.
    EndsAfterAccept,
    Open,
    /// END is queued.
    Ending,
}

/// A request without an answer, by the kind of answer that it expects.
#[derive(Debug)]
enum Outstanding {
    Info,
    Page,
    Range(Arriving),
    Put(Box<Sending>),
    Written,
    Made,
    Removed,
    Renamed,
    /// The records of a tree so far, and how many bytes they may have.
    Tree(Vec<u8>, u32),
    /// A read that was given up. What arrives is dropped.
    GivenUp {
        left: u64,
    },
}

#[derive(Debug)]
struct Arriving {
    bytes: Vec<u8>,
    from: ReadFrom,
    most: u64,
}

#[derive(Debug, Default)]
struct Sending {
    hasher: Hasher,
    is_closed: bool,
}

impl Default for FileClient {
    fn default() -> Self {
        Self::connect()
    }
}

impl FileClient {
    /// A client that connects. The opening frame is pending at once.
    pub fn connect() -> Self {
        let state = ClientState {
            course: Course::At(ClientPhase::AwaitsAccept),
            out: Outbox::default(),
            events: VecDeque::new(),
            open: BTreeMap::new(),
            next: 0,
            most_puts: FEW_PUTS,
            flow: FlowControl::new(INITIAL_CREDIT),
        };
        let mut client = Self { decoder: Decoder::default(), state };
        Open::new(Request::Files, client.state.flow.granted).offering(OFFERED).put(client.state.out.bytes());
        client
    }

    /// Makes a request; `None` while as many as allowed have no answer, or as many puts, or the session ends.
    pub fn request(&mut self, request: &FileRequest) -> Option<RequestId> {
        let state = &mut self.state;
        let puts = || state.open.values().filter(|job| matches!(job, Outstanding::Put(_))).count();
        if !state.has_room() || matches!(request, FileRequest::Put(_)) && puts() >= state.most_puts {
            return None;
        }
        while state.open.contains_key(&state.next) {
            state.next = state.next.wrapping_add(1);
        }
        let id = state.next;
        state.next = id.wrapping_add(1);
        state.out.put(FrameKind::Request, |out| {
            out.extend_from_slice(&id.to_be_bytes());
            request.encode(out);
        });
        state.open.insert(
            id,
            match request {
                FileRequest::Stat(_) => Outstanding::Info,
                FileRequest::List { .. } => Outstanding::Page,
                FileRequest::Read(range) => {
                    Outstanding::Range(Arriving { bytes: Vec::new(), from: range.from, most: range.length })
                }
                FileRequest::Put(_) => Outstanding::Put(Box::default()),
                FileRequest::MakeDirectory(_) => Outstanding::Made,
                FileRequest::Remove(_) => Outstanding::Removed,
                FileRequest::Rename(_) => Outstanding::Renamed,
                FileRequest::Copy(_) | FileRequest::Digest(_) => Outstanding::Written,
                FileRequest::ListTree(tree) => Outstanding::Tree(Vec::new(), tree.most),
            },
        );
        Some(RequestId(id))
    }

    /// Sends bytes of a put. Returns how many were taken: no more than the server's credit, and none while much is pending. All are
    /// taken of a put that has its answer already, and sent to nobody.
    pub fn write(&mut self, RequestId(id): RequestId, bytes: &[u8]) -> usize {
        let state = &mut self.state;
        let Some(Outstanding::Put(sending)) = state.open.get_mut(&id) else { return bytes.len() };
        if sending.is_closed {
            return bytes.len();
        }
        if state.out.is_full() {
            return 0;
        }
        let room = usize::try_from(state.flow.room()).unwrap_or(usize::MAX);
        let taken = &bytes[..bytes.len().min(room).min(MAX_BLOCK)];
        if !taken.is_empty() {
            sending.hasher.update(taken);
            state.flow.put_block(&mut state.out, id, taken);
        }
        taken.len()
    }

    /// Whether [`write`](Self::write) takes some bytes of this put now.
    pub fn has_room_for_bytes(&self, RequestId(id): RequestId) -> bool {
        let is_put = matches!(self.state.open.get(&id), Some(Outstanding::Put(_)));
        is_put && !self.state.out.is_full() && self.state.flow.room() > 0
    }

    /// Ends the bytes of a put. The server then gives the file its name, and answers.
    pub fn finish_put(&mut self, RequestId(id): RequestId) {
        if let Some(Outstanding::Put(sending)) = self.state.open.get_mut(&id)
            && !sending.is_closed
        {
            sending.is_closed = true;
            let digest = sending.hasher.digest();
            self.state.out.put(FrameKind::Finish, |out| {
                out.extend_from_slice(&id.to_be_bytes());
                out.extend_from_slice(digest.as_bytes());
            });
        }
    }

    /// Gives up a request. It still gets an answer: a failure, unless it was done before.
    pub fn give_up(&mut self, RequestId(id): RequestId) {
        self.state.give_up(id);
    }

    /// Ends the session once every request has its answer. Puts without an end are given up.
    pub fn finish(&mut self) {
        let state = &mut self.state;
        let ending = match state.course.phase() {
            Some(ClientPhase::AwaitsAccept) => ClientPhase::EndsAfterAccept,
            Some(ClientPhase::Open) => ClientPhase::Ending,
            _ => return,
        };
        let puts: Vec<u32> = state.open.iter().filter(|(_, job)| job.is_unfinished_put()).map(|(&id, _)| id).collect();
        puts.into_iter().for_each(|id| state.give_up(id));
        state.out.put(FrameKind::End, |_| ());
        state.course = Course::At(ending);
    }

    /// Takes all received bytes.
    ///
    /// # Errors
    /// The session has failed. The pending bytes tell the peer why. Later calls ignore everything.
    pub fn handle_received(&mut self, bytes: &[u8]) -> Result<(), SessionError> {
        let mut rest = bytes;
        while !self.is_over() {
            let handled = match self.decoder.next(&mut rest) {
                Ok(None) => break,
                Ok(Some(Decoded::Data(_))) => Err(Violation::OutOfPlace(FrameKind::Data).into()),
                Ok(Some(Decoded::Frame(kind, body))) => self.state.on_frame(kind, body),
                Err(violation) => Err(violation.into()),
            };
            handled.map_err(|error| self.state.fail(error))?;
        }
        Ok(())
    }

    /// The peer's stream ended.
    ///
    /// # Errors
    /// It ended before the session was done.
    pub fn handle_end(&mut self) -> Result<(), SessionError> {
        if self.is_over() { Ok(()) } else { Err(self.state.fail(SessionError::PeerLeft)) }
    }

    /// Bytes to write. They stay the same until [`handle_written`](Self::handle_written), but for those behind them.
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
    pub fn poll_event(&mut self) -> Option<ReplyEvent> {
        self.state.events.pop_front()
    }

    /// Whether another request can be made now. A put may still have to wait for others.
    pub fn has_room(&self) -> bool {
        self.state.has_room()
    }

    /// Requests without an answer.
    pub fn outstanding(&self) -> usize {
        self.state.open.len()
    }

    /// Stops the session. The pending bytes tell the peer.
    pub fn cancel(&mut self, abort: Abort) {
        if !self.is_over() {
            self.state.fail(SessionError::Cancelled(abort));
        }
    }

    /// Whether the server has accepted the session, or the session has ended.
    pub fn is_accepted(&self) -> bool {
        !self.state.awaits_accept()
    }

    /// Whether the session has ended. Pending bytes may remain to be written.
    pub const fn is_over(&self) -> bool {
        self.state.course.is_over()
    }

    /// Why the session failed, if it did.
    pub const fn error(&self) -> Option<&SessionError> {
        self.state.course.error()
    }
}

impl ClientState {
    const fn awaits_accept(&self) -> bool {
        matches!(self.course.phase(), Some(ClientPhase::AwaitsAccept | ClientPhase::EndsAfterAccept))
    }

    fn has_room(&self) -> bool {
        let is_open = matches!(self.course.phase(), Some(ClientPhase::AwaitsAccept | ClientPhase::Open));
        is_open && self.open.len() < MAX_REQUESTS
    }

    fn give_up(&mut self, id: u32) {
        match self.open.get_mut(&id) {
            None | Some(Outstanding::GivenUp { .. }) => return,
            Some(Outstanding::Put(sending)) => {
                if std::mem::replace(&mut sending.is_closed, true) {
                    return;
                }
            }
            Some(Outstanding::Range(arriving)) => {
                let left = arriving.most - arriving.bytes.len() as u64;
                self.open.insert(id, Outstanding::GivenUp { left });
            }
            Some(_) => {}
        }
        self.put_cancel(id);
    }

    fn put_cancel(&mut self, id: u32) {
        self.out.put(FrameKind::Cancel, |out| out.extend_from_slice(&id.to_be_bytes()));
    }

    fn on_frame(&mut self, kind: FrameKind, body: &[u8]) -> Result<(), SessionError> {
        if self.awaits_accept() {
            let accept = Accept::awaited(kind, body)?;
            self.flow.begin(accept.credit);
            if accept.capabilities.has(Capabilities::MANY_PUTS) {
                self.most_puts = MAX_PUTS;
            }
            let ends = self.course.is_at(ClientPhase::EndsAfterAccept);
            self.course = Course::At(if ends { ClientPhase::Ending } else { ClientPhase::Open });
            self.events.push_back(ReplyEvent::Accepted);
            return Ok(());
        }
        match kind {
            FrameKind::Abort => return Err(received_abort(body)),
            FrameKind::Grant => self.flow.on_grant(body)?,
            FrameKind::Block => self.on_block(body)?,
            FrameKind::Answer => self.on_answer(body)?,
            FrameKind::Done if self.course.is_at(ClientPhase::Ending) && self.open.is_empty() => {
                decode_whole(kind, body, |_| Ok(()))?;
                self.events.push_back(ReplyEvent::Done);
                self.course = Course::Done;
            }
            other => return Err(Violation::OutOfPlace(other).into()),
        }
        Ok(())
    }

    fn on_block(&mut self, body: &[u8]) -> Result<(), Violation> {
        let (id, bytes) = self.flow.on_block(body)?;
        let too_long = Violation::Limit("bytes of a range");
        match self.open.get_mut(&id) {
            Some(Outstanding::Range(arriving)) => {
                if bytes.len() as u64 > arriving.most - arriving.bytes.len() as u64 {
                    return Err(too_long);
                }
                arriving.bytes.extend_from_slice(bytes);
            }
            Some(Outstanding::Tree(records, most)) => {
                records.extend_from_slice(bytes);
                if records.len() as u64 > u64::from(*most) {
                    return Err(Violation::Limit("bytes of a listing"));
                }
            }
            Some(Outstanding::GivenUp { left }) => *left = left.checked_sub(bytes.len() as u64).ok_or(too_long)?,
            _ => return Err(Violation::NoSuchRequest),
        }
        self.flow.grant(&mut self.out);
        Ok(())
    }

    fn on_answer(&mut self, body: &[u8]) -> Result<(), Violation> {
        let bad = |reason: Malformed| reason.in_frame(FrameKind::Answer);
        let mut fields = Fields::new(body);
        let (id, failed) = (fields.u32().map_err(bad)?, fields.u8().map_err(bad)?);
        let request = self.open.remove(&id).ok_or(Violation::NoSuchRequest)?;
        if request.is_unfinished_put() {
            // Until its end is said, the server keeps its number.
            if failed == 0 {
                return Err(Violation::OutOfPlace(FrameKind::Answer));
            }
            self.put_cancel(id);
        }
        let answer = match failed {
            0 => request.answer(&mut fields)?,
            _ => Err(Failure::decode(&mut fields).map_err(bad)?),
        };
        fields.end().map_err(bad)?;
        self.events.push_back(ReplyEvent::Answered(RequestId(id), answer));
        Ok(())
    }

    fn fail(&mut self, error: SessionError) -> SessionError {
        self.open.clear();
        let out = self.out.bytes();
        self.course.fail(error, |abort| put_abort(out, abort))
    }
}

impl Outstanding {
    fn is_unfinished_put(&self) -> bool {
        matches!(self, Self::Put(sending) if !sending.is_closed)
    }

    /// Reads the answer of this kind, and compares the digest of a range.
    fn answer(self, fields: &mut Fields<'_>) -> Result<Result<Answer, Failure>, Violation> {
        let bad = |reason: Malformed| reason.in_frame(FrameKind::Answer);
        let answer = match self {
            Self::Info => FileInfo::decode(fields).map(Answer::Info),
            Self::Page => ListPage::decode(fields).map(Answer::Page),
            Self::Put(_) | Self::Written => Written::decode(fields).map(Answer::Written),
            Self::Made => fields.u8().map(|is_new| Answer::Made(is_new != 0)),
            Self::Removed => fields.u64().map(Answer::Removed),
            Self::Renamed => Ok(Answer::Renamed),
            Self::Tree(records, _) => TreePage::decode(&records, fields).map(Answer::Tree),
            Self::GivenUp { .. } => {
                RangeEnd::decode(fields).map_err(bad)?;
                return Ok(Err(FailCode::Cancelled.into()));
            }
            Self::Range(arriving) => return arriving.verified(RangeEnd::decode(fields).map_err(bad)?),
        };
        answer.map(Ok).map_err(bad)
    }
}

impl Arriving {
    /// Whether a range with this end is the one that was requested. A range that is shorter ends with its file, so that whoever reads a
    /// file gets on, and has all of it in the end.
    fn is_answered_by(&self, end: &RangeEnd) -> bool {
        let begins = match self.from {
            ReadFrom::Start(offset) => end.offset == offset,
            // What the system makes when it is read has no size.
            ReadFrom::End(_) if end.changed || end.version.stamp.size == 0 => true,
            ReadFrom::End(before) => end.offset == end.version.stamp.size.saturating_sub(before),
        };
        let is_cut = end.at_end && !end.changed && end.offset.saturating_add(end.length) < end.version.stamp.size;
        begins && (end.length == self.most || end.at_end) && !is_cut
    }

    /// The range, if its digest is that of the bytes that arrived.
    fn verified(self, end: RangeEnd) -> Result<Result<Answer, Failure>, Violation> {
        if self.bytes.len() as u64 != end.length || !self.is_answered_by(&end) {
            return Err(Violation::Counts);
        }
        let RangeEnd { offset, digest, version, at_end, changed, .. } = end;
        if Digest::of(&self.bytes) != digest {
            return Ok(Err(FailCode::DigestMismatch.into()));
        }
        Ok(Ok(Answer::Range(FileRange { bytes: self.bytes, offset, at_end, version, changed })))
    }
}
