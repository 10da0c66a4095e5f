//! Shared by listeners: accepting connections, and reading each caller's request.
//!
//! A caller gets a thread while a place is free. It takes the place with its request, and frees it at the end of its
//! session. Refusals need neither thread nor place.
//!
//! No caller holds a place for long by doing nothing: a request is complete within its time, and a session moves some bytes now and
//! then. Nor does one take all places: callers that are told apart share those of requests, and unlisted ones leave some sessions to
//! those whom the listener knows.

use std::cell::Cell;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use farhaul::security::PublicKey;
use farhaul::{Endpoint, Listener, Stream, WeakEndpoint};
use farhaul_bond::first_request::{self, NoRequest, REQUEST_TIME};
use farhaul_bond::{BondedStream, First, Registry};
use farhaul_session::{AbortCode, Bonding, Open, Request, refusal};
use farhaul_udp::Clock;

use super::alarm::Alarm;
use super::idle::{Running, Sessions};
use super::places::{Places, SessionPlace, Sharing};
use crate::admission::Admission;
use crate::environment::Environment;
use crate::error::{Error, Trouble};
use crate::event::Events;
use crate::quota::Quota;
use crate::session::file::Working;
use crate::text::{plural, time};
use farhaul_keys::Who;

/// Callers beside the sessions whose requests may be pending: twice the connections of two measurements, of which the first caller
/// gets half and the second one half of the rest.
const OPENINGS: usize = 512;
/// Time between looks at forged datagrams, and at idle sessions.
const LOOK: Duration = Duration::from_secs(1);
/// Such looks between looks for keys that have expired. Their last day is exact to a day in UTC, so a minute is soon.
const LOOKS: u32 = 60;
const FULL: &str = "as many sessions as allowed are running; try again later";
/// Callers that have said nothing hold the places of new ones, at most for the time-out of a request.
const SILENT: &str = "as many callers as possible have sent no request yet; try again in 10 s";
const NO_THREAD: &str = "the system gives this server no thread for another session; try again later";

/// A connection whose peer has sent its request.
pub struct Caller {
    /// Number of the session, from 1.
    pub session: u64,
    /// Its address.
    pub peer: SocketAddr,
    /// Nobody knows the caller, where others are known.
    pub is_unlisted: bool,
    /// The connection.
    pub stream: BondedStream,
    /// The request.
    pub open: Open,
    /// Bytes received after the request.
    pub early: Vec<u8>,
    place: Cell<Option<SessionPlace>>,
    running: Arc<Running>,
    refused: Arc<AtomicU64>,
}

impl Caller {
    /// To be shared with the work of the session on this side.
    pub(crate) fn working(&self) -> Working {
        self.running.working()
    }

    /// Its session, for others that look after it.
    pub(super) const fn running(&self) -> &Arc<Running> {
        &self.running
    }

    /// The error of its session, which failed with `trouble`.
    pub fn error(&self, environment: &Environment, trouble: &Trouble) -> Error {
        self.idle_error().unwrap_or_else(|| environment.error(trouble, &self.peer))
    }

    /// The error of its session, if that was ended because its peer did nothing.
    pub fn idle_error(&self) -> Option<Error> {
        self.running.error(&self.peer)
    }

    /// Answers the opening before any access to a disk, since the peer waits no longer than for a connection. Returns the
    /// number of bytes written, which is zero if the peer is gone.
    pub fn answer(&self, words: &[u8]) -> usize {
        self.stream.send(words).unwrap_or(0)
    }

    /// Refuses the request, with the reason.
    pub fn refuse(&self, code: AbortCode, message: &str) {
        self.refused.fetch_add(1, Ordering::AcqRel);
        self.stream.part(&refusal(code, message));
    }

    /// Frees the place at the end of the session, before its report.
    pub fn leave_place(&self) {
        self.place.take();
    }
}

/// Bounds of a listener.
pub struct Limits<'a> {
    /// Most sessions at a time.
    pub sessions: usize,
    /// Time in which each session moves some bytes; for ever without it.
    pub idle: Option<Duration>,
    /// The clients with keys; `None` for plain connections.
    pub clients: Option<&'a Admission>,
    /// Whether callers whom nobody knows are served beside listed ones.
    pub serves_unlisted: bool,
    /// Quotas of lines, whose counts are reported from time to time.
    pub quotas: &'a [&'a Quota],
}

