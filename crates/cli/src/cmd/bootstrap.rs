//! `bootstrap`: the far program of a copy over SSH. Ssh starts it, and talks to it on stdin and stdout.

mod job;

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use clap::{Args, Parser};
use farhaul::Endpoint;
use farhaul::security::{KeyPair, Pinned, PublicKey, Security};
use farhaul_session::{AbortCode, Pull, Request, ShownPath, escape};
use farhaul_transfer::disk::{DiskSource, DiskStore, Selection, Wording};

use super::copy::{CopyArgs, forward};
use super::hosting::Hosting;
use super::missing::select;
use super::over_ssh::Other;
use super::partial::Target;
use super::server::{self, Caller, Limits};
use super::{Context, connect};
use crate::exit::{Code, Fault};
use crate::far::frames::{Frames, MARK};
use crate::far::messages::{Failed, FarSays, Hello, Near, Ready, Stored, VERSION};
use crate::far::tunnel::{Tunnel, widen};
use crate::far::voice::{self, WayOut};
use crate::options::Transport;
use crate::output::{JsonTo, Output};
use crate::reloading;
use crate::session::file::Holding;
use crate::trust::identity;
use job::Job;

/// The near program calls within this time, or not at all.
const FIRST_PACKET: Duration = Duration::from_secs(30);
/// Bytes per read.
const BLOCK: usize = 64 << 10;
/// Addresses of `SSH_CONNECTION` (ssh(1)): client, its port, server, its port.
const SERVER_ADDRESS: usize = 2;

/// Serve one copy over SSH; `farhaul copy` starts it on the far host
#[derive(Args, Debug)]
pub(crate) struct BootstrapArgs {}

/// Settings from the near program.
#[derive(Debug, Parser)]
#[command(no_binary_name = true)]
struct Settings {
    #[command(flatten)]
    transport: Transport,
    /// Interval of progress records
    #[arg(long)]
    interval: Option<String>,
}

/// Runs it. A failure is told to the near program, and nobody else.
pub(crate) fn run(_: &BootstrapArgs, context: &Context) -> Result<(), Fault> {
    io::stdout().write_all(MARK).and_then(|()| io::stdout().flush())?;
    let mut near = NearProgram { frames: Frames::clean() };
    let done = near.hello().and_then(|hello| serve(near, hello, context));
    done.map_err(|fault| {
        say(&FarSays::Failed(Failed::from(&fault)));
        fault.quietly()
    })
}

fn say(message: &FarSays) {
    // Its reader may be gone. Then stdin ends, too.
    let _ = voice::say(message);
}

/// The near program, which speaks on stdin.
struct NearProgram {
    frames: Frames,
}

impl NearProgram {
    fn hello(&mut self) -> Result<Hello, Fault> {
        let hello = match self.next() {
            Some(Near::Hello(hello)) => hello,
            None if self.frames.is_empty() => {
                return Err(Fault::new(
                    Code::SshFailed,
                    "nothing of the near program came in through ssh: leave StdinNull and -n out of the settings of ssh, and let login \
                     shells read nothing",
                ));
            }
            _ => {
                return Err(Fault::new(
                    Code::Protocol,
                    "the near program speaks another version: update the older side",
                ));
            }
        };
        if hello.version != VERSION {
            return Err(Fault::new(
                Code::Protocol,
                format!(
                    "farhaul {} there speaks version {VERSION} of copies over SSH, and farhaul {} here version {}: update the \
                     older side",
                    env!("CARGO_PKG_VERSION"),
                    escape(hello.program.as_bytes()),
                    hello.version
                ),
            ));
        }
        Ok(hello)
    }

