//! `serve`: the remote end of `copy`, serving one directory.

pub(crate) mod args;
mod confine;
mod manager;
mod plain;
mod secrets;

use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use farhaul::Endpoint;
use farhaul::security::PlainClients;
use farhaul_disk::{Directory, copies_at_a_time};
use farhaul_transfer::internal::admission::{Admission, Service};
use farhaul_transfer::internal::report::{Direction, Report};
use farhaul_transfer::internal::serve::listener::Callers;
use farhaul_transfer::internal::serve::{DirectoryServer, listener};
use farhaul_transfer::{Environment, Event, Observer, Settings};
use farhaul_units::{ByteSize, Rate};
use serde_json::Value;

#[cfg(feature = "originals")]
use super::original::serve::{Beside, Original};
use super::{Context, announce, report_end};
use crate::ctl::{Controlled, Socket};
use crate::exit::{Code, Fault};
use crate::metrics::{self, Metrics};
use crate::output::Output;
use crate::output::human::{plural, rate, reason, time};
use crate::output::json::Start;
use crate::output::observer::{Reporter, Shown};
use crate::privileges;
use crate::reloading::Reloading;
use crate::values::HostPort;
use args::ServeArgs;
use confine::Confinement;
use plain::Plain;

pub(crate) fn run(args: &ServeArgs, context: &Context) -> Result<(), Fault> {
    let output = Output::from_flag(args.transport.json);
    let mut settings = args.transport.settings();
    args.client_keys.set(&mut settings.security);
    // Before anything else, so that its reason is told first.
    Directory::open(&args.root).map_err(|error| no_root(args, &error))?;
    let (clients, plain) = read_clients(args, &settings, context, &output)?;
    let shown =
        Shown { interval: args.interval, trace: args.transport.begin_trace("serve", &output)?, ..Shown::default() };
    let metrics = Metrics::new();
    let reporter = Reporter::new(output.clone(), shown);
    let environment = context.environment(Sessions { reporter, output: output.clone(), metrics: metrics.clone() });
    if clients.is_none() {
        context.interrupt.stops_at_hangup()?;
    }
    let max_sessions = args.max_sessions.min(copies_at_a_time());
    let server = DirectoryServer::of(&args.root, clients.clone(), args.read_only)?
        .with_plain(plain.as_ref().map(|plain| plain.access.clone()))
        .unlisted_rate(unlisted_rate(&settings))
        .sessions(max_sessions)
        .idle(Some(args.idle_timeout).filter(|time| !time.is_zero()));
    let (clients, plain) = (clients.as_ref(), plain.as_ref());
    // A confined server makes no socket.
    let control = Socket::bind().ok();
    let scrapers = args.metrics.as_ref().map(open_metrics).transpose()?;
    // Threads that are started from here on are confined as well.
    let (reloading, confinement) = contain(args, &output, (clients, plain), &server)?;
    let endpoint = open_port(args, &settings, clients, plain)?;
    output.do_not_wait();
    // A caller may keep a control stream beside its copies.
    endpoint.answer_probes().map_err(|error| context.connection_fault(&error, &endpoint.local_addr()))?;
    // Sessions with original programs are always plain.
    #[cfg(feature = "originals")]
    let beside = Original::of(&settings.protocol)
        .filter(|_| clients.is_none())
        .map(|original| {
            let root = server.directory().reopened().map_err(|error| no_root(args, &error.into()))?;
            Beside::new(
                &args.transport,
                (original, root),
                max_sessions,
                &endpoint,
                (context, &output),
                &server.served(),
            )
        })
        .transpose()?;
    let mut start = start_record(args, &settings, (clients, plain), confinement, max_sessions);
    let figures_at = scrapers.as_ref().and_then(|listener| listener.local_addr().ok()).map(|at| at.to_string());
    start.settings.insert("metrics".into(), figures_at.into());
    let listener = listener::listen(&environment, &endpoint)?;
    // A limit of threads that comes after the announcement finds none of these missing.
    let served = Arc::new(OnceLock::new());
    let _control = control.and_then(|socket| socket.listen(controlled(args, context, (&served, &metrics))).ok());
    if let Some(listener) = scrapers {
        let callers = Arc::clone(&served);
        let refused = move || callers.get().map_or(0, Callers::refused);
        metrics::serve(listener, metrics.clone(), context.clock, refused)?;
    }
    announce(context, &output, &endpoint, start);
    let (shown, at) = (args.root.display(), endpoint.local_addr());
    let whom = whom_it_serves(args, &settings, clients, plain);
    output.print_line(&format!("serving {shown} on {at} ({whom}); Ctrl-C stops"));
    if let Some((clients, reloading)) = clients.zip(reloading.as_ref()) {
        listener::guard(&environment, clients, &endpoint)?;
        reload_at_hangup(reloading, (clients, plain), (&endpoint, &environment, &output));
    }
    if max_sessions < args.max_sessions {
        output.warn(&format!(
            "the limit of open files allows {} at a time, not {}; `ulimit -n` raises it",
            plural(max_sessions as u64, "session"),
            args.max_sessions
        ));
    }
    thread::scope(|scope| {
        server.run(&environment, &settings, listener, |callers| {
            show_state(context, &output, (callers, &metrics));
            let _ = served.set(callers.clone());
            #[cfg(feature = "originals")]
            if let Some(beside) = beside {
                scope.spawn(move || beside.run());
            }
            manager::is_ready();
        })
    })
}

