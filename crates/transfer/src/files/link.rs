//! A connection to a server of the file service: its session, a thread that reads, and one that writes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use farhaul_bond::BondedStream;
use farhaul_session::{
    AbortCode, Answer, Failure, FileClient, FileRequest, MAX_REQUESTS, ReplyEvent, RequestId, SessionError,
};

use super::place::RemoteHost;
use super::wakers::{RoomPlace, Wakers};
use crate::connect::Calling;
use crate::environment::Environment;
use crate::error::{Code, Error, Trouble};
use crate::event::Event;
use crate::remote::Ssh;
use crate::remote::messages::Task;
use crate::remote::reach::{ONE_FLOW, Opening, OverSsh, Reached};
use crate::report::Report;
use crate::session::first_answer;
use crate::session::measure::{self, Meter};
use crate::settings::Settings;

/// Bytes per read: as many as the library moves at once.
const BLOCK: usize = 256 << 10;
/// Time for the last answers and the end of the connection. Then this side leaves.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// A connection. Its threads end with it.
pub(super) struct Link {
    stream: BondedStream,
    host: RemoteHost,
    environment: Environment,
    meter: Meter,
    /// What keeps the remote program of ssh.
    reached: Mutex<Option<Reached>>,
    state: Mutex<LinkState>,
    /// Somebody waits for an answer, for room, or for the end.
    changed: Condvar,
    /// There is something to write.
    pending: Condvar,
}

#[derive(Default)]
struct LinkState {
    client: FileClient,
    answers: BTreeMap<RequestId, Result<Answer, Failure>>,
    /// Requests whose answers nobody takes.
    abandoned: BTreeSet<RequestId>,
    /// Tasks that wait, in place of threads.
    wakers: Wakers,
    /// Why the connection ended, once it did before its time.
    error: Option<Error>,
    /// Both threads have ended.
    is_gone: bool,
}

/// Why a request has no answer.
#[derive(Debug)]
pub(super) enum Fault {
    /// The server says why.
    Failed(Failure),
    /// The connection ended before.
    Lost(Error),
}

/// A request that was made. Its drop gives it up.
pub(super) struct Ticket {
    link: Arc<Link>,
    id: Option<RequestId>,
}

impl Link {
    /// Connects to a host, and begins a session.
    pub(super) fn open(
        host: &RemoteHost,
        settings: &Settings,
        ssh: &Ssh,
        environment: &Environment,
    ) -> Result<Arc<Self>, Error> {
        let reached = match host {
            RemoteHost::Server(server) => {
                let stream = Calling::to(environment, settings, server)?.connect(server)?;
                Reached { stream: stream.into(), far: None, further: None }
            }
            RemoteHost::Ssh(host) => OverSsh {
                environment,
                settings,
                ssh,
                only_sends: false,
                needs_udp: false,
                flows: ONE_FLOW,
                opening: Opening::None,
            }
            .connect(host, Task::Files)?,
        };
        let link = Arc::new(Self {
            stream: reached.stream.clone(),
            host: host.clone(),
            environment: environment.clone(),
            meter: Meter::start(environment.clock),
            reached: Mutex::new(Some(reached)),
            state: Mutex::default(),
            changed: Condvar::new(),
            pending: Condvar::new(),
        });
        let (writes, reads) = (Arc::clone(&link), Arc::clone(&link));
        let writer = thread::Builder::new().name("requests".into()).spawn(move || writes.write())?;
        let reader = thread::Builder::new().name("answers".into()).spawn(move || {
            reads.read();
            let _ = writer.join();
            reads.end();
        });
        if let Err(error) = reader {
            let error = Error::from(error);
            link.fail(error.clone());
            return Err(error);
        }
        link.await_acceptance()?;
        Ok(link)
    }

    /// Whether requests can be made.
    pub(super) fn is_open(&self) -> bool {
        let state = self.state();
        state.error.is_none() && !state.is_gone && !state.client.is_over()
    }

