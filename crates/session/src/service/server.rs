//! The server of the file service.

mod jobs;
mod walk;

use std::collections::{BTreeMap, VecDeque};

use crate::capabilities::Capabilities;
use crate::course::Course;
use crate::error::{Abort, SessionError, Violation};
use crate::failure::{FailCode, Failure};
use crate::field::{Fields, Malformed};
use crate::frame_kind::FrameKind;
use crate::framing::{Decoded, Decoder, decode_whole};
use crate::handshake::{Accept, Open};
use crate::integrity::Digest;
use crate::outbox::Outbox;
use crate::refusal::{put_abort, received_abort};

use super::answer::Answer;
use super::files::Files;
use super::flow_control::FlowControl;
use super::limits::{MAX_PUTS, MAX_REQUESTS, OFFERED};
use super::request::FileRequest;
use jobs::{Job, Refused, Turn, Writing};

/// Blocks of a read in a row before the next long request has its turn. So ranges of 1 MiB are answered one after the other, and a
/// client that always has several outstanding never waits for all of them; a longer read gives way after each MiB.
const BURST: usize = 16;

/// Long requests that are worked on at a time. Each has files open. With a few, no one of them keeps the others waiting.
const AT_ONCE: usize = 4;
/// Turns of one poll that gives no bytes: a driver then looks for new requests.
const TURNS: usize = 4;

/// Serves the requests of a [`FileClient`](super::FileClient) from [`Files`].
///
/// **Contract.** Sans-IO: bytes come in and go out. After any input, the driver writes the bytes of
/// [`poll_write`](Self::poll_write) and reports their number by [`handle_written`](Self::handle_written), until nothing is pending. While
/// bytes are pending, more input may come. The work of requests is done within `poll_write`, except for bytes of puts, which are
/// written to the disk on arrival.
#[derive(Debug)]
pub struct FileServer<F: Files> {
    files: F,
    decoder: Decoder,
    state: ServerState<F>,
}

/// What a server has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServiceTotals {
    /// Requests that succeeded.
    pub answered: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Bytes read for the client.
    pub read: u64,
    /// Bytes written for it.
    pub written: u64,
}

struct ServerState<F: Files> {
    course: Course<ServerPhase>,
    out: Outbox,
    /// The requests without an answer, and puts whose client still sends.
    jobs: BTreeMap<u32, Job<F>>,
    /// Those that take one turn, and those that take turns with one another. Puts wait for their bytes in neither.
    short: VecDeque<u32>,
    long: VecDeque<u32>,
    flow: FlowControl,
    /// Turns in a row of the read that is the first of the long ones.
    burst: usize,
    totals: ServiceTotals,
    block: Vec<u8>,
    /// What the client can read in answers.
    offered: Capabilities,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ServerPhase {
    Serving,
    /// END has arrived, and answers are due.
    Ending,
}

impl<F: Files> FileServer<F> {
    /// A server for an accepted request. The driver has checked it.
    pub fn answer(open: &Open, files: F) -> Self {
        let state = ServerState {
            course: Course::At(ServerPhase::Serving),
            out: Outbox::default(),
            jobs: BTreeMap::new(),
            short: VecDeque::new(),
            long: VecDeque::new(),
            flow: FlowControl::new(open.credit),
            burst: 0,
            totals: ServiceTotals::default(),
            block: Vec::new(),
            offered: open.capabilities,
        };
        let mut server = Self { files, decoder: Decoder::default(), state };
        Accept::new(server.state.flow.granted).offering(OFFERED).put(server.state.out.bytes());
        server
    }

