//! `serve`: the far end of `copy`, serving one directory.

mod capped;
mod confine;
mod manager;
mod permissions;
mod plain;
mod secrets;

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use clap::Args;
use clap::builder::RangedU64ValueParser;
use farhaul::security::PlainClients;
use farhaul::{Endpoint, Stream};
use farhaul_session::{AbortCode, Pull, Push, Request, ShownPath};
use farhaul_transfer::disk::{self, Directory, DiskSource, DiskStore, Selection, Wording, copies_at_a_time};
use farhaul_units::{ByteSize, Rate, parse_duration};

use super::hosting::Hosting;
use super::missing::select;
use super::original::serve::Beside;
use super::partial::Target;
use super::server::{self, Caller, Limits};
use super::{Context, connect, report_end};
use crate::exit::{Code, Fault};
use crate::options::{Original, Originals, Transport};
use crate::output::Output;
use crate::output::human::{plural, rate, reason, time};
use crate::output::json::{Direction, End, Start};
use crate::output::quota::Quota;
use crate::privileges;
use crate::reloading::Reloading;
use crate::session::file::Holding;
use crate::trust::{Admission, Permit, Rights, Service};
use crate::values::HostPort;
use capped::Capped;
use confine::Confinement;
use permissions::Permissions;
use plain::Plain;

/// Serve a directory to `farhaul copy`
///
/// Clients cannot leave the directory, not even through links. This user's key may read and write, unless --read-only is
/// given. Other keys may do what their lines in authorized_keys say: without path=DIR,write they only read. With
/// --any-client, all keys without a line only read, at 1 Gbit/s or --rate together. Runs until stopped:
///
///     farhaul serve --root /data --listen :9000
///
/// A root with private keys below it, as a home directory has them, is not served to everybody unless --expose-private-keys says so.
///
/// With --plain, everybody who reaches the port may read and write. With --plain and --protocol tsunami or rbudp it also serves the clients of the original programs, read only and not verified:
///
///     farhaul serve --plain --protocol tsunami --tsunami-secret kitten --root /data --listen :46224
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct ServeArgs {
    /// Directory to serve; the root of all paths of peers
    #[arg(long, env = "FARHAUL_ROOT", value_name = "DIR")]
    pub(crate) root: PathBuf,
    /// UDP port: host:port, or :port for all addresses of this machine [default: the socket of the service manager]
    #[arg(long, env = "FARHAUL_LISTEN", value_name = "ADDR")]
    pub(crate) listen: Option<HostPort>,
    /// Settings of a daemon: the options of this verb, as in listen = ":9000". An unknown one refuses the start
    ///
    /// The keys are files beside it, unless it names others: `host_key`, which is made on the first start, and
    /// `authorized_keys`. Its section [plain] has the networks of plain clients: allow = ["10.0.0.0/8"], write = false,
    /// rate = "1gbit".
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Do not have the kernel confine the server to its root (Landlock), keep its capabilities and core dumps
    #[arg(long, env = "FARHAUL_UNCONFINED", value_parser = clap::builder::BoolishValueParser::new())]
    unconfined: bool,
    /// Refuse copies to this server
    #[arg(long, env = "FARHAUL_READ_ONLY", value_parser = clap::builder::BoolishValueParser::new())]
    read_only: bool,
    /// Largest number of concurrent copies; further ones are refused as busy
    #[arg(long, env = "FARHAUL_MAX_SESSIONS", value_name = "N", default_value_t = 64, value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    pub(crate) max_sessions: usize,
    /// End a session that moves less than 64 kB in this time, so that it holds no place for ever; 0s: never
    #[arg(long, env = "FARHAUL_IDLE_TIMEOUT", value_name = "TIME", default_value = "15min", value_parser = parse_duration)]
    idle_timeout: Duration,
    /// Serve a root with private keys below it, such as a home directory, to callers that nobody knows
    #[arg(long)]
    expose_private_keys: bool,
    /// Report progress at this interval: 1s [default: none]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    interval: Option<Duration>,
    #[command(flatten)]
    pub(crate) originals: Originals,
    #[command(flatten)]
    pub(crate) transport: Transport,
}