/// The clients that the files of keys admit, and the plain ones that the settings of a daemon admit.
fn read_clients(
    args: &ServeArgs,
    settings: &Settings,
    context: &Context,
    output: &Output,
) -> Result<(Option<Admission>, Option<Plain>), Fault> {
    let environment = context.environment(Reporter::new(output.clone(), Shown::default()));
    let folder = args.config.as_deref().map(folder_of);
    let clients = settings.security.admission(&environment.events, folder, Service::Files)?;
    if args.config.is_some() && clients.is_none() {
        return Err(Fault::usage("a daemon with --config is never plain as a whole").remedy(
            "name the networks of plain clients by allow in [plain], or start `farhaul serve --plain` by hand",
        ));
    }
    let plain = args.config.as_deref().map(|file| Plain::read(file, &settings.protocol)).transpose()?.flatten();
    Ok((clients, plain))
}

/// Has SIGHUP read the files of keys and the networks of plain clients again.
fn reload_at_hangup(
    reloading: &Reloading,
    (clients, plain): (&Admission, Option<&Plain>),
    (endpoint, environment, output): (&Endpoint, &Environment, &Output),
) {
    let (clients, plain) = (clients.clone(), plain.cloned());
    let (endpoint, events, output) = (endpoint.clone(), environment.events.clone(), output.clone());
    reloading.react(move || {
        listener::reload(&clients, &endpoint, &events);
        let Some(plain) = &plain else { return };
        match plain.reload(&endpoint) {
            Ok(read) => output.print_line(&format!("the plain clients were read again: {read}")),
            Err(fault) => output.warn(&format!("{fault}; the plain clients of before apply")),
        }
    });
}

/// Opens the port of the figures.
fn open_metrics(address: &HostPort) -> Result<TcpListener, Fault> {
    metrics::bind(address.listening()?).map_err(|error| {
        Fault::new(Code::AddressUnavailable, format!("cannot serve figures at {address}: {}", reason(&error)))
            .remedy("choose another address for --metrics")
    })
}

/// The server as `farhaul ctl` controls it.
fn controlled(
    args: &ServeArgs,
    context: &Context,
    (callers, metrics): (&Arc<OnceLock<Callers>>, &Metrics),
) -> Controlled {
    let (callers, metrics) = (Arc::clone(callers), metrics.clone());
    let amounts = move || {
        let (running, served) = callers.get().map_or((0, 0), Callers::counts);
        let (bytes, files) = metrics.totals();
        let sessions: Vec<Value> = metrics
            .running()
            .into_iter()
            .map(|(number, now)| {
                let mut session = now.record();
                session.insert("session".into(), number.into());
                session.into()
            })
            .collect();
        let fields = [
            ("bytes", bytes.into()),
            ("files", files.into()),
            ("sessions_running", running.into()),
            ("sessions_total", served.into()),
            ("refusals", callers.get().map_or(0, Callers::refused).into()),
            ("sessions", sessions.into()),
        ];
        fields.into_iter().map(|(name, value): (&str, Value)| (name.to_owned(), value)).collect()
    };
    let what = args.root.display().to_string();
    context.controlled("serve", (what, args.transport.rate()), amounts)
}

/// Prints the sessions on SIGUSR1.
fn show_state(context: &Context, output: &Output, (callers, metrics): (&Callers, &Metrics)) {
    let (callers, metrics, output) = (callers.clone(), metrics.clone(), output.clone());
    context.interrupt.shows(move || {
        output.state(&callers.state());
        for (number, now) in metrics.running() {
            output.state(&format!("session {number}: {}", now.words()));
        }
    });
}

/// Shows the sessions of a server.
struct Sessions {
    reporter: Reporter,
    output: Output,
    metrics: Metrics,
}

impl Observer for Sessions {
    fn on_event(&self, session: Option<u64>, event: &Event<'_>) {
        if let Some(session) = session {
            self.metrics.on_event(session, event);
        }
        let Event::Ended(report, error) = event else { return self.reporter.on_event(session, event) };
        let line = line(report);
        match report_end(&self.output, Report::clone(report), error.map_or(Ok(()), |error| Err(error.clone()))) {
            Ok(()) => self.output.print_line(&line),
            Err(fault) => self.output.print_line(&format!("{line}; {}", self.output.style().red(&fault.to_string()))),
        }
    }
}