    /// The next message; `None` at the end of the SSH connection.
    fn next(&mut self) -> Option<Near> {
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

fn serve(mut near: NearProgram, hello: Hello, context: &Context) -> Result<(), Fault> {
    let settings = Settings::try_parse_from(&hello.options).map_err(|error| {
        let line = error.to_string().lines().next().unwrap_or_default().to_owned();
        Fault::new(Code::Protocol, format!("{line}: update the older side"))
    })?;
    let identity = identity::generate()?;
    let job = Job::of(&hello.task)?;
    if let Job::Forward { paths, recursive } = &job {
        say(&FarSays::Ready(ready(&identity, 0, &job)));
        let Some(Near::Call(call)) = near.next() else { return Ok(()) };
        let (stop, (say, detour)) = (context.interrupt.clone(), sync_channel(1));
        // The end of the SSH connection stops the copy.
        let at_end = move || stop.stop();
        let begin = move || {
            let tunnel = Tunnel::open()?;
            // The caller may be gone.
            let _ = say.send(tunnel.entrance());
            Ok(tunnel)
        };
        follow(near, begin, at_end)?;
        let to = Other::new(call, identity, hello.ports, detour)?;
        return send_on(context, &hello, (paths, *recursive), to);
    }
    let key: PublicKey = hello.key.as_deref().unwrap_or_default().parse().map_err(|_| {
        Fault::new(Code::Protocol, "the near program has no key of a known kind: update the older side")
    })?;
    let trust = Pinned { servers: Vec::new(), clients: vec![key] };
    let security = Security::new(identity.clone(), trust).cipher(settings.transport.security.cipher());
    let endpoint = open(&settings.transport, hello.ports, &security)?;
    // The near program may keep a control stream beside its copy.
    endpoint.answer_probes().map_err(|error| context.connection_fault(&error, &endpoint.local_addr()))?;
    let far = Far::new(context, &settings.transport, &job, &endpoint);
    let listener = server::listen(context, &endpoint)?;
    let port = endpoint.local_addr().port();
    context.interrupt.cancels(endpoint.canceller());
    say(&FarSays::Ready(ready(&identity, port, &job)));
    let (begun, begins) = sync_channel(1);
    let (canceller, has_begun, detach) = (endpoint.canceller(), Arc::clone(&far.has_begun), hello.detach);
    if detach {
        leave_session()?;
    }
    let at_end = move || {
        if !(detach && has_begun.load(Ordering::Acquire)) {
            canceller.cancel();
        }
    };
    follow(near, move || Tunnel::to(port), at_end)?;
    let canceller = endpoint.canceller();
    thread::Builder::new().name("first packet".into()).spawn(move || {
        if begins.recv_timeout(FIRST_PACKET) == Err(RecvTimeoutError::Timeout) {
            canceller.cancel();
        }
    })?;
    let served = Arc::default();
    // The near program and ssh decide how long the one copy may take.
    let limits = Limits { sessions: 1, idle: None, clients: None, serves_strangers: false, quotas: &[] };
    let over = server::run((context, &far.hosting.output), (listener, |_, _| ()), &limits, &served, |caller| {
        far.serve(caller, &begun)
    });
    let outcome = far.outcome.lock().unwrap_or_else(PoisonError::into_inner).take();
    // The end of the SSH connection and the end of the copy both cancel the listener.
    outcome.unwrap_or_else(|| over.and(Ok(())))
}

/// Leaves the session of ssh, whose end sends signals to its processes.
fn leave_session() -> Result<(), Fault> {
    // The program may lead the session already. Then the signal remains.
    let _ = rustix::process::setsid();
    Ok(reloading::survive()?)
}

/// Opens a UDP port in the range, for all addresses of this host.
fn open(transport: &Transport, ports: Option<(u16, u16)>, security: &Security) -> Result<Endpoint, Fault> {
    let any = match UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)) {
        Ok(_) => IpAddr::from(Ipv6Addr::UNSPECIFIED),
        Err(_) => Ipv4Addr::UNSPECIFIED.into(),
    };
    let Some((low, high)) = ports else {
        return transport.bind_secure((any, 0).into(), security.clone());
    };
    let mut taken = None;
    for port in low..=high {
        match transport.bind_secure((any, port).into(), security.clone()) {
            Err(fault) if fault.code == Code::AddressInUse => taken = Some(fault),
            opened => return opened,
        }
    }
    Err(taken.map_or_else(
        || Fault::usage("--port-range is empty"),
        |_| Fault::new(Code::AddressInUse, format!("all UDP ports from {low} to {high} are taken; widen --port-range")),
    ))
}

fn ready(identity: &KeyPair, port: u16, job: &Job) -> Ready {
    let connection = std::env::var("SSH_CONNECTION").unwrap_or_default();
    let address = connection.split_ascii_whitespace().nth(SERVER_ADDRESS).and_then(|address| address.parse().ok());
    Ready { key: identity.public().to_string(), port, address, takes_one: job.takes_one() }
}

/// Follows the near program: the end of the SSH connection ends the copy, and datagrams may come through it. `open` opens their
/// tunnel.
fn follow(
    mut near: NearProgram,
    open: impl FnOnce() -> io::Result<Tunnel> + Send + 'static,
    at_end: impl FnOnce() + Send + 'static,
) -> Result<(), Fault> {
    thread::Builder::new().name("ssh".into()).spawn(move || {
        while let Some(message) = near.next() {
            if message != Near::Tunnel {
                continue;
            }
            widen(io::stdin());
            widen(io::stdout());
            let Ok(tunnel) = voice::begin_tunnel().and_then(|()| open()) else { break };
            let _ = tunnel.run((io::stdin(), near.frames.into_rest()), WayOut, |_| {}, at_end);
            return;
        }
        at_end();
    })?;
    Ok(())
}