    /// Makes a request, once there is room for it. `None` if the connection has ended: then nobody has it.
    pub(super) fn request(self: &Arc<Self>, request: &FileRequest) -> Option<Ticket> {
        let mut state = self.state();
        while state.is_alive() {
            if let Some(id) = state.client.request(request) {
                self.pending.notify_one();
                return Some(Ticket { link: Arc::clone(self), id: Some(id) });
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        None
    }

    /// The same for tasks: ready once there is room for it.
    pub(super) fn poll_request(
        self: &Arc<Self>,
        cx: &Context<'_>,
        request: &FileRequest,
        place: &mut RoomPlace,
    ) -> Poll<Option<Ticket>> {
        let mut state = self.state();
        if !state.is_alive() {
            return Poll::Ready(None);
        }
        if let Some(id) = state.client.request(request) {
            self.pending.notify_one();
            return Poll::Ready(Some(Ticket { link: Arc::clone(self), id: Some(id) }));
        }
        state.wakers.await_room(place, cx.waker());
        Poll::Pending
    }

    /// A task does not wait for room any more.
    pub(super) fn leave_room(&self, place: &RoomPlace) {
        let mut state = self.state();
        if state.wakers.leave_room(place) {
            let woken = state.woken();
            drop(state);
            woken.into_iter().for_each(Waker::wake);
        }
    }

    /// Wakes the threads that wait for a change, and the tasks that the change concerns.
    fn notify(&self) {
        let woken = self.state().woken();
        self.changed.notify_all();
        woken.into_iter().for_each(Waker::wake);
    }

    /// Ends the session once everything is answered, without waiting for it.
    pub(super) fn finish(&self) {
        self.state().client.finish();
        self.pending.notify_one();
    }

    /// The same, and waits for the end.
    pub(super) fn close(&self) -> Result<(), Error> {
        self.finish();
        let state = self.state();
        let waited = self.changed.wait_timeout_while(state, CLOSE_TIMEOUT, |state| !state.is_gone);
        let (state, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() {
            self.stream.close();
        }
        state.error.clone().map_or(Ok(()), Err)
    }

    /// Fills in the figures of the connection.
    pub(super) fn report(&self, mut report: Report) -> Report {
        measure::note_protection(&mut report, &self.stream);
        let stats = self.stream.stats().unwrap_or_default();
        let rtt = crate::session::watch::RoundTrips::default().summary(&stats);
        measure::fill(&mut report, &stats, rtt);
        report.cpu_seconds = self.meter.cpu();
        report.seconds = self.meter.elapsed().as_secs_f64();
        report
    }

    fn await_acceptance(&self) -> Result<(), Error> {
        let state = self.state();
        let waits = |state: &mut LinkState| state.is_alive() && !state.client.is_accepted();
        let state = self.changed.wait_while(state, waits).unwrap_or_else(PoisonError::into_inner);
        state.error.clone().map_or(Ok(()), Err)
    }

    /// Writes what is pending, until the session is over or the connection lost.
    fn write(&self) {
        loop {
            let state = self.state();
            let waits = |state: &mut LinkState| state.is_alive() && state.client.poll_write().is_empty();
            let mut state = self.pending.wait_while(state, waits).unwrap_or_else(PoisonError::into_inner);
            let said = state.client.poll_write().to_vec();
            state.client.handle_written(said.len());
            let goes_on = state.is_alive();
            drop(state);
            // There is room for more bytes of puts.
            self.notify();
            if !said.is_empty() {
                if self.stream.send_all(&said).is_err() {
                    // The reader finds the reason, which may be the peer's last word.
                    return self.stream.set_read_timeout(Some(CLOSE_TIMEOUT));
                }
            } else if !goes_on {
                return;
            }
        }
    }

    /// Takes answers, until the session is over or the connection lost.
    fn read(&self) {
        let mut block = vec![0; BLOCK];
        let mut received = first_answer(&self.stream, &mut block);
        loop {
            let mut state = self.state();
            let was_accepted = state.client.is_accepted();
            let handled = match received {
                Ok(0) => state.client.handle_end().map_err(Trouble::from),
                Ok(len) => state.client.handle_received(&block[..len]).map_err(Trouble::from),
                Err(farhaul::Error::TimedOut(after)) if !was_accepted => Err(Trouble::unanswered(after, &self.stream)),
                Err(error) => Err(error.into()),
            };
            state.take_events();
            let is_over = state.client.is_over();
            drop(state);
            if let Err(trouble) = handled {
                return self.fail(self.explained(&trouble, was_accepted));
            }
            self.notify();
            // A grant, or the last word about a put that failed.
            self.pending.notify_one();
            if is_over {
                return;
            }
            received = self.stream.recv(&mut block);
        }
    }

    /// The error of a session that failed with `trouble`. What the remote program of ssh said explains more.
    fn explained(&self, trouble: &Trouble, was_accepted: bool) -> Error {
        let error = self.environment.error(trouble, &self.host);
        let is_older =
            matches!(trouble, Trouble::Session(SessionError::PeerAborted(abort)) if abort.code == AbortCode::Protocol);
        let error = match is_older && !was_accepted {
            true => {
                let host = &self.host;
                Error::new(Code::Protocol, format!("{host} has no file service: its program is older than this one"))
                    .remedy("update it")
            }
            false => error,
        };
        match self.reached.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            Some(Reached { far: Some(far), .. }) => far.explained(error),
            _ => error,
        }
    }

    /// The connection ended before its time.
    fn fail(&self, error: Error) {
        let was_accepted = self.state().client.is_accepted();
        if was_accepted && !self.environment.cancellation.is_cancelled() {
            self.environment.events.send(&Event::Lost(&error));
        }
        // What is left to say is a reason, for which nobody waits long.
        self.stream.set_write_timeout(Some(CLOSE_TIMEOUT));
        self.state().error.get_or_insert(error);
        self.notify();
        self.pending.notify_all();
    }

    /// Both threads are done.
    fn end(&self) {
        let is_lost = self.state().error.is_some();
        if is_lost {
            self.stream.close();
        } else {
            let _ = self.stream.finish();
        }
        // The end of ssh.
        drop(self.reached.lock().unwrap_or_else(PoisonError::into_inner).take());
        self.state().is_gone = true;
        self.notify();
    }

    fn state(&self) -> MutexGuard<'_, LinkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LinkState {
    fn is_alive(&self) -> bool {
        self.error.is_none() && !self.client.is_over()
    }

    /// The tasks that may go on.
    fn woken(&mut self) -> Vec<Waker> {
        if !self.is_alive() {
            return self.wakers.take_all();
        }
        let Self { client, answers, wakers, .. } = self;
        let is_ready = |id: &RequestId| answers.contains_key(id) || client.has_room_for_bytes(*id);
        wakers.take(is_ready, MAX_REQUESTS - client.outstanding().min(MAX_REQUESTS))
    }

    fn take_events(&mut self) {
        while let Some(event) = self.client.poll_event() {
            if let ReplyEvent::Answered(id, answer) = event
                && !self.abandoned.remove(&id)
            {
                self.answers.insert(id, answer);
            }
        }
    }
}

impl Ticket {
    /// Waits for the answer.
    pub(super) fn wait(mut self) -> Result<Answer, Fault> {
        let Some(id) = self.id.take() else { return Err(Fault::Lost(gone(&self.link))) };
        let state = self.link.state();
        let waits = |state: &mut LinkState| state.is_alive() && !state.answers.contains_key(&id);
        let mut state = self.link.changed.wait_while(state, waits).unwrap_or_else(PoisonError::into_inner);
        match state.answers.remove(&id) {
            Some(answer) => answer.map_err(Fault::Failed),
            None => Err(Fault::Lost(state.error.clone().unwrap_or_else(|| gone(&self.link)))),
        }
    }

    /// The answer for tasks.
    pub(super) fn poll_answer(&mut self, cx: &Context<'_>) -> Poll<Result<Answer, Fault>> {
        let Some(id) = self.id else { return Poll::Ready(Err(Fault::Lost(gone(&self.link)))) };
        let mut state = self.link.state();
        let answer = match state.answers.remove(&id) {
            Some(answer) => answer.map_err(Fault::Failed),
            None if state.is_alive() => {
                state.wakers.await_request(id, cx.waker());
                return Poll::Pending;
            }
            None => Err(Fault::Lost(state.error.clone().unwrap_or_else(|| gone(&self.link)))),
        };
        drop(state);
        self.id = None;
        Poll::Ready(answer)
    }

    /// [`write`](Self::write) for tasks.
    pub(super) fn poll_write(&self, cx: &Context<'_>, bytes: &[u8]) -> Poll<usize> {
        let Some(id) = self.id else { return Poll::Ready(bytes.len()) };
        let mut state = self.link.state();
        if !state.is_alive() || state.answers.contains_key(&id) {
            return Poll::Ready(bytes.len());
        }
        let taken = state.client.write(id, bytes);
        if taken == 0 {
            state.wakers.await_request(id, cx.waker());
            return Poll::Pending;
        }
        self.link.pending.notify_one();
        Poll::Ready(taken)
    }

    /// Sends bytes of a put, once there is room for some. Returns their number: all of them once the put has failed.
    pub(super) fn write(&self, bytes: &[u8]) -> usize {
        let Some(id) = self.id else { return bytes.len() };
        let mut state = self.link.state();
        loop {
            if !state.is_alive() || state.answers.contains_key(&id) {
                return bytes.len();
            }
            let taken = state.client.write(id, bytes);
            if taken > 0 {
                self.link.pending.notify_one();
                return taken;
            }
            state = self.link.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether the request has its answer, or never gets one.
    pub(super) fn is_answered(&self) -> bool {
        let state = self.link.state();
        !state.is_alive() || self.id.is_none_or(|id| state.answers.contains_key(&id))
    }

    /// Ends the bytes of a put.
    pub(super) fn finish_put(&self) {
        if let Some(id) = self.id {
            self.link.state().client.finish_put(id);
            self.link.pending.notify_one();
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        let mut state = self.link.state();
        state.wakers.forget(id);
        if state.answers.remove(&id).is_none() && state.is_alive() {
            state.abandoned.insert(id);
            state.client.give_up(id);
            self.link.pending.notify_one();
        }
    }
}

fn gone(link: &Link) -> Error {
    Error::new(Code::PeerLost, format!("the connection to {} has ended", link.host))
}