/// The callers of a listener. Clones share everything.
#[derive(Clone)]
pub struct Callers {
    /// Callers that have sent no request yet.
    openings: Places,
    sessions: Places,
    running: Arc<Sessions>,
    /// Sessions since the start.
    served: Arc<AtomicU64>,
    /// Requests that were refused, those of full listeners included.
    refused: Arc<AtomicU64>,
    /// Sessions that further flows may join.
    bonded: Registry,
    /// Warnings about callers that send no request, or no good one.
    warnings: Arc<Quota>,
    /// Whether some callers are known.
    has_listed: bool,
}

impl Callers {
    /// No callers yet. `served` counts their sessions, and numbers them. Others may be numbered by it, too.
    pub fn new(limits: &Limits<'_>, served: &Arc<AtomicU64>, clock: Clock) -> Self {
        let openings = Places::new(OPENINGS, Sharing::Even);
        let sessions = Places::new(limits.sessions, Sharing::FirstCome);
        let (openings, sessions) = match limits.clients.is_some() && limits.serves_unlisted {
            true => (openings.keeping_some_for_listed(), sessions.keeping_some_for_listed()),
            false => (openings, sessions),
        };
        let running = Arc::new(Sessions::new(limits.idle));
        let warnings = Arc::new(Quota::of_warnings(clock, "callers sent no request, or none that is understood,"));
        let has_listed = limits.clients.is_some();
        let (refused, bonded) = (Arc::default(), Registry::default());
        Self { openings, sessions, running, served: Arc::clone(served), refused, bonded, warnings, has_listed }
    }

    /// A place to send a request, if a session is free as well. A further flow of a session needs none.
    ///
    /// # Errors
    /// The words for the caller.
    fn let_in(&self, who: Who) -> Result<SessionPlace, &'static str> {
        if !self.sessions.has_one_for(who) && !self.bonded.expects_flows() {
            return Err(FULL);
        }
        self.openings.take(who).ok_or(SILENT)
    }

    /// A place for a session, and the session's number.
    fn begin_session(&self, who: Who) -> Option<(SessionPlace, u64)> {
        let place = self.sessions.take(who)?;
        Some((place, self.served.fetch_add(1, Ordering::AcqRel) + 1))
    }

    /// Refuses a caller for want of a place or a thread.
    fn turn_away(&self, stream: &First, why: &str) {
        self.refused.fetch_add(1, Ordering::AcqRel);
        part(stream, &refusal(AbortCode::Busy, why));
    }

    /// Requests that were refused since the start.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Acquire)
    }

    /// Sessions that run, and those since the start.
    pub fn counts(&self) -> (u64, u64) {
        (self.sessions.taken() as u64, self.served.load(Ordering::Acquire))
    }

    /// The stream of a request, of which `received` bytes have come. Further flows may join it, if it moves files.
    fn opened(&self, first: First, open: &Open, received: u64) -> BondedStream {
        match open.bonding.filter(|_| matches!(open.request, Request::Push(_) | Request::Pull(_))) {
            Some(bonding) if first.connection().is_some() => {
                let stream = BondedStream::open_from(first, received);
                self.bonded.offer(&stream, bonding);
                stream
            }
            _ => BondedStream::only(first),
        }
    }

    /// Its callers in a few words.
    pub fn state(&self) -> String {
        let (running, served) = self.counts();
        format!("{} running, {served} since the beginning", plural(running, "session"))
    }
}

/// Listens. A server is announced after that, so that nobody who reads the announcement calls too early.
///
/// # Errors
/// The port serves another listener, or its thread is gone.
pub fn listen(environment: &Environment, endpoint: &Endpoint) -> Result<Listener, Error> {
    endpoint.listen().map_err(|error| environment.connection_error(&error, &endpoint.local_addr()))
}

/// Reads the keys of clients again. Clients that may do less than before lose their connections.
pub fn reload(clients: &Admission, endpoint: &Endpoint, events: &Events) {
    match clients.reload(endpoint) {
        Ok(ended) => {
            events.note(&format!("the keys of clients were read again: {}{}", clients.words(), losses(ended)));
            clients.missing_directories().iter().for_each(|missing| events.warn(missing));
        }
        Err(error) => events.warn(&format!("{error}; the keys of before apply")),
    }
}

