//! The remote program of a copy or a command over SSH. Ssh starts it, and talks to it on stdin and stdout.

mod job;

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use farhaul::Endpoint;
use farhaul::security::{KeyPair, Pinned, PublicKey, Security};
use farhaul_bond::First;
use farhaul_bond::mux::{self, Gone, MOST_OPENING, Mux, MuxStream};
use farhaul_disk::{DiskSource, DiskStore, Reach, Selection, Unguarded, Wording};
use farhaul_keys::identity;
use farhaul_session::{AbortCode, CopyScope, Request, ShownPath, escape};

use self::job::Job;
use crate::connect;
use crate::copy::CopyJob;
use crate::environment::Environment;
use crate::error::{Code, Error};
use crate::event::Events;
use crate::remote::frames::{Frames, MARK, decode_body};
use crate::remote::messages::{Failed, Flowing, FromRemote, Hello, Ready, Stored, ToRemote, VERSION};
use crate::remote::{Other, ssh_tells_the_end, stdout};
use crate::rsh::{self, CommandHost};
use crate::serve::hosting::Hosting;
use crate::serve::listener::{self, Caller, Callers, Limits, ThroughSsh};
use crate::session::file::{Holding, Missing, Target, ends, lock_wait, patience, select};
use crate::settings::Settings;
use crate::throttle::Throttle;

/// The next step if two programs are of different versions.
const UPDATE: &str = "update the older side";
/// The local program calls within this time, or not at all.
const FIRST_PACKET: Duration = Duration::from_secs(30);
/// Bytes per read.
const BLOCK: usize = 64 << 10;
/// Addresses of `SSH_CONNECTION` (ssh(1)): client, its port, server, its port.
const SERVER_ADDRESS: usize = 2;

/// What a program has to bring along that is started on a remote host.
pub trait Host: CommandHost + Sync {
    /// The settings of connections that these words of a command line give.
    ///
    /// # Errors
    /// A word is unknown.
    fn settings(&self, words: &[String]) -> Result<Settings, String>;

    /// The home directory of the user with this name. `None` if there is no such user.
    ///
    /// # Errors
    /// The system does not tell.
    fn home_of(&self, user: &OsStr) -> io::Result<Option<PathBuf>>;

    /// Leaves the session of ssh, whose end sends signals to its processes.
    ///
    /// # Errors
    /// The system refuses.
    fn leave_session(&self) -> Result<(), Error>;

    /// Carries out a copy to another remote program. What happens goes to the local program by [`send_record`].
    ///
    /// # Errors
    /// The copy failed. The local program knows.
    fn forward(&self, copy: CopyJob, words: &[String]) -> Result<(), Error>;
}

/// Serves one copy over SSH. A failure is told to the local program, and nobody else.
///
/// # Errors
/// The copy failed. The local program knows.
pub fn run(host: &dyn Host, environment: &Environment) -> Result<(), Error> {
    io::stdout().write_all(MARK).and_then(|()| io::stdout().flush())?;
    let environment = Environment { events: Events::unheard(), ..environment.clone() };
    let mut near = LocalProgram { frames: Frames::clean(), opening: Vec::new() };
    let done = near.hello().and_then(|hello| serve(near, hello, host, &environment));
    let done = done.map_err(|error| {
        send(&FromRemote::Failed(Failed::from(&error)));
        error.quietly()
    });
    stdout::finish();
    done
}

/// Tells the local program a record of a copy to another remote program.
///
/// # Errors
/// Nobody hears it any more.
pub fn send_record(record: serde_json::Value) -> io::Result<()> {
    stdout::send(&FromRemote::Record(record))
}

fn send(message: &FromRemote) {
    // Its reader may be gone. Then stdin ends, too.
    let _ = stdout::send(message);
}

/// The local program, which speaks on stdin.
struct LocalProgram {
    frames: Frames,
    /// What its first message has of the stream, as bytes of the mux.
    opening: Vec<u8>,
}