fn start_record(
    args: &ServeArgs,
    settings: &Settings,
    (clients, plain): (Option<&Admission>, Option<&Plain>),
    confinement: Confinement,
    max_sessions: usize,
) -> Start {
    let mut start = args.transport.start("serve");
    start.key = clients.map(Admission::fingerprint);
    start.settings.insert("root".into(), args.root.to_string_lossy().into());
    start.settings.insert("read_only".into(), args.read_only.into());
    start.settings.insert("plain".into(), plain.map(Plain::record).into());
    let unlisted = clients.filter(|clients| clients.admits_anybody()).map(|_| unlisted_rate(settings));
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
fn whom_it_serves(args: &ServeArgs, settings: &Settings, clients: Option<&Admission>, plain: Option<&Plain>) -> String {
    let rights = match (args.read_only, clients) {
        (true, None) => "read only; not encrypted".to_owned(),
        (false, None) => "everybody who reaches this port may write; not encrypted".to_owned(),
        (true, Some(clients)) => format!("read only; {}", clients.words()),
        (false, Some(clients)) => clients.words(),
    };
    let unlisted = match clients {
        Some(clients) if clients.admits_anybody() => {
            format!("; unknown keys only read, with {}", rate(Some(unlisted_rate(settings).bits_per_second())))
        }
        _ => String::new(),
    };
    let others = plain.map(|plain| format!("; {}", plain.words())).unwrap_or_default();
    format!("{rights}{unlisted}{others}")
}

/// The port of the service manager, or a new one.
fn open_port(
    args: &ServeArgs,
    settings: &Settings,
    clients: Option<&Admission>,
    plain: Option<&Plain>,
) -> Result<Endpoint, Fault> {
    let plain = plain.map(|plain| plain.access.clients());
    let socket = match (manager::socket()?, &args.listen) {
        (Some(socket), _) => Some(socket),
        (None, Some(listen)) if args.gives_up_capabilities() => Some(settings.socket(listen.listening()?)?),
        (None, _) => None,
    };
    // The thread of the port starts without what this one gives up.
    if args.gives_up_capabilities() {
        privileges::give_up_capabilities()?;
    }
    match (socket, &args.listen) {
        (Some(socket), _) => settings.adopt_daemon(socket, clients, plain),
        (None, Some(listen)) => settings.bind_daemon(listen.listening()?, clients, plain),
        (None, None) => Err(Fault::usage("give --listen ADDR, or start it by a socket of the service manager")),
    }
}

/// Leaves this thread what its work needs, and another one the files of keys, for SIGHUP.
fn contain(
    args: &ServeArgs,
    output: &Output,
    (clients, plain): (Option<&Admission>, Option<&Plain>),
    server: &DirectoryServer,
) -> Result<(Option<Reloading>, Confinement), Fault> {
    secrets::check(args, output, (clients, plain.is_some()), server.root())?;
    // Confined threads cannot read it any more.
    farhaul_disk::umask();
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
    Ok((reloading, confine::to_root(server.directory(), !args.read_only)?))
}

/// The files that SIGHUP has the server read again, with absolute paths.
fn files_to_read_again(clients: Option<&Admission>, plain: Option<&Plain>) -> Result<Vec<PathBuf>, Fault> {
    let keys = clients.and_then(Admission::file).into_iter();
    Ok(keys.chain(plain.map(Plain::file)).map(std::path::absolute).collect::<io::Result<_>>()?)
}

/// Cap of the rate of all clients whose keys stand in no file: the user's cap, or that of plain clients.
fn unlisted_rate(settings: &Settings) -> Rate {
    settings.rate.unwrap_or(PlainClients::MAX_RATE)
}

/// The folder of a file.
fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."))
}

fn no_root(args: &ServeArgs, error: &io::Error) -> Fault {
    let root = args.root.display();
    Fault::new(Code::LocalIo, format!("cannot serve {root}: {}", reason(error))).remedy("--root must be a directory")
}

/// The result of a session in one line.
fn line(end: &Report) -> String {
    if let Some(requests) = end.requests {
        return format!(
            "answered {} of {}, {} in {}; {}",
            plural(requests, "request"),
            end.address.as_deref().unwrap_or("?"),
            ByteSize(end.bytes),
            time(Duration::from_secs_f64(end.seconds)),
            end.protection()
        );
    }
    let direction = if end.direction == Some(Direction::Sent) { "sent to" } else { "received from" };
    format!(
        "{direction} {}: {}, {} in {}, {}; {}",
        end.address.as_deref().unwrap_or("?"),
        plural(end.files.unwrap_or(0), "file"),
        ByteSize(end.bytes),
        time(Duration::from_secs_f64(end.seconds)),
        rate(end.goodput_bps),
        end.protection()
    )
}
