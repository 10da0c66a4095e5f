//! Shared by listeners: accepting connections, and reading each caller's request.
//!
//! A caller gets a thread while a place is free. It takes the place with its request, and frees it at the end of its
//! session. Refusals need neither thread nor place.

mod alarm;
mod places;

use std::cell::Cell;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use farhaul::{Endpoint, Error, Listener, Stream};
use farhaul_session::{AbortCode, Acceptor, Open, refusal, refusal_of};
use farhaul_udp::Clock;

use super::Context;
use crate::exit::Fault;
use crate::output::Output;
use crate::output::human::plural;
use crate::reloading::Reloading;
use crate::trust::Admission;
use alarm::Alarm;
use places::{Place, Places};

/// Time-out for a peer's request.
const OPENING: Duration = Duration::from_secs(10);
/// Callers beside the sessions whose requests may be pending: the connections of two measurements.
const OPENINGS: usize = 256;
/// Time between looks at forged datagrams.
const LOOK: Duration = Duration::from_secs(1);
/// Such looks between looks for keys that have expired. Their last day is exact to a day in UTC, so a minute is soon.
const LOOKS: u32 = 60;
/// Bytes per read of a request.
const BLOCK: usize = 64 << 10;
const FULL: &str = "as many sessions as allowed are running; try again later";
/// Callers that have said nothing hold the places of new ones, at most for the time-out of a request.
const SILENT: &str = "as many callers as possible have sent no request yet; try again in 10 s";
const NO_THREAD: &str = "the system gives this server no thread for another session; try again later";

/// A connection whose peer has sent its request.
pub(super) struct Caller {
    /// Number of the session, from 1.
    pub(super) session: u64,
    pub(super) peer: SocketAddr,
    pub(super) stream: Stream,
    pub(super) open: Open,
    /// Bytes received after the request.
    pub(super) early: Vec<u8>,
    place: Cell<Option<Place>>,
}

impl Caller {
    /// Answers the opening before any access to a disk, since the peer waits no longer than for a connection. Returns the
    /// number of bytes written, which is zero if the peer is gone.
    pub(super) fn answer(&self, words: &[u8]) -> usize {
        self.stream.send(words).unwrap_or(0)
    }

    /// Refuses the request, with the reason.
    pub(super) fn refuse(&self, code: AbortCode, message: &str) {
        part(&self.stream, &refusal(code, message));
    }

    /// Frees the place at the end of the session, before its report.
    pub(super) fn leave_place(&self) {
        self.place.take();
    }
}

/// The callers of a listener, for SIGUSR1.
#[derive(Clone)]
struct Callers {
    threads: Places,
    sessions: Places,
    /// Sessions since the start.
    served: Arc<AtomicU64>,
}

impl Callers {
    fn new(max: usize, served: &Arc<AtomicU64>) -> Self {
        let threads = Places::new(max.saturating_add(OPENINGS));
        Self { threads, sessions: Places::new(max), served: Arc::clone(served) }
    }

    /// A place for one more thread, if a session is free as well.
    fn let_in(&self) -> Option<Place> {
        if self.sessions.are_taken() { None } else { self.threads.take() }
    }

    /// A place for a session, and the session's number.
    fn begin_session(&self) -> Option<(Place, u64)> {
        let place = self.sessions.take()?;
        Some((place, self.served.fetch_add(1, Ordering::AcqRel) + 1))
    }

    fn state(&self) -> String {
        let (running, served) = (self.sessions.taken(), self.served.load(Ordering::Acquire));
        format!("{} running, {served} since the beginning", plural(running as u64, "session"))
    }
}

/// Listens. A server is announced after that, so that nobody who reads the announcement calls too early.
pub(super) fn listen(context: &Context, endpoint: &Endpoint) -> Result<Listener, Fault> {
    endpoint.listen().map_err(|error| context.connection_fault(&error, &endpoint.local_addr()))
}

/// Reports the clients that are not admitted, and reads their keys again on SIGHUP. Then calls `reload`. Clients that may do less
/// than before lose their connections, and so do those whose keys expire. Warns of many forged datagrams.
pub(super) fn admit(
    (reloading, output, clock): (Option<&Reloading>, &Output, Clock),
    (clients, endpoint): (Option<&Admission>, &Endpoint),
    reload: impl Fn(&Output) + Send + 'static,
) -> Result<(), Fault> {
    let Some((clients, reloading)) = clients.zip(reloading) else { return Ok(()) };
    clients.report_refusals(output)?;
    let (its, words, port) = (clients.clone(), output.clone(), endpoint.clone());
    reloading.react(move || {
        match its.reload(&port) {
            Ok(ended) => words.say(&format!("the keys of clients were read again: {}{}", its.words(), losses(ended))),
            Err(fault) => words.warn(&format!("{fault}; the keys of before apply")),
        }
        reload(&words);
    });
    let (its, words, port) = (clients.clone(), output.clone(), endpoint.clone());
    thread::Builder::new().name("guard".into()).spawn(move || guard(clock, &its, &words, &port))?;
    Ok(())
}