impl LocalProgram {
    fn hello(&mut self) -> Result<Hello, Error> {
        let mut hello = match self.next() {
            Some(told) => read_hello(told)?,
            None if self.frames.is_empty() => {
                return Err(Error::new(Code::SshFailed, "nothing of the local program came in through ssh")
                    .remedy("leave StdinNull and -n out of the settings of ssh, and let login shells read nothing"));
            }
            None => return Err(another_version()),
        };
        if let Some(opening) = hello.opening.take() {
            let opening = opening.bytes().filter(|opening| opening.len() <= MOST_OPENING);
            let wrong = || Error::new(Code::Protocol, "the stream begins with no base64, or with too much of it");
            self.opening = mux::opening(&opening.ok_or_else(wrong)?);
        }
        Ok(hello)
    }

    /// The next message; `None` at the end of the SSH connection.
    fn next(&mut self) -> Option<serde_json::Value> {
        let mut block = vec![0; BLOCK];
        loop {
            match self.frames.next() {
                Ok(Some(message)) => return Some(message),
                Ok(None) => {}
                Err(_) => return None,
            }
            let len = io::stdin().lock().read(&mut block).ok().filter(|&len| len > 0)?;
            self.frames.extend(&block[..len]).ok()?;
        }
    }
}

/// The first message of the local program. Its version is read before its task, which may be another one in another version.
fn read_hello(told: serde_json::Value) -> Result<Hello, Error> {
    let head = &told["hello"];
    match head["version"].as_u64() {
        Some(version) if version != u64::from(VERSION) => Err(Error::new(
            Code::Protocol,
            format!(
                "farhaul {} there speaks version {VERSION} of copies over SSH, and farhaul {} here version {version}",
                env!("CARGO_PKG_VERSION"),
                escape(head["program"].as_str().unwrap_or("of another version").as_bytes()),
            ),
        )
        .remedy(UPDATE)),
        _ => match serde_json::from_value(told) {
            Ok(ToRemote::Hello(hello)) => Ok(hello),
            _ => Err(another_version()),
        },
    }
}

fn another_version() -> Error {
    Error::new(Code::Protocol, "the local program speaks another version").remedy(UPDATE)
}

fn serve(near: LocalProgram, hello: Hello, host: &dyn Host, environment: &Environment) -> Result<(), Error> {
    let settings = host.settings(&hello.options).map_err(|line| Error::new(Code::Protocol, line).remedy(UPDATE))?;
    let identity = identity::generate()?;
    let job = Job::of(&hello.task, host)?;
    if let Job::Forward { paths, recursive, names, rules } = &job {
        let (say, heard) = sync_channel(2);
        let cancellation = environment.cancellation.clone();
        // The end of the SSH connection stops the copy.
        let at_end = move || cancellation.cancel_because(Error::new(Code::Terminated, "ssh has ended"));
        let mux = follow(near, ready(&identity, 0, &job), Some(say), at_end, environment.throttle.clone())?;
        let Ok(ToRemote::Call(call)) = heard.recv() else { return Ok(()) };
        let to = Other::new(call, identity, hello.ports, (mux.stream(settings.timeout), heard))?;
        let copy = CopyJob::forward(paths.clone(), *recursive, to);
        let copy = match names {
            Some(names) => copy.with_names(names.clone())?,
            None => copy,
        };
        return host.forward(copy.with_settings(settings).with_rules(rules.clone()), &hello.options);
    }
    let key: PublicKey = hello
        .key
        .as_deref()
        .unwrap_or_default()
        .parse()
        .map_err(|_| Error::new(Code::Protocol, "the local program has no key of a known kind").remedy(UPDATE))?;
    let trust = Pinned { servers: Vec::new(), clients: vec![key] };
    let security = Security::new(identity.clone(), trust).cipher(settings.security.cipher);
    let endpoint = settings.bind_in(hello.ports, &security)?;
    // The local program may keep a control stream beside its copy.
    endpoint.answer_probes().map_err(|error| environment.connection_error(&error, &endpoint.local_addr()))?;
    let listener = listener::listen(environment, &endpoint)?;
    let port = endpoint.local_addr().port();
    environment.cancellation.cancels(endpoint.canceller());
    let (begun, begins) = sync_channel(1);
    let has_begun = Arc::new(AtomicBool::new(false));
    let (canceller, its, detach) = (endpoint.canceller(), Arc::clone(&has_begun), hello.detach);
    let at_end = move || {
        if !(detach && its.load(Ordering::Acquire)) {
            ssh_tells_the_end();
            canceller.cancel();
        }
    };
    let mux = follow(near, ready(&identity, port, &job), None, at_end, environment.throttle.clone())?;
    if detach {
        host.leave_session()?;
    }
    let through_ssh = mux.stream(settings.timeout);
    let its = through_ssh.clone();
    environment.cancellation.on_cancel(move || its.cancel());
    let copy = OneCopy {
        hosting: Hosting { environment, settings: &settings, peer_decides_cap: true },
        job: &job,
        host,
        endpoint: &endpoint,
        through_ssh: &through_ssh,
        has_begun,
        outcome: Mutex::default(),
    };
    let canceller = endpoint.canceller();
    thread::Builder::new().name("first packet".into()).spawn(move || {
        if begins.recv_timeout(FIRST_PACKET) == Err(RecvTimeoutError::Timeout) {
            canceller.cancel();
        }
    })?;
    let through = ThroughSsh {
        stream: First::Ssh(through_ssh.clone(), client_address()),
        bonding: hello.flows.as_ref().and_then(Flowing::bonding),
        key,
    };
    // The local program and ssh decide how long the one copy may take.
    let limits = Limits { sessions: 1, idle: None, clients: None, serves_unlisted: false, quotas: &[] };
    let callers = Callers::new(&limits, &Arc::default(), environment.clock);
    let over = listener::run_beside(environment, (listener, |_, _| ()), Some(through), (&limits, &callers), |caller| {
        copy.serve(caller, &begun);
    });
    let outcome = copy.outcome.lock().unwrap_or_else(PoisonError::into_inner).take();
    // The end of the SSH connection and the end of the copy both cancel the listener.
    outcome.unwrap_or_else(|| over.and(Ok(())))
}