    /// Takes all received bytes.
    ///
    /// # Errors
    /// The session has failed. The pending bytes tell the peer why. Nothing stays open. Later calls ignore everything.
    pub fn handle_received(&mut self, bytes: &[u8]) -> Result<(), SessionError> {
        let mut rest = bytes;
        while !self.is_over() {
            let handled = match self.decoder.next(&mut rest) {
                Ok(None) => break,
                Ok(Some(Decoded::Data(_))) => Err(Violation::OutOfPlace(FrameKind::Data).into()),
                Ok(Some(Decoded::Frame(kind, body))) => self.state.on_frame(&mut self.files, kind, body),
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

    /// Works on requests until bytes are pending, or for a short time. The bytes stay the same until
    /// [`handle_written`](Self::handle_written). If there are none and it [has work](Self::has_work), the driver polls again.
    pub fn poll_write(&mut self) -> &[u8] {
        for _ in 0..TURNS {
            let is_idle = self.state.out.pending().is_empty() && !self.is_over();
            if !is_idle || !self.state.take_turn(&mut self.files) {
                break;
            }
        }
        self.state.out.pending()
    }

    /// Whether it can work on a request without more input.
    pub fn has_work(&self) -> bool {
        !self.is_over() && self.state.has_turn()
    }

    /// The transport took the first `count` pending bytes.
    ///
    /// # Panics
    /// If fewer were pending.
    pub fn handle_written(&mut self, count: usize) {
        self.state.out.handle_written(count);
    }

    /// Stops the session. The pending bytes tell the peer.
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

    /// What it has done so far.
    pub const fn totals(&self) -> ServiceTotals {
        self.state.totals
    }

    /// Its files.
    pub const fn files(&self) -> &F {
        &self.files
    }
}

impl<F: Files> ServerState<F> {
    fn on_frame(&mut self, files: &mut F, kind: FrameKind, body: &[u8]) -> Result<(), SessionError> {
        match kind {
            FrameKind::Abort => return Err(received_abort(body)),
            FrameKind::Grant => self.flow.on_grant(body)?,
            _ if !self.course.is_at(ServerPhase::Serving) => return Err(Violation::OutOfPlace(kind).into()),
            FrameKind::Request => self.on_request(files, body)?,
            FrameKind::Block => self.on_block(files, body)?,
            FrameKind::Finish => self.on_finish(body)?,
            FrameKind::Cancel => self.on_cancel(body)?,
            FrameKind::End => {
                decode_whole(kind, body, |_| Ok(()))?;
                // Nobody finishes puts that were begun.
                let is_unfinished = |job: &Job<F>| match job {
                    Job::Write(_) => true,
                    Job::Refused(refused) => !refused.is_closed(),
                    _ => false,
                };
                if self.jobs.values().any(is_unfinished) {
                    return Err(Violation::OutOfPlace(kind).into());
                }
                self.course = Course::At(ServerPhase::Ending);
            }
            other => return Err(Violation::OutOfPlace(other).into()),
        }
        Ok(())
    }

    fn on_request(&mut self, files: &mut F, body: &[u8]) -> Result<(), Violation> {
        let mut fields = Fields::new(body);
        let bad = |reason: Malformed| reason.in_frame(FrameKind::Request);
        let (id, kind) = (fields.u32().map_err(bad)?, fields.u8().map_err(bad)?);
        if self.jobs.contains_key(&id) {
            return Err(Violation::SameNumber);
        }
        if self.jobs.len() >= MAX_REQUESTS {
            return Err(Violation::Limit("requests"));
        }
        let puts = || self.jobs.values().filter(|job| job.is_put()).count();
        let job = match FileRequest::decode(kind, &mut fields).map_err(bad)? {
            // A client of a later version may go without it.
            None => Job::Fail(Failure::new(FailCode::Unsupported, "this server is older than the request: update it")),
            Some(FileRequest::Put(_)) if puts() >= MAX_PUTS => return Err(Violation::Limit("puts")),
            Some(FileRequest::Put(put)) => match files.create(&put) {
                Ok(file) => Job::Write(Box::new(Writing::new(file, put.size))),
                Err(failure) => Job::Refused(Refused::by(failure)),
            },
            Some(request) => Job::of(request),
        };
        match &job {
            Job::Write(_) => {}
            Job::Fail(_) | Job::Ask(_) | Job::Refused(_) => self.short.push_back(id),
            _ => self.long.push_back(id),
        }
        self.jobs.insert(id, job);
        Ok(())
    }

    fn on_block(&mut self, files: &mut F, body: &[u8]) -> Result<(), Violation> {
        let (id, bytes) = self.flow.on_block(body)?;
        match self.jobs.get_mut(&id) {
            Some(Job::Write(writing)) => match writing.write(files, bytes) {
                Ok(()) => self.totals.written += bytes.len() as u64,
                Err(failure) => {
                    self.jobs.insert(id, Job::Refused(Refused::by(failure)));
                    self.short.push_back(id);
                }
            },
            // The client may not know yet that the put has failed.
            Some(Job::Refused(_)) => {}
            _ => return Err(Violation::NoSuchRequest),
        }
        self.flow.grant(&mut self.out);
        Ok(())
    }

    fn on_finish(&mut self, body: &[u8]) -> Result<(), Violation> {
        let (id, digest) =
            decode_whole(FrameKind::Finish, body, |fields| Ok((fields.u32()?, Digest::from_bytes(fields.array()?))))?;
        match self.jobs.remove(&id) {
            Some(Job::Write(writing)) => {
                self.jobs.insert(id, Job::Commit(writing, digest));
                self.long.push_back(id);
            }
            Some(Job::Refused(refused)) => self.close_refused(id, refused),
            _ => return Err(Violation::NoSuchRequest),
        }
        Ok(())
    }

    /// Ends a request. One that has its answer by now is none.
    fn on_cancel(&mut self, body: &[u8]) -> Result<(), Violation> {
        let id = decode_whole(FrameKind::Cancel, body, |fields| fields.u32())?;
        match self.jobs.remove(&id) {
            None => {}
            // What is being committed is whole.
            Some(job @ (Job::Commit(..) | Job::Fail(_))) => drop(self.jobs.insert(id, job)),
            Some(Job::Refused(refused)) => self.close_refused(id, refused),
            Some(_) => {
                self.long.retain(|&other| other != id);
                self.jobs.insert(id, Job::Fail(FailCode::Cancelled.into()));
                if !self.short.contains(&id) {
                    self.short.push_back(id);
                }
            }
        }
        Ok(())
    }

    /// The client has said its last word about a put that has failed.
    fn close_refused(&mut self, id: u32, refused: Refused) {
        if let Some(refused) = refused.closed() {
            self.jobs.insert(id, Job::Refused(refused));
        }
    }

    fn has_turn(&self) -> bool {
        !self.short.is_empty()
            || self.position_of_long().is_some()
            || self.course.is_at(ServerPhase::Ending) && self.jobs.is_empty()
    }

    /// Whether a long request can go on. What sends bytes needs credit, and one that is not begun a place.
    fn can_go_on(&self, job: &Job<F>) -> bool {
        if !job.is_begun() {
            return self.jobs.values().filter(|job| job.is_begun()).count() < AT_ONCE;
        }
        !job.needs_credit() || self.flow.room() > 0
    }

    /// Works on the next request for one turn. Returns whether there was something to do.
    fn take_turn(&mut self, files: &mut F) -> bool {
        let id = match self.short.pop_front() {
            Some(id) => id,
            None => match self.next_long() {
                Some(id) => id,
                None if self.course.is_at(ServerPhase::Ending) && self.jobs.is_empty() => {
                    self.out.put(FrameKind::Done, |_| ());
                    self.course = Course::Done;
                    return true;
                }
                None => return false,
            },
        };
        let Some(job) = self.jobs.remove(&id) else { return true };
        let room = self.flow.room();
        match job.take_turn(files, (room, self.offered), &mut self.block) {
            Err(failure) => self.put_answer(id, Err(failure)),
            Ok(Turn::Goes(job)) => {
                self.burst += 1;
                let is_read = matches!(job, Job::Read(_));
                if is_read {
                    self.totals.read += self.block.len() as u64;
                }
                if (is_read || matches!(job, Job::Walk(_))) && !self.block.is_empty() {
                    self.flow.put_block(&mut self.out, id, &self.block);
                }
                self.jobs.insert(id, job);
                if is_read && self.burst < BURST {
                    self.long.push_front(id);
                } else {
                    self.burst = 0;
                    self.long.push_back(id);
                }
            }
            Ok(Turn::Refuses(failure, refused)) => {
                if let Some(refused) = refused {
                    self.jobs.insert(id, Job::Refused(refused));
                }
                self.put_answer(id, Err(failure));
            }
            Ok(Turn::Ends(answer)) => self.put_answer(id, Ok(answer)),
            Ok(Turn::EndsRead(mut end)) => {
                end.version.ctime = end.version.ctime.filter(|_| self.offered.has(Capabilities::CHANGE_TIMES));
                self.burst = 0;
                self.totals.answered += 1;
                self.out.put(FrameKind::Answer, |out| {
                    out.extend_from_slice(&id.to_be_bytes());
                    out.push(0);
                    end.encode(out);
                });
            }
        }
        true
    }

    /// The long request whose turn it is.
    fn next_long(&mut self) -> Option<u32> {
        let at = self.position_of_long()?;
        self.long.remove(at)
    }

    fn position_of_long(&self) -> Option<usize> {
        self.long.iter().position(|id| self.jobs.get(id).is_none_or(|job| self.can_go_on(job)))
    }

    fn put_answer(&mut self, id: u32, answer: Result<Answer, Failure>) {
        match &answer {
            Ok(_) => self.totals.answered += 1,
            Err(_) => self.totals.failed += 1,
        }
        let answer = answer.map(|answer| answer.for_client(self.offered));
        self.out.put(FrameKind::Answer, |out| {
            out.extend_from_slice(&id.to_be_bytes());
            out.push(u8::from(answer.is_err()));
            match answer {
                Ok(answer) => answer.encode(out),
                Err(failure) => failure.encode(out),
            }
        });
    }

    fn fail(&mut self, error: SessionError) -> SessionError {
        self.jobs.clear();
        self.short.clear();
        self.long.clear();
        let out = self.out.bytes();
        self.course.fail(error, |abort| put_abort(out, abort))
    }
}

impl<F: Files> std::fmt::Debug for ServerState<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerState")
            .field("course", &self.course)
            .field("jobs", &self.jobs.len())
            .field("flow", &self.flow)
            .finish_non_exhaustive()
    }
}