/// Reports the clients that are not admitted, ends the connections of those whose keys expire, and warns of many forged datagrams.
/// On threads of its own, for as long as the port is open.
///
/// # Errors
/// The system gives no thread.
pub fn guard(environment: &Environment, clients: &Admission, endpoint: &Endpoint) -> Result<(), Error> {
    clients.report_refusals(&environment.events)?;
    let (its, clients, port) = (environment.clone(), clients.clone(), endpoint.downgrade());
    let guard = thread::Builder::new().name("guard".into()).spawn(move || watch_port(&its, &clients, &port))?;
    environment.cancellation.on_cancel(move || guard.thread().unpark());
    Ok(())
}

/// Ends the connections of keys that expire, and warns of many forged datagrams. Ends by a cancellation, or with the port, which it
/// does not keep open.
fn watch_port(Environment { clock, events, cancellation, .. }: &Environment, clients: &Admission, port: &WeakEndpoint) {
    let mut alarm = Alarm::default();
    loop {
        for _ in 0..LOOKS {
            if !cancellation.is_cancelled() {
                thread::park_timeout(LOOK);
            }
            let Some(port) = port.upgrade().filter(|_| !cancellation.is_cancelled()) else { return };
            let Ok(invalid) = port.invalid_datagrams() else { return };
            if let Some(rate) = alarm.look(clock.now(), invalid) {
                events.warn(&format!(
                    "{rate} datagrams a second are forged or belong to no connection: somebody guesses, or floods this port"
                ));
            }
        }
        match port.upgrade().map_or(0, |port| clients.end_expired(&port)) {
            0 => {}
            ended => events.note(&format!("keys of clients have expired{}", losses(ended))),
        }
    }
}

/// The connections that were ended, in words.
fn losses(ended: usize) -> String {
    if ended == 0 { String::new() } else { format!("; {} ended", plural(ended as u64, "connection")) }
}