/// The address of the local program, as ssh sees it.
fn client_address() -> Option<SocketAddr> {
    let connection = std::env::var("SSH_CONNECTION").unwrap_or_default();
    let mut words = connection.split_ascii_whitespace();
    Some((words.next()?.parse::<IpAddr>().ok()?, words.next()?.parse().ok()?).into())
}

fn ready(identity: &KeyPair, port: u16, job: &Job) -> Ready {
    let connection = std::env::var("SSH_CONNECTION").unwrap_or_default();
    let address = connection.split_ascii_whitespace().nth(SERVER_ADDRESS).and_then(|address| address.parse().ok());
    let throttles = matches!(job, Job::Forward { .. } | Job::Run(_));
    Ready { key: identity.public().to_string(), port, address, takes_one: job.takes_one(), throttles }
}

/// Tells the local program that this one is ready, and follows it. The end of the SSH connection calls `at_end`. `throttle` does as its user
/// says, and `others` gets what else it says.
fn follow(
    near: LocalProgram,
    ready: Ready,
    others: Option<SyncSender<ToRemote>>,
    at_end: impl FnOnce() + Send + 'static,
    throttle: Throttle,
) -> Result<Mux, Error> {
    let hear = move |message: &[u8]| {
        match decode_body(message).map_err(|_| Gone)? {
            ToRemote::Throttle(change) => throttle.apply(change.into()),
            // Who says more than is taken has nobody to hear it.
            other => {
                if let Some(others) = &others {
                    drop(others.try_send(other));
                }
            }
        }
        Ok(())
    };
    let first = [near.opening, near.frames.into_rest()].concat();
    Ok(stdout::begin(ready, first, hear, at_end)?)
}

/// The one copy of this program, which is its remote end.
struct OneCopy<'a> {
    hosting: Hosting<'a>,
    job: &'a Job,
    host: &'a dyn Host,
    endpoint: &'a Endpoint,
    through_ssh: &'a MuxStream,
    /// Whether the local program has called.
    has_begun: Arc<AtomicBool>,
    outcome: Mutex<Option<Result<(), Error>>>,
}