/// The far end of a copy.
struct Far<'a> {
    hosting: Hosting<'a>,
    job: &'a Job,
    endpoint: &'a Endpoint,
    /// Whether the near program has called.
    has_begun: Arc<AtomicBool>,
    outcome: Mutex<Option<Result<(), Fault>>>,
}

impl<'a> Far<'a> {
    fn new(context: &'a Context, transport: &'a Transport, job: &'a Job, endpoint: &'a Endpoint) -> Self {
        let output = Output::new(JsonTo::Nobody);
        let hosting = Hosting { context, output, transport, interval: None, trace: None };
        Self { hosting, job, endpoint, has_begun: Arc::default(), outcome: Mutex::default() }
    }

    fn serve(&self, caller: &Caller, begun: &SyncSender<()>) {
        self.has_begun.store(true, Ordering::Release);
        // The first one counts.
        let _ = begun.try_send(());
        let result = match (self.job, &caller.open.request) {
            // The sender has no say in what the target is.
            (Job::Receive { target, is_directory, asked }, Request::Push(_)) => {
                self.receive(caller, target, *is_directory, asked)
            }
            (Job::Send { paths, recursive }, Request::Pull(pull)) => self.send(caller, pull, paths, *recursive),
            _ => return caller.refuse(AbortCode::WrongService, "this program is for another copy"),
        };
        *self.outcome.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        self.endpoint.canceller().cancel();
    }

    fn receive(&self, caller: &Caller, target: &Path, is_directory: bool, asked: &Pull) -> Result<(), Fault> {
        let place = escape(target.as_os_str().as_encoded_bytes());
        let open = || DiskStore::at(target, is_directory);
        let (target, holding) = (Target::at(target.to_owned()), Holding::default());
        let hosted = self.hosting.receive(caller, Some(asked), (&place, &target), open, &holding);
        let Some((end, result)) = hosted else { return Ok(()) };
        say(&FarSays::Stored(Stored {
            files: end.files.unwrap_or(0),
            directories: end.directories.unwrap_or(0),
            bytes: end.bytes,
            failed: end.failed.unwrap_or(0),
            failure: result.as_ref().err().map(Failed::from),
            ledger: end.ledger,
        }));
        result
    }

    fn send(&self, caller: &Caller, pull: &Pull, paths: &[PathBuf], recursive: bool) -> Result<(), Fault> {
        let begun = self.hosting.begin_to_send(caller);
        let wording = if pull.patterns { Wording::Patterns } else { Wording::Literal };
        let shown = |path: &PathBuf| ShownPath::new(path.as_os_str().as_encoded_bytes());
        let each = || paths.iter().map(shown).zip(Selection::each_named(paths, wording, recursive));
        match select(Selection::named(paths, wording, recursive), pull.single, each) {
            Ok(selection) => {
                let mut source = DiskSource::of(selection);
                if connect::is_here(caller.peer) {
                    source.leave_out_younger_directories();
                }
                self.hosting.send(caller, begun, source, Holding::default()).1
            }
            Err(missing) => self.hosting.send(caller, begun, missing, Holding::default()).1,
        }
    }
}

/// Sends to the far program on another host.
fn send_on(context: &Context, hello: &Hello, (paths, recursive): (&[PathBuf], bool), to: Other) -> Result<(), Fault> {
    let mut words: Vec<OsString> = hello.options.iter().map(OsString::from).collect();
    words.extend(recursive.then(|| "--recursive".into()));
    words.push("--".into());
    for path in paths {
        words.push(local_place(path));
    }
    // The place is the near program's affair. The slash keeps what it says about a directory.
    words.push(format!("other:{}", if to.is_directory { "target/" } else { "target" }).into());
    let args = ForwardArgs::try_parse_from(words)
        .map_err(|error| Fault::new(Code::Protocol, error.to_string().lines().next().unwrap_or_default().to_owned()))?;
    forward(&args.copy, context, to)
}

/// The command line of a copy to another far program.
#[derive(Debug, Parser)]
#[command(no_binary_name = true)]
struct ForwardArgs {
    #[command(flatten)]
    copy: CopyArgs,
}

/// A path as a local place of a command line, whatever its characters.
fn local_place(path: &Path) -> OsString {
    if path.is_absolute() { path.into() } else { PathBuf::from(".").join(path).into() }
}