pub(crate) fn run(args: &ServeArgs, context: &Context) -> Result<(), Fault> {
    args.transport.check()?;
    let output = Output::from_flag(args.transport.json);
    let root = open(args)?;
    let folder = args.config.as_deref().map(folder_of);
    let clients = args.transport.security.admission(&output, folder, Service::Files)?;
    if args.config.is_some() && clients.is_none() {
        return Err(Fault::usage(
            "a daemon with --config is never plain as a whole: name the networks of plain clients by allow in [plain], or start \
             `farhaul serve --plain` by hand",
        ));
    }
    let plain = args.config.as_deref().map(|file| Plain::read(file, &args.transport.protocol())).transpose()?.flatten();
    let plain = plain.map(Arc::new);
    let trace = args.transport.begin_trace("serve", &output)?;
    if clients.is_none() {
        context.interrupt.stops_at_hangup()?;
    }
    let usages = clients.as_ref().map(Admission::usages).unwrap_or_default();
    let permissions = Permissions::new(&args.root, args.read_only, usages, unlisted_rate(args))
        .map_err(|error| no_root(args, &error))?;
    // Threads that are started from here on are confined as well.
    let (reloading, confinement) = contain(args, &output, (clients.as_ref(), plain.as_deref()), permissions.root())?;
    let endpoint = open_port(args, clients.as_ref(), plain.as_deref())?;
    // A caller may keep a control stream beside its copies.
    endpoint.answer_probes().map_err(|error| context.connection_fault(&error, &endpoint.local_addr()))?;
    let max_sessions = args.max_sessions.min(copies_at_a_time());
    let start = start_record(args, (clients.as_ref(), plain.as_deref()), confinement, max_sessions);
    let served = Arc::default();
    // Sessions with original programs are always plain.
    let beside = match Original::of(&args.transport.protocol()).filter(|_| clients.is_none()) {
        Some(original) => Some(Beside::new(args, (original, open(args)?), &endpoint, (context, &output), &served)?),
        None => None,
    };
    let listener = server::listen(context, &endpoint)?;
    connect::announce(context, &output, &endpoint, None, start);
    let (shown, at) = (args.root.display(), endpoint.local_addr());
    let whom = whom_it_serves(args, clients.as_ref(), plain.as_deref());
    output.say(&format!("serving {shown} on {at} ({whom}); Ctrl-C stops"));
    let (reloaded, port) = (plain.clone(), endpoint.clone());
    server::admit((reloading.as_ref(), &output, context.clock), (clients.as_ref(), &endpoint), move |output| {
        let Some(plain) = &reloaded else { return };
        match plain.reload(&port) {
            Ok(words) => output.say(&format!("the plain clients were read again: {words}")),
            Err(fault) => output.warn(&format!("{fault}; the plain clients of before apply")),
        }
    })?;
    if max_sessions < args.max_sessions {
        output.warn(&format!(
            "the limit of open files allows {} at a time, not {}; `ulimit -n` raises it",
            plural(max_sessions as u64, "session"),
            args.max_sessions
        ));
    }
    let hosting =
        Hosting { context, output: output.clone(), transport: &args.transport, interval: args.interval, trace };
    let plain_connections = Quota::of_warnings(context.clock, "plain connections were made");
    let sessions_of_strangers = Quota::of_sessions(context.clock, "sessions of callers that nobody knows have ended");
    let quotas = [&plain_connections, &sessions_of_strangers];
    let server = Server {
        args,
        context,
        output: output.clone(),
        hosting,
        root,
        clients,
        plain,
        permissions,
        plain_connections: &plain_connections,
        sessions_of_strangers: &sessions_of_strangers,
    };
    manager::is_ready();
    thread::scope(|scope| {
        if let Some(beside) = &beside {
            scope.spawn(|| beside.run());
        }
        let greet = |stream: &Stream, peer| server.greet(stream, peer);
        let clients = server.clients.as_ref();
        let limits = Limits {
            sessions: max_sessions,
            idle: Some(args.idle_timeout).filter(|time| !time.is_zero()),
            clients,
            serves_strangers: server.plain.is_some() || clients.is_some_and(Admission::admits_anybody),
            quotas: &quotas,
        };
        server::run((context, &output), (listener, greet), &limits, &served, |caller| server.serve(caller))
    })
}

fn start_record(
    args: &ServeArgs,
    (clients, plain): (Option<&Admission>, Option<&Plain>),
    confinement: Confinement,
    max_sessions: usize,
) -> Start {
    let mut start = args.transport.start("serve");
    start.key = clients.map(Admission::fingerprint);
    start.settings.insert("root".into(), args.root.to_string_lossy().into());
    start.settings.insert("read_only".into(), args.read_only.into());
    start.settings.insert("plain".into(), plain.map(Plain::record).into());
    let unlisted = clients.filter(|clients| clients.admits_anybody()).map(|_| unlisted_rate(args));
    start.settings.insert("unlisted_rate_bps".into(), unlisted.map(Rate::bits_per_second).into());
    start.settings.insert("landlock".into(), confinement.name().into());
    start.settings.insert("capabilities".into(), if privileges::has_capabilities() { "kept" } else { "none" }.into());
    start.settings.insert("dumpable".into(), args.unconfined.into());
    start.settings.insert("max_sessions".into(), max_sessions.into());
    start.settings.insert("idle_timeout_seconds".into(), args.idle_timeout.as_secs_f64().into());
    start.settings.insert("interval_seconds".into(), args.interval.map(|time| time.as_secs_f64()).into());
    start
}