impl OneCopy<'_> {
    fn serve(&self, caller: &Caller, begun: &SyncSender<()>) {
        self.has_begun.store(true, Ordering::Release);
        // The first one counts.
        let _ = begun.try_send(());
        let result = match (self.job, &caller.open.request) {
            // The sender has no say in what the target is.
            (Job::Receive { target, is_directory, scope }, Request::Push(_)) => {
                self.receive(caller, target, *is_directory, scope)
            }
            (Job::Send { paths }, Request::Pull(pull)) => self.send(caller, &pull.scope, paths),
            (Job::Run(command), Request::Command(request)) => {
                rsh::server::serve(self.hosting.environment, caller, *request, command)
            }
            (Job::Files, Request::Files) => {
                let reach = Reach::Own(Box::new(|path: &[u8]| job::local_place(path, self.host)));
                self.hosting.serve_files(caller, reach, Unguarded).1
            }
            _ => return caller.refuse(AbortCode::WrongService, "this program is for another copy"),
        };
        *self.outcome.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        self.endpoint.canceller().cancel();
        // The copy may have taken the other way.
        self.through_ssh.cancel();
    }

    fn receive(&self, caller: &Caller, target: &Path, is_directory: bool, scope: &CopyScope) -> Result<(), Error> {
        let place = escape(target.as_os_str().as_encoded_bytes());
        let environment = self.hosting.environment;
        let open = || {
            let patience = patience(&scope.rules, &caller.stream, environment, environment.events.clone());
            let wait = lock_wait(self.hosting.settings.timeout, &caller.stream, environment);
            let store = DiskStore::at(target, is_directory)?.under_rules(&scope.rules, true);
            let store = store.waiting_by(patience).waiting_for_locks(wait);
            Ok(store.ending_by(ends(&caller.stream, environment)))
        };
        let (target, holding) = (Target::at(target.to_owned()), Holding::default());
        let hosted = self.hosting.receive(caller, Some(scope), (&place, &target), open, &holding);
        let Some((end, result)) = hosted else { return Ok(()) };
        send(&FromRemote::Stored(Stored {
            files: end.files.unwrap_or(0),
            directories: end.directories.unwrap_or(0),
            bytes: end.bytes,
            failed: end.failed.unwrap_or(0),
            failure: result.as_ref().err().map(Failed::from),
            ledger: end.ledger,
        }));
        result
    }

    fn send(&self, caller: &Caller, scope: &CopyScope, paths: &[PathBuf]) -> Result<(), Error> {
        let begun = self.hosting.begin_to_send(caller);
        let recursive = scope.recursive;
        let wording = if scope.patterns { Wording::Patterns } else { Wording::Literal };
        let shown = |path: &PathBuf| ShownPath::new(path.as_os_str().as_encoded_bytes());
        let each = || paths.iter().map(shown).zip(Selection::each_named(paths, wording, recursive));
        let source = match (&scope.names, paths) {
            (Some(_), [base, ..]) => {
                DiskSource::by_names_later(base, recursive).map_err(|error| Missing::one(shown(base), &error))
            }
            _ => select(Selection::named(paths, wording, recursive), scope.single, each).map(DiskSource::of),
        };
        match source {
            Ok(source) => {
                let mut source = match source.under_rules(&scope.rules) {
                    Ok(source) => source,
                    Err(why) => {
                        caller.refuse(AbortCode::Refused, &why);
                        return Err(Error::new(Code::Protocol, why));
                    }
                };
                if connect::is_here(caller.peer) {
                    source.leave_out_younger_directories();
                }
                self.hosting.send(caller, begun, source, Holding::default()).1
            }
            Err(missing) => self.hosting.send(caller, begun, missing, Holding::default()).1,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_local_program_of_another_version_is_told_both_whatever_its_task() {
        for task in [json!({"receive": {"target": "t", "is_directory": true, "wanted": {}}}), json!("later")] {
            let told = json!({"hello": {"version": 5, "program": "0.0.9", "task": task}});
            let message = read_hello(told).unwrap_err().to_string();
            assert!(
                message.contains(&format!("version {VERSION}")) && message.contains("0.0.9 here version 5"),
                "{message}"
            );
        }
        let told =
            json!({"hello": {"version": VERSION, "program": "0.1.0", "task": {"send": {"paths": [], "only": []}}}});
        assert_eq!(read_hello(told).unwrap_err().code, Code::Protocol, "a field that nobody knows");
        let told = json!({"hello": {"version": VERSION, "program": "0.1.0", "task": {"send": {"paths": ["a"]}}}});
        assert!(read_hello(told).is_ok());
    }
}