/// Serves callers within these limits, until a cancellation. `greet` hears of each connection.
///
/// # Errors
/// The reason of the cancellation, or the port is gone.
pub fn run(
    environment: &Environment,
    listening: (Listener, impl Fn(&Stream, SocketAddr)),
    bounds: (&Limits<'_>, &Callers),
    serve: impl Fn(&Caller) + Sync,
) -> Result<(), Error> {
    run_beside(environment, listening, None, bounds, serve)
}

/// The caller that comes through ssh.
pub(crate) struct ThroughSsh {
    /// Its stream.
    pub(crate) stream: First,
    /// The flows that may join it, with this key.
    pub(crate) bonding: Option<Bonding>,
    pub(crate) key: PublicKey,
}

/// The same beside a caller that comes through ssh.
///
/// # Errors
/// As there.
pub(crate) fn run_beside(
    environment: &Environment,
    (listener, greet): (Listener, impl Fn(&Stream, SocketAddr)),
    through: Option<ThroughSsh>,
    (limits, callers): (&Limits<'_>, &Callers),
    serve: impl Fn(&Caller) + Sync,
) -> Result<(), Error> {
    let local = listener.local_addr();
    let (Environment { clock, events, .. }, serve) = (environment, &serve);
    let clock = *clock;
    thread::scope(|scope| {
        let (until_the_end, end) = channel();
        let looking = thread::Builder::new().name("idle".into());
        looking.spawn_scoped(scope, move || look((callers, limits.quotas), (clock, events), &end))?;
        if let Some(through) = through {
            let session = until_the_end.clone();
            thread::Builder::new().name("session".into()).spawn_scoped(scope, move || {
                let _session: Sender<()> = session;
                receive_through((callers, clock), &through, serve);
            })?;
        }
        loop {
            let (stream, peer) = listener.accept().map_err(|error| {
                // The sessions go on, and still end if they are idle.
                environment.connection_error(&error, &local)
            })?;
            greet(&stream, peer);
            let who = limits.clients.map_or_else(|| Who::unlisted(peer), |clients| clients.who(&stream));
            let opening = match callers.let_in(who) {
                Ok(opening) => opening,
                Err(why) => {
                    callers.turn_away(&stream.into(), why);
                    continue;
                }
            };
            let (its, session) = (stream.clone(), until_the_end.clone());
            let begun = thread::Builder::new().name("session".into()).spawn_scoped(scope, move || {
                let _session: Sender<()> = session;
                receive((callers, clock, events), its.into(), (peer, who, opening), serve);
            });
            if let Err(error) = begun {
                let refused = || format!("{peer} was refused, since the system gives no thread: {error}");
                callers.warnings.warn(events, refused);
                callers.turn_away(&stream.into(), NO_THREAD);
            }
        }
    })
}

/// Ends idle sessions and reports the warnings that were left out, until the listener and its sessions have ended.
fn look((callers, quotas): (&Callers, &[&Quota]), (clock, events): (Clock, &Events), end: &Receiver<()>) {
    while end.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
        callers.running.look(clock.now());
        callers.warnings.look(events);
        quotas.iter().for_each(|quota| quota.look(events));
    }
}

/// Reads the request of a caller, and serves it if a place is free.
fn receive(
    (callers, clock, events): (&Callers, Clock, &Events),
    stream: First,
    (peer, who, opening_place): (SocketAddr, Who, SessionPlace),
    serve: &impl Fn(&Caller),
) {
    let (open, early, received) = match first_request::read(&stream, (clock, REQUEST_TIME)) {
        Ok(Some(request)) => request,
        Ok(None) => return,
        Err(why) => return callers.warnings.warn(events, || without_request(peer, &why)),
    };
    if let (Request::Join(join), Some(flow)) = (&open.request, stream.connection()) {
        return callers.bonded.join(flow.clone(), *join, early, REQUEST_TIME);
    }
    let stream = callers.opened(stream, &open, received);
    let begun = callers.begin_session(who);
    drop(opening_place);
    begin((callers, clock), (stream, open, early), (peer, who), begun, serve);
}

/// A caller without a request, in words for the owner of the server.
fn without_request(peer: SocketAddr, why: &NoRequest) -> String {
    match why {
        NoRequest::Late(limit) => format!("{peer} connected and sent no whole request within {}", time(*limit)),
        NoRequest::Left => format!("{peer} left before it sent a request"),
        NoRequest::Lost(error) => format!("{peer} connected and sent no request: {error}"),
        NoRequest::Foreign(error) => format!("{peer}: {error}"),
    }
}

/// Reads the request of the caller that comes through ssh once it uses its stream, and serves it.
fn receive_through((callers, clock): (&Callers, Clock), through: &ThroughSsh, serve: &impl Fn(&Caller)) {
    let (first, peer) = (&through.stream, through.stream.peer_addr());
    // The local program knows what went wrong: it is its own.
    let Some(Ok(Some((open, early, received)))) =
        first.wait_until_begun().then(|| first_request::read(first, (clock, REQUEST_TIME)))
    else {
        return;
    };
    let stream = match through.bonding {
        Some(bonding) => {
            let stream = BondedStream::open_from(first.clone(), received);
            callers.bonded.offer_to(&stream, bonding, through.key);
            stream
        }
        None => BondedStream::only(first.clone()),
    };
    let who = Who::unlisted(peer);
    begin((callers, clock), (stream, open, early), (peer, who), callers.begin_session(who), serve);
}

/// Serves a caller that has a place.
fn begin(
    (callers, clock): (&Callers, Clock),
    (stream, open, early): (BondedStream, Open, Vec<u8>),
    (peer, who): (SocketAddr, Who),
    begun: Option<(SessionPlace, u64)>,
    serve: &impl Fn(&Caller),
) {
    match begun {
        Some((place, session)) => {
            let running = callers.running.begin(stream.clone(), clock.now());
            let (is_unlisted, place) = (callers.has_listed && who.is_unlisted(), Cell::new(Some(place)));
            let refused = Arc::clone(&callers.refused);
            serve(&Caller { session, peer, is_unlisted, stream, open, early, place, running, refused });
        }
        None => callers.turn_away(stream.first(), FULL),
    }
}

/// Sends the last message to a peer that may be gone. It finishes in the background, so that a silent peer delays nothing.
fn part(stream: &First, words: &[u8]) {
    BondedStream::only(stream.clone()).part(words);
}