/// Ends the connections of keys that expire, and warns of many forged datagrams. Ends with the port.
fn guard(clock: Clock, clients: &Admission, output: &Output, port: &Endpoint) {
    let mut alarm = Alarm::default();
    loop {
        for _ in 0..LOOKS {
            thread::park_timeout(LOOK);
            let Ok(invalid) = port.invalid_datagrams() else { return };
            if let Some(rate) = alarm.look(clock.now(), invalid) {
                output.warn(&format!(
                    "{rate} datagrams a second are forged or belong to no connection: somebody guesses, or floods this port"
                ));
            }
        }
        match clients.end_expired(port) {
            0 => {}
            ended => output.say(&format!("keys of clients have expired{}", losses(ended))),
        }
    }
}

/// The connections that were ended, in words.
fn losses(ended: usize) -> String {
    if ended == 0 { String::new() } else { format!("; {} ended", plural(ended as u64, "connection")) }
}

/// Serves callers, `max` at a time, until a signal stops the program. `served` numbers their sessions. `greet` hears of
/// each connection.
pub(super) fn run(
    (context, output): (&Context, &Output),
    (listener, greet): (Listener, impl Fn(&Stream, SocketAddr)),
    max: usize,
    served: &Arc<AtomicU64>,
    serve: impl Fn(&Caller) + Sync,
) -> Result<(), Fault> {
    let local = listener.local_addr();
    let callers = Callers::new(max, served);
    let (shown, words) = (callers.clone(), output.clone());
    context.interrupt.shows(move || words.state(&shown.state()));
    let (callers, serve) = (&callers, &serve);
    thread::scope(|scope| {
        loop {
            let (stream, peer) = listener.accept().map_err(|error| context.connection_fault(&error, &local))?;
            greet(&stream, peer);
            let Some(thread) = callers.let_in() else {
                part(&stream, &refusal(AbortCode::Busy, if callers.sessions.are_taken() { FULL } else { SILENT }));
                continue;
            };
            let its = stream.clone();
            let begun = thread::Builder::new().name("session".into()).spawn_scoped(scope, move || {
                let _thread = thread;
                receive(callers, output, its, peer, serve);
            });
            if let Err(error) = begun {
                output.warn(&format!("{peer} was refused, since the system gives no thread: {error}"));
                part(&stream, &refusal(AbortCode::Busy, NO_THREAD));
            }
        }
    })
}

/// Reads the request of a caller, and serves it if a place is free.
fn receive(callers: &Callers, output: &Output, stream: Stream, peer: SocketAddr, serve: &impl Fn(&Caller)) {
    let Some((open, early)) = opening(output, &stream, peer) else { return };
    match callers.begin_session() {
        Some((place, session)) => serve(&Caller { session, peer, stream, open, early, place: Cell::new(Some(place)) }),
        None => part(&stream, &refusal(AbortCode::Busy, FULL)),
    }
}

/// Reads the request of a peer. Warns if the peer speaks another protocol.
fn opening(output: &Output, stream: &Stream, peer: SocketAddr) -> Option<(Open, Vec<u8>)> {
    let mut acceptor = Acceptor::new();
    let (mut block, mut has_spoken) = (vec![0; BLOCK], false);
    stream.set_read_timeout(Some(OPENING));
    loop {
        let len = match stream.recv(&mut block) {
            Err(Error::Cancelled) => return None,
            Ok(0) if !has_spoken => return None,
            Ok(0) => {
                output.warn(&format!("{peer} left before it sent a request"));
                return None;
            }
            Ok(len) => len,
            Err(error) => {
                output.warn(&format!("{peer} connected and sent no request: {error}"));
                return None;
            }
        };
        match acceptor.handle_received(&block[..len]) {
            Ok((_, None)) => has_spoken = true,
            Ok((used, Some(open))) => {
                stream.set_read_timeout(None);
                return Some((open, block[used..len].to_vec()));
            }
            Err(error) => {
                output.warn(&format!("{peer}: {error}"));
                part(stream, &refusal_of(&error));
                return None;
            }
        }
    }
}

/// Sends the last message to a peer that may be gone. It finishes in the background, so that a silent peer delays nothing.
fn part(stream: &Stream, words: &[u8]) {
    stream.set_write_timeout(Some(Duration::ZERO));
    // A short message fits, unless the peer has acknowledged nothing so far.
    let _ = stream.send(words);
    stream.finish_in_background();
}