/// The clients, and what they may do, in a few words.
fn whom_it_serves(args: &ServeArgs, clients: Option<&Admission>, plain: Option<&Plain>) -> String {
    let rights = match (args.read_only, clients) {
        (true, None) => "read only; not encrypted".to_owned(),
        (false, None) => "everybody who reaches this port may write; not encrypted".to_owned(),
        (true, Some(clients)) => format!("read only; {}", clients.words()),
        (false, Some(clients)) => clients.words(),
    };
    let unlisted = match clients {
        Some(clients) if clients.admits_anybody() => {
            format!("; unknown keys only read, with {}", rate(Some(unlisted_rate(args).bits_per_second())))
        }
        _ => String::new(),
    };
    let others = plain.map(|plain| format!("; {}", plain.words())).unwrap_or_default();
    format!("{rights}{unlisted}{others}")
}

/// The port of the service manager, or a new one.
fn open_port(args: &ServeArgs, clients: Option<&Admission>, plain: Option<&Plain>) -> Result<Endpoint, Fault> {
    let plain = plain.map(Plain::clients);
    let socket = match (manager::socket()?, &args.listen) {
        (Some(socket), _) => Some(socket),
        (None, Some(listen)) if args.gives_up_capabilities() => Some(args.transport.socket(listen.listening()?)?),
        (None, _) => None,
    };
    // The thread of the port starts without what this one gives up.
    if args.gives_up_capabilities() {
        privileges::give_up_capabilities()?;
    }
    match (socket, &args.listen) {
        (Some(socket), _) => args.transport.adopt_daemon(socket, clients, plain),
        (None, Some(listen)) => args.transport.bind_daemon(listen.listening()?, clients, plain),
        (None, None) => Err(Fault::usage("give --listen ADDR, or start it by a socket of the service manager")),
    }
}

impl ServeArgs {
    /// Whether it gives up all capabilities once its port is open. A privileged user who starts a server by hand may want to serve
    /// what only that user can read.
    pub(crate) const fn gives_up_capabilities(&self) -> bool {
        self.config.is_some() && !self.unconfined
    }
}

/// Leaves this thread what its work needs, and another one the files of keys, for SIGHUP.
fn contain(
    args: &ServeArgs,
    output: &Output,
    (clients, plain): (Option<&Admission>, Option<&Plain>),
    root: &Path,
) -> Result<(Option<Reloading>, Confinement), Fault> {
    secrets::check(args, output, (clients, plain.is_some()), root)?;
    // Confined threads cannot read it any more.
    disk::umask();
    let files = files_to_read_again(clients, plain)?;
    let (confines, gives_up) = (!args.unconfined, args.gives_up_capabilities());
    let prepare = move || {
        if gives_up {
            privileges::give_up_capabilities()?;
        }
        if confines { confine::to_files(&files) } else { Ok(()) }
    };
    let reloading = clients.map(|_| Reloading::start(prepare)).transpose()?;
    if !confines {
        return Ok((reloading, Confinement::None));
    }
    privileges::hide_memory()?;
    Ok((reloading, confine::to_root(root, !args.read_only)?))
}

/// The files that SIGHUP has the server read again, with absolute paths.
fn files_to_read_again(clients: Option<&Admission>, plain: Option<&Plain>) -> Result<Vec<PathBuf>, Fault> {
    let keys = clients.and_then(Admission::file).into_iter();
    Ok(keys.chain(plain.map(Plain::file)).map(std::path::absolute).collect::<io::Result<_>>()?)
}

/// Cap of the rate of all clients whose keys stand in no file: the user's cap, or that of plain clients.
fn unlisted_rate(args: &ServeArgs) -> Rate {
    args.transport.rate().unwrap_or(PlainClients::MAX_RATE)
}

/// The folder of a file.
fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."))
}

fn open(args: &ServeArgs) -> Result<Directory, Fault> {
    Directory::open(&args.root).map_err(|error| no_root(args, &error))
}

fn no_root(args: &ServeArgs, error: &io::Error) -> Fault {
    let root = args.root.display();
    Fault::new(Code::LocalIo, format!("cannot serve {root}: {}; --root must be a directory", reason(error)))
}

