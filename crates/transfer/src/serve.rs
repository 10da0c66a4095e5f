//! A server of one directory: the other end of copies.
//!
//! ```text
//! listener ── a caller with its request ──▶ DirectoryServer ── permissions ──▶ hosting ── Capped ──▶ disk
//! ```
//!
//! | part | owns |
//! | --- | --- |
//! | [`listener`] | callers: places, requests, idle sessions |
//! | `hosting` | one session, from its request to its report |
//! | `permissions` | what a client may do here |
//! | `capped` | the caps of a client's key, as a source or store |
//! | `store_caps` | the same for what a store keeps beside the files |
//! | `older` | sessions of clients that were killed, and repeat their copies |
//! | `files` | sessions of the file service, and what their clients may do |
//! | `plain` | clients without keys beside those with keys |

mod alarm;
mod capped;
mod files;
pub(crate) mod hosting;
mod idle;
pub mod listener;
mod older;
mod permissions;
mod places;
mod plain;
mod store_caps;

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use farhaul::security::PlainClients;
use farhaul::{Listener, Stream};
use farhaul_disk::{Directory, DiskSource, DiskStore, HeldDirectories, Reach, Selection, Wording};
use farhaul_keys::Permit;
use farhaul_session::{AbortCode, CopyScope, Push, Request, ShownPath};
use farhaul_units::Rate;

pub use plain::{PlainAccess, PlainRules};

use self::capped::Capped;
use self::files::KeyGuard;
use self::hosting::Hosting;
use self::listener::{Caller, Callers, Limits};
use self::older::RunningCopies;
use self::permissions::{Allowed, Client, Permissions};
use self::store_caps::StoreCaps;
use crate::admission::{Admission, Rights};
use crate::connect;
use crate::environment::Environment;
use crate::error::{Code, Error};
use crate::event::Event;
use crate::quota::Quota;
use crate::report::Report;
use crate::session::file::{Holding, Missing, Target, ends, lock_wait, patience, select};
use crate::settings::Settings;
use crate::text::reason;

/// Time in which a session moves some bytes, by default. A client that is suspended for ten minutes survives.
pub const IDLE: Duration = Duration::from_secs(900);
/// Sessions at a time, by default.
const SESSIONS: usize = 64;

/// A server of one directory.
#[derive(Debug)]
pub struct DirectoryServer {
    /// The root as it was named, for messages.
    path: PathBuf,
    /// `None` for plain connections, whose callers are anybody.
    clients: Option<Admission>,
    /// The plain clients beside those with keys.
    plain: Option<PlainAccess>,
    permissions: Permissions,
    sessions: usize,
    idle: Option<Duration>,
    /// Sessions since the start.
    served: Arc<AtomicU64>,
}

impl DirectoryServer {
    /// A server of `root` for these clients; `None` for plain connections, whose callers are anybody. Without `read_only`, clients
    /// may write where their keys permit it.
    ///
    /// # Errors
    /// The root is no directory that can be read.
    pub fn of(root: &Path, clients: Option<Admission>, read_only: bool) -> Result<Self, Error> {
        let named = root.canonicalize().and_then(|path| Ok((Directory::open(&path)?, path)));
        let (directory, path) = named.map_err(|error| no_root(root, &error))?;
        let directories = HeldDirectories::below(directory);
        let usages = clients.as_ref().map(Admission::usages).unwrap_or_default();
        if let Some(clients) = &clients {
            clients.hold_directories(&directories);
        }
        let permissions = Permissions::new((path, directories), read_only, usages, PlainClients::MAX_RATE);
        let (sessions, idle, served) = (SESSIONS, Some(IDLE), Arc::default());
        Ok(Self { path: root.to_owned(), clients, plain: None, permissions, sessions, idle, served })
    }

    /// The same with plain clients beside those with keys.
    #[must_use]
    pub fn with_plain(mut self, plain: Option<PlainAccess>) -> Self {
        self.plain = plain;
        self
    }

    /// The same with a cap of the rate of all clients together whose keys stand in no file. Default 1 Gbit/s.
    #[must_use]
    pub fn unlisted_rate(mut self, rate: Rate) -> Self {
        self.permissions.cap_unlisted(rate);
        self
    }

    /// The same with at most so many sessions at a time. Default 64.
    #[must_use]
    pub const fn sessions(mut self, most: usize) -> Self {
        self.sessions = most;
        self
    }

    /// The same with a time in which each session must move some bytes; `None` for none. Default [`IDLE`].
    #[must_use]
    pub const fn idle(mut self, limit: Option<Duration>) -> Self {
        self.idle = limit;
        self
    }

    /// The root without links in its path, for messages. The server itself uses [`directory`](Self::directory).
    pub fn root(&self) -> &Path {
        self.permissions.path()
    }

    /// The root, held open.
    pub fn directory(&self) -> &Directory {
        self.permissions.root()
    }

    /// The clients with keys; `None` for plain connections.
    pub const fn clients(&self) -> Option<&Admission> {
        self.clients.as_ref()
    }

    /// The plain clients beside those with keys.
    pub const fn plain(&self) -> Option<&PlainAccess> {
        self.plain.as_ref()
    }

    /// Counts its sessions since the start, and numbers them. Others may be numbered by it, too.
    pub fn served(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.served)
    }

    /// Serves the callers of `listener` until a cancellation. `begin` gets what counts them, before the first one is taken.
    ///
    /// # Errors
    /// The reason of the cancellation, or the port is gone.
    pub fn run(
        &self,
        environment: &Environment,
        settings: &Settings,
        listener: Listener,
        begin: impl FnOnce(&Callers),
    ) -> Result<(), Error> {
        let plain_connections = Quota::of_warnings(environment.clock, "plain connections were made");
        let unlisted = Quota::of_sessions(environment.clock, "sessions of callers that nobody knows have ended");
        let quotas = [&plain_connections, &unlisted];
        let limits = Limits {
            sessions: self.sessions,
            idle: self.idle,
            clients: self.clients.as_ref(),
            serves_unlisted: self.plain.is_some() || self.clients.as_ref().is_some_and(Admission::admits_anybody),
            quotas: &quotas,
        };
        let callers = Callers::new(&limits, &self.served, environment.clock);
        self.permissions.missing().iter().for_each(|missing| environment.events.warn(missing));
        begin(&callers);
        let hosting = Hosting { environment, settings, peer_decides_cap: false };
        let (plain_connections, unlisted, copies) = (&plain_connections, &unlisted, RunningCopies::default());
        let serving = Serving { server: self, hosting, plain_connections, unlisted, copies };
        let greet = |stream: &Stream, peer| serving.greet(stream, peer);
        listener::run(environment, (listener, greet), (&limits, &callers), |caller| serving.serve(caller))
    }
}

fn no_root(root: &Path, error: &io::Error) -> Error {
    Error::new(Code::LocalIo, format!("cannot serve {}: {}", root.display(), reason(error)))
        .remedy("‹root› must be a directory")
}

/// A server that runs.
struct Serving<'a> {
    server: &'a DirectoryServer,
    hosting: Hosting<'a>,
    /// Plain connections that are reported, of a port that also encrypts.
    plain_connections: &'a Quota,
    /// Sessions that are reported, of callers that nobody knows where others are known.
    unlisted: &'a Quota,
    /// The copies to this server that run.
    copies: RunningCopies,
}