struct Server<'a> {
    args: &'a ServeArgs,
    context: &'a Context,
    output: Output,
    hosting: Hosting<'a>,
    root: Directory,
    /// `None` for plain connections, whose callers are anybody.
    clients: Option<Admission>,
    /// The plain clients beside those with keys.
    plain: Option<Arc<Plain>>,
    permissions: Permissions,
    /// Plain connections that are reported, of a port that also encrypts.
    plain_connections: &'a Quota,
    /// Sessions that are reported, of callers that nobody knows where others are known.
    sessions_of_strangers: &'a Quota,
}

impl Server<'_> {
    fn serve(&self, caller: &Caller) {
        let rights = self.rights(caller);
        match &caller.open.request {
            Request::Push(push) => match self.permissions.writes(&rights, &push.target) {
                Ok(permit) => self.receive(caller, push, permit),
                Err((code, why)) => caller.refuse(code, &why),
            },
            Request::Pull(pull) => match self.permissions.reads(&rights, &pull.paths) {
                Ok(permit) => self.send(caller, pull, (&rights, permit)),
                Err((code, why)) => caller.refuse(code, &why),
            },
            _ => caller.refuse(AbortCode::WrongService, "this server copies files; `farhaul bench --listen` measures"),
        }
    }

    /// Reports a plain connection of a port that also encrypts. On others, the start did.
    fn greet(&self, stream: &Stream, peer: SocketAddr) {
        if self.plain.is_some() && plain::is_plain(stream) {
            self.plain_connections.warn(&self.output, || plain::report(peer));
        }
    }

    fn rights(&self, caller: &Caller) -> Rights {
        match (&self.clients, &self.plain) {
            (None, _) => Rights::All,
            (Some(_), Some(plain)) if plain::is_plain(&caller.stream) => plain.rights(caller.peer),
            (Some(clients), _) => clients.rights(&caller.stream),
        }
    }

    fn receive(&self, caller: &Caller, push: &Push, permit: Permit) {
        let (target, holding) = (Target::beneath(&self.args.root, &push.target), Holding::default());
        let open = || {
            let store = DiskStore::beneath(&self.root, &push.target, push.target_is_directory)?;
            Ok(Capped::new(store, permit, self.context.clock, holding.clone()))
        };
        if let Some((end, result)) = self.hosting.receive(caller, None, (&push.target, &target), open, &holding) {
            self.report(caller, end, result);
        }
    }

    fn send(&self, caller: &Caller, pull: &Pull, (rights, permit): (&Rights, Permit)) {
        let begun = self.hosting.begin_to_send(caller);
        let wording = if pull.patterns { Wording::Patterns } else { Wording::Literal };
        let alone = || Selection::each_beneath(&self.root, &pull.paths, wording, pull.recursive);
        let each = || pull.paths.iter().map(ShownPath::from).zip(alone());
        let all = Selection::beneath(&self.root, &pull.paths, wording, pull.recursive);
        let (end, result) = match select(all, pull.single, each) {
            Ok(selection) => {
                // A path may be permitted as a pattern, and lead elsewhere.
                if let Err((code, why)) = self.permissions.may_read(rights, selection.paths()) {
                    return caller.refuse(code, &why);
                }
                let mut source = DiskSource::of(selection);
                if connect::is_here(caller.peer) {
                    source.leave_out_younger_directories();
                }
                let holding = Holding::default();
                let source = Capped::new(source, permit, self.context.clock, holding.clone());
                self.hosting.send(caller, begun, source, holding)
            }
            Err(missing) => self.hosting.send(caller, begun, missing, Holding::default()),
        };
        self.report(caller, end, result);
    }

    fn report(&self, caller: &Caller, end: End, result: Result<(), Fault>) {
        if caller.is_stranger && !self.sessions_of_strangers.admits(&self.output) {
            return;
        }
        let line = line(&end);
        match report_end(&self.output, end, result) {
            Ok(()) => self.output.say(&line),
            Err(fault) => self.output.say(&format!("{line}; {}", self.output.style().red(&fault.message))),
        }
    }
}

/// The result of a session in one line.
fn line(end: &End) -> String {
    let way = if end.direction == Some(Direction::Sent) { "sent to" } else { "received from" };
    format!(
        "{way} {}: {}, {} in {}, {}; {}",
        end.address.as_deref().unwrap_or("?"),
        plural(end.files.unwrap_or(0), "file"),
        ByteSize(end.bytes),
        time(Duration::from_secs_f64(end.seconds)),
        rate(end.goodput_bps),
        end.protection()
    )
}