impl Serving<'_> {
    fn serve(&self, caller: &Caller) {
        let client = self.server.permissions.of(self.rights(caller));
        let mut allowed = match client.allows(&caller.open.request) {
            Ok(allowed) => allowed,
            Err((code, why)) => return caller.refuse(code, &why),
        };
        allowed.permit = allowed.permit.ending_by(ends(&caller.stream, self.hosting.environment));
        match &caller.open.request {
            Request::Push(push) => self.receive(caller, push, allowed),
            Request::Pull(pull) => self.send(caller, &pull.scope, allowed),
            _ => self.serve_files(caller, &client, allowed.permit),
        }
    }

    fn serve_files(&self, caller: &Caller, client: &Client<'_>, permit: Permit) {
        let Environment { clock, events, .. } = self.hosting.environment;
        let guard = KeyGuard::new(client, permit, (*clock, events.of_session(caller.session)));
        let reach = Reach::Beneath(Arc::clone(self.server.permissions.root()));
        let (report, result) = self.hosting.serve_files(caller, reach, guard);
        self.report(caller, report, result);
    }

    /// Reports a plain connection of a port that also encrypts. On others, the start did.
    fn greet(&self, stream: &Stream, peer: SocketAddr) {
        if self.server.plain.is_some() && is_plain(stream) {
            self.plain_connections.warn(&self.hosting.environment.events, || {
                format!("{peer} is connected in plain: everybody on the path may read and change the data")
            });
        }
    }

    fn rights(&self, caller: &Caller) -> Rights {
        match (&self.server.clients, &self.server.plain) {
            (None, _) => Rights::All,
            (Some(_), Some(plain)) if caller.stream.connection().is_some_and(is_plain) => plain.rights(caller.peer),
            (Some(clients), _) => {
                caller.stream.connection().map_or(Rights::None, |connection| clients.rights(connection))
            }
        }
    }

    fn receive(&self, caller: &Caller, push: &Push, Allowed { places, permit, munges_links }: Allowed) {
        let place = places.first().expect("a push names one place");
        let clock = self.hosting.environment.clock;
        let (target, holding) = (Target::beneath(&self.server.path, &push.target, place), Holding::default());
        let protection = caller.stream.connection().and_then(|connection| connection.protection().ok().flatten());
        let key = protection.and_then(|protection| protection.peer_key);
        let older = key.map(|key| self.copies.begin(key, &push.target, caller.running()));
        let open = || {
            let store = DiskStore::beneath(&place.start, &place.below, push.target_is_directory)?;
            let events = self.hosting.environment.events.of_session(caller.session);
            let patience = patience(&push.rules, &caller.stream, self.hosting.environment, events);
            let Hosting { settings, environment, .. } = &self.hosting;
            let wait = lock_wait(settings.timeout, &caller.stream, environment);
            let wait = match older.clone() {
                Some(older) => wait.hurried_by(move || older.end_silent()),
                None => wait,
            };
            let store = store.under_rules(&push.rules, false).waiting_by(patience).waiting_for_locks(wait);
            let ends = ends(&caller.stream, environment);
            let permit = Arc::new(permit);
            let store = store.ending_by(ends).within_caps(Arc::new(StoreCaps::new(Arc::clone(&permit), clock)));
            Ok(Capped::new(store, permit, clock, holding.clone()).munging_links(munges_links))
        };
        if let Some((report, result)) = self.hosting.receive(caller, None, (&push.target, &target), open, &holding) {
            self.report(caller, report, result);
        }
    }

    fn send(&self, caller: &Caller, scope: &CopyScope, Allowed { places, permit, .. }: Allowed) {
        let begun = self.hosting.begin_to_send(caller);
        let wording = if scope.patterns { Wording::Patterns } else { Wording::Literal };
        let each =
            || scope.paths.iter().map(ShownPath::from).zip(Selection::each_at(&places, wording, scope.recursive));
        let source = match (&scope.names, &places[..], &scope.paths[..]) {
            (Some(_), [base, ..], [path, ..]) => {
                DiskSource::by_names_beneath(&base.start, &base.below, scope.recursive)
                    .map_err(|error| Missing::one(ShownPath::from(path), &error))
            }
            _ => select(Selection::at(&places, wording, scope.recursive), scope.single, each).map(DiskSource::of),
        };
        let (report, result) = match source {
            Ok(source) => {
                let mut source = match source.under_rules(&scope.rules) {
                    Ok(source) => source,
                    Err(why) => return caller.refuse(AbortCode::Refused, &why),
                };
                if connect::is_here(caller.peer) {
                    source.leave_out_younger_directories();
                }
                let holding = Holding::default();
                let source = Capped::new(source, permit, self.hosting.environment.clock, holding.clone());
                self.hosting.send(caller, begun, source, holding)
            }
            Err(missing) => self.hosting.send(caller, begun, missing, Holding::default()),
        };
        self.report(caller, report, result);
    }

    fn report(&self, caller: &Caller, report: Report, result: Result<(), Error>) {
        let events = &self.hosting.environment.events;
        if caller.is_unlisted && !self.unlisted.admits(events) {
            return;
        }
        events.of_session(caller.session).send(&Event::Ended(&report, result.as_ref().err()));
    }
}

/// Whether nobody has proved to be the peer of a connection. A port that is gone has no proof.
fn is_plain(stream: &Stream) -> bool {
    stream.is_plain().unwrap_or(true)
}
