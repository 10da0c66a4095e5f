//! `copy`: files and trees between hosts, over SSH or with a running `serve`, each verified by its digest.

mod between;
mod plan;
mod standard;
mod summary;

use std::cell::Cell;
use std::io::IsTerminal;
use std::rc::Rc;
use std::time::Duration;

use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};
use farhaul::Stream;
use farhaul_session::{AbortCode, FileReceiver, FileSender, Progress, Pull, Push, ReceiveLimits, SessionError, Source};
use farhaul_transfer::disk::{DiskSource, DiskStore, Wording};
use farhaul_units::{Rate, parse_duration};
use indicatif::ProgressBar;
use serde_json::json;

use super::connect::{self, Calling};
use super::control::Control;
use super::over_ssh::{self, Other, OverSsh, Reached};
use super::partial::Target;
use super::{Context, end_record, original, report_end};
use crate::exit::{Code, Fault};
use crate::far::SshCopyOptions;
use crate::fault;
use crate::options::{Originals, Transport};
use crate::output::json::{Direction, End, Record, Start};
use crate::output::trace::Trace;
use crate::output::{JsonTo, Output, progress};
use crate::session::file::outcome::{self, Measured};
use crate::session::file::{FileLog, Receiving, Sending, Timed};
use crate::session::measure::Meter;
use crate::session::watch::{View, Watch};
use crate::session::{Channel, Role, Session, Trouble, drive};
use crate::values::{Location, some_rate};
use plan::{Far, FeedPlan, FetchPlan, Plan, PullPlan, PushPlan};
use standard::{StandardInput, StandardOutput};
pub(super) use summary::rates;
use summary::{summary, with_copied};

/// Copy files and directories between hosts, verified and encrypted
///
/// An end is a path on this machine, [user@]host:path over SSH, or udt://host:port/path below the root of a running `farhaul
/// serve`. Over SSH, ssh starts the program on the far host and exchanges keys; the data goes over UDP. A file gets its name
/// once it is complete, synced to the disk, and its BLAKE3 digest matches. Until then it is .NAME.RANDOM.fhpart in the same
/// directory.
///
///     farhaul copy big.iso far.example:                to the home directory there
///     farhaul copy -r far.example:/data/run42 .        a tree from there
///     farhaul copy 'far.example:logs/*.gz' .           what matches there: *, ?, [a-z]
///     farhaul copy far.example:~bob/notes.txt .        from the home directory of the user bob
///     farhaul copy -r one:run42 two:/data/             from host to host, the data past this machine
///     farhaul copy big.iso udt://host:9000/            into a server's root; %XX stands for any byte
///     tar c data | farhaul copy - far.example:data.tar
///     farhaul copy far.example:data.tar - | tar x
///
/// Original programs serve, too: tsunami://host/NAME and rbudp://host/NAME. They carry no digest, so nothing is verified.
///
///     farhaul copy --plain --tsunami-secret kitten tsunami://host/big.iso .   # tsunami://host/*: all
///     farhaul copy --plain --tsunami-secret kitten --list tsunami://host/
///
/// A copy to stdout writes bytes before they are verified. Only exit code 0 confirms them. JSON records then go to stderr.
#[derive(Args, Debug)]
#[command(verbatim_doc_comment, override_usage = "farhaul copy [OPTIONS] SRC… DST")]
pub(crate) struct CopyArgs {
    /// Sources, then the target
    #[arg(required = true, num_args = 1.., value_names = ["SRC", "DST"], value_parser = location())]
    places: Vec<Location>,
    /// Copy directories with their contents
    #[arg(short, long)]
    recursive: bool,
    /// List the files of a Tsunami server
    #[arg(long)]
    pub(crate) list: bool,
    /// Print no progress and no summary
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Keep a stable control stream of this goodput beside a copy to a server, on the same port: 1mbit
    ///
    /// The copy takes the rest of the path, as far as no queue delays the stream.
    #[arg(long, value_name = "RATE", value_parser = some_rate)]
    control_stream: Option<Rate>,
    /// Report progress at this interval: 1s [default: none]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    interval: Option<Duration>,
    #[command(flatten)]
    pub(crate) originals: Originals,
    #[command(flatten)]
    pub(crate) ssh: SshCopyOptions,
    #[command(flatten)]
    pub(crate) transport: Transport,
}

impl CopyArgs {
    /// Whether ssh reaches one of the ends.
    pub(crate) fn uses_ssh(&self) -> bool {
        self.places.iter().any(|place| matches!(place, Location::Ssh(_)))
    }

    pub(crate) fn places(&self) -> &[Location] {
        &self.places
    }

    pub(crate) const fn interval(&self) -> Option<Duration> {
        self.interval
    }

    /// Whether stdout carries data.
    pub(crate) fn is_to_stdout(&self) -> bool {
        self.places.last() == Some(&Location::Standard)
    }
}

pub(crate) fn run(args: &CopyArgs, context: &Context) -> Result<(), Fault> {
    if args.list || args.places.iter().any(|place| matches!(place, Location::Original(_))) {
        if args.control_stream.is_some() {
            return Err(Fault::usage(
                "--control-stream needs a Farhaul server, because original programs do not answer the stream",
            ));
        }
        return original::copy::run(args, context);
    }
    let plan = Plan::of(&args.places, args.recursive)?;
    args.transport.check()?;
    if args.ssh.detach && matches!(plan, Plan::Between(_)) {
        return Err(Fault::usage("--detach is for copies from or to this machine"));
    }
    if let Plan::Between(plan) = &plan {
        return between::run(args, context, plan);
    }
    if args.uses_ssh() && args.transport.security.plain {
        return Err(Fault::usage("copies over SSH are always encrypted: leave out --plain"));
    }
    if args.control_stream.is_some() && matches!(plan, Plan::Pull(_) | Plan::Fetch(_)) {
        return Err(Fault::usage(
            "--control-stream needs a copy to a server, because the stream and the copy must have the same sender: start \
             the copy on the other host",
        ));
    }
    standard::check(&plan)?;
    let output = match &plan {
        Plan::Fetch(_) if std::io::stdout().is_terminal() => {
            return Err(Fault::usage(
                "stdout is a terminal: redirect it to a file or a program, or give a target name",
            ));
        }
        Plan::Fetch(_) if args.transport.json => Output::new(JsonTo::Stderr),
        _ => Output::from_flag(args.transport.json),
    };
    carry_out(args, context, output, &plan)
}

/// Sends to another far program, as the far program of a copy between two hosts.
pub(super) fn forward(args: &CopyArgs, context: &Context, to: Other) -> Result<(), Fault> {
    match Plan::of(&args.places, args.recursive)? {
        Plan::Push(plan) => {
            let plan = PushPlan { to: Far::Other(to), wording: Wording::Patterns, ..plan };
            carry_out(args, context, Output::new(JsonTo::Messages), &Plan::Push(plan))
        }
        _ => Err(Fault::new(Code::Protocol, "the near program wants no such copy")),
    }
}

fn carry_out(args: &CopyArgs, context: &Context, output: Output, plan: &Plan) -> Result<(), Fault> {
    let trace = args.transport.begin_trace("copy", &output)?;
    let copy = Copy { args, context, trace, output: output.clone(), meter: Cell::new(Meter::start(context.clock)) };
    let (direction, address) = match plan {
        Plan::Push(PushPlan { to, .. }) | Plan::Feed(FeedPlan { to, .. }) => (Direction::Sent, to.to_string()),
        Plan::Pull(PullPlan { from, .. }) | Plan::Fetch(FetchPlan { from, .. }) => {
            (Direction::Received, from.to_string())
        }
        Plan::Between(plan) => (Direction::Both, plan.to.to_string()),
    };
    let mut end = empty_end(args, direction, address);
    let result = match plan {
        Plan::Push(plan) => copy.push(plan, &mut end),
        Plan::Pull(plan) => copy.pull(plan, &mut end),
        Plan::Feed(plan) => copy.feed(plan, &mut end),
        Plan::Fetch(plan) => copy.fetch(plan, &mut end),
        Plan::Between(_) => Ok(()),
    };
    output.detach();
    if result.is_ok() && !args.quiet {
        output.say(&summary(&output, &end));
    }
    if result.is_err() && end.seconds == 0.0 {
        // It moved nothing.
        end.seconds = copy.meter.get().elapsed().as_secs_f64();
    }
    let result = result.map_err(|fault| with_copied(fault, &end));
    report_end(&output, end, result)
}

/// The `start` record of this copy.
fn start_record(args: &CopyArgs, target: serde_json::Value) -> Start {
    let mut start = args.transport.start("copy");
    start.only_sends = matches!(args.places.last(), Some(Location::Remote(_) | Location::Ssh(_)));
    start.for_people = !args.quiet;
    let (_, sources) = args.places.split_last().expect("there are no less than two");
    let sources: Vec<String> = sources.iter().map(ToString::to_string).collect();
    start.settings.insert("sources".into(), sources.into());
    start.settings.insert("interval_seconds".into(), args.interval.map(|time| time.as_secs_f64()).into());
    start.settings.insert("recursive".into(), args.recursive.into());
    if let Some(target) = args.control_stream {
        start.settings.insert("control_stream_bps".into(), target.bits_per_second().into());
    }
    if let serde_json::Value::Object(target) = target {
        start.settings.extend(target);
    }
    start
}

/// The `end` record of a copy that has moved nothing yet.
fn empty_end(args: &CopyArgs, direction: Direction, address: String) -> End {
    End {
        address: Some(address),
        files: Some(0),
        directories: Some(0),
        failed: Some(0),
        ..end_record(&args.transport, direction)
    }
}

/// Parses a place, which need not be UTF-8.
fn location() -> impl TypedValueParser<Value = Location> {
    OsStringValueParser::new().try_map(|text| Location::read(&text))
}

/// Differences between copies of files and of stdin to a server.
struct Feed<'a> {
    server: &'a Far,
    log: FileLog,
    bar: Option<ProgressBar>,
    /// The data comes from another program.
    fed: bool,
}

fn pulling(pull: Pull, server: &Far) -> Result<FileReceiver, Fault> {
    FileReceiver::connect(pull, ReceiveLimits::default())
        .map_err(|error| Fault::usage(format!("cannot request these paths from {server}: {error}")))
}

/// One run of the verb.
struct Copy<'a> {
    args: &'a CopyArgs,
    context: &'a Context,
    output: Output,
    trace: Option<Trace>,
    /// Counts from the connection attempt that succeeded, without the time that ssh or a question to the user took.
    meter: Cell<Meter>,
}

impl Copy<'_> {
    fn push(&self, plan: &PushPlan, end: &mut End) -> Result<(), Fault> {
        let total = plan.check_sources()?;
        let selection = plan.select(self.args.recursive)?;
        let names = selection.names().map(|name| name.as_bytes().to_vec()).collect();
        let is_directory = plan.is_directory || selection.len() > 1;
        let mut source = DiskSource::of(selection);
        let mut reached = self.connect(&plan.to, json!({ "target": plan.shown }))?;
        if connect::is_here(reached.stream.peer_addr()) {
            source.leave_out_younger_directories();
        }
        let push = Push { target: plan.target.clone(), target_is_directory: is_directory };
        let bar = self.bar(Some(total.unwrap_or(0)));
        let log = self.log(total.is_none().then(|| bar.clone()).flatten()).of_sources(names);
        let sent = self.send(&reached.stream, push, source, Feed { server: &plan.to, log, bar, fed: false }, end);
        sent.map_err(|fault| reached.explained(fault))
    }

    /// Copies stdin to the server.
    fn feed(&self, plan: &FeedPlan, end: &mut End) -> Result<(), Fault> {
        let mut reached = self.connect(&plan.to, json!({ "target": plan.shown }))?;
        let stream = &reached.stream;
        let source = StandardInput::begin(plan.name.clone(), stream.clone(), self.context.interrupt.clone())?;
        let push = Push { target: plan.directory.clone(), target_is_directory: true };
        let (bar, log) = (self.bar(None), self.log(None));
        let sent = self.send(stream, push, source, Feed { server: &plan.to, log, bar, fed: true }, end);
        sent.map_err(|fault| reached.explained(fault))
    }

    fn send(
        &self,
        stream: &Stream,
        push: Push,
        source: impl Source,
        feed: Feed<'_>,
        end: &mut End,
    ) -> Result<(), Fault> {
        let Feed { server, log, bar, fed } = feed;
        let source = Timed::new(source, stream.clone(), self.meter.get());
        let mut job = Sending { session: FileSender::connect(push), source, log };
        let control = self
            .args
            .control_stream
            .map(|target| Control::begin(self.context, &self.output, &self.args.transport, stream, target));
        let control = control.transpose()?;
        end.protected_by(stream);
        let (driven, measured) = self.drive(stream, &mut job, bar)?;
        outcome::of_sending(end, &job, &Measured { fed, ..measured });
        end.control_stream = control.and_then(Control::finish);
        outcome::result(end, &job.log, driven, |trouble| {
            let fault = self.context.fault(trouble, server);
            match job.log.current().map(|_| began_there(job.session.progress())) {
                Some(true) => fault
                    .and(&format!("the incomplete file lies beside its target on {server}; its name ends in .fhpart")),
                Some(false) if !is_explained(trouble) => fault.and(&format!(
                    "an incomplete file may lie beside its target on {server}; its name would end in .fhpart"
                )),
                _ => fault,
            }
        })
    }

    fn pull(&self, plan: &PullPlan, end: &mut End) -> Result<(), Fault> {
        let is_directory = plan.is_directory();
        let store = DiskStore::at(&plan.to, is_directory)
            .map_err(|error| Fault::new(Code::LocalIo, fault::no_place(&plan.to.display(), &error)))?;
        let target = Target::at(plan.to.clone());
        let takes_one = !is_directory && !plan.to.is_dir();
        let pull = plan.asked.pull(self.args.recursive, takes_one);
        let session = pulling(pull, &plan.from)?;
        let mut reached = self.connect(&plan.from, json!({ "target": plan.to.to_string_lossy() }))?;
        let stream = reached.stream.clone();
        let bar = self.bar(Some(0));
        let log = self.log(bar.clone()).of_sources(plan.asked.names());
        let mut job = Receiving { session, store: Timed::new(store, stream.clone(), self.meter.get()), log };
        end.protected_by(&stream);
        let (driven, measured) = self.drive(&stream, &mut job, bar)?;
        outcome::of_receiving(end, &job, &measured);
        outcome::result(end, &job.log, driven, |trouble| {
            target.named_in(self.context.fault(trouble, &plan.from), job.log.current())
        })
        .map_err(|fault| reached.explained(fault))
    }

    /// Copies a file from the server to stdout.
    fn fetch(&self, plan: &FetchPlan, end: &mut End) -> Result<(), Fault> {
        let session = pulling(plan.asked.pull(false, true), &plan.from)?;
        let mut reached = self.connect(&plan.from, json!({ "target": "-" }))?;
        let stream = reached.stream.clone();
        let bar = self.bar(Some(0));
        let log = self.log(bar.clone()).without_place();
        let closed = Rc::new(Cell::new(false));
        let store = Timed::new(StandardOutput::new(Rc::clone(&closed)), stream.clone(), self.meter.get()).program();
        let mut job = Receiving { session, store, log };
        end.protected_by(&stream);
        let (driven, measured) = self.drive(&stream, &mut job, bar)?;
        outcome::of_receiving(end, &job, &measured);
        if closed.get() {
            let message = "the reader of stdout closed it early; the copy is incomplete";
            return Err(self.context.interrupt.fault().unwrap_or_else(|| Fault::new(Code::LocalIo, message).quietly()));
        }
        outcome::result(end, &job.log, driven, |trouble| {
            let fault = self.context.fault(trouble, &plan.from);
            if job.log.moved() == 0 { fault } else { fault.and("the output on stdout is incomplete") }
        })
        .map_err(|fault| reached.explained(fault))
    }

    fn connect(&self, far: &Far, target: serde_json::Value) -> Result<Reached, Fault> {
        let start = start_record(self.args, target);
        let CopyArgs { transport, ssh, .. } = self.args;
        let reached = match far {
            Far::Server(server) => {
                let stream = Calling::to(self.context, &self.output, transport, server)?.connect(server, start)?;
                Reached { stream, far: None }
            }
            Far::Ssh { host, task } => {
                let over = OverSsh { context: self.context, output: &self.output, transport, options: ssh };
                let begun = over.connect(host, task.clone(), start.clone());
                // Of two such records, the first is written.
                begun.inspect_err(|_| self.output.record(&Record::Start(Box::new(start))))?
            }
            Far::Other(other) => {
                let stream = over_ssh::call(self.context, &self.output, transport, other, start)?;
                Reached { stream, far: None }
            }
        };
        let open_for = reached.stream.stats().map_or(Duration::ZERO, |stats| stats.elapsed);
        self.meter.set(self.meter.get().restarted(open_for));
        Ok(reached)
    }

    /// A progress bar on a terminal. `length` is `None` if it stays unknown until the end.
    fn bar(&self, length: Option<u64>) -> Option<ProgressBar> {
        let shown = !self.args.quiet && !self.output.is_json() && crate::output::human::is_terminal();
        shown.then(|| {
            let bar = progress::bar(length);
            self.output.attach(bar.clone());
            bar
        })
    }

    fn log(&self, grows: Option<ProgressBar>) -> FileLog {
        FileLog::new(self.output.clone(), None, self.meter.get(), grows)
    }

    fn drive(
        &self,
        stream: &Stream,
        job: &mut impl Session,
        bar: Option<ProgressBar>,
    ) -> Result<(Result<(), Trouble>, Measured), Fault> {
        self.context.show_state(&self.output, std::slice::from_ref(stream));
        let view = View {
            output: self.output.clone(),
            session: None,
            flow: None,
            sends: job.sends(),
            interval: self.args.interval,
            bar,
            trace: self.trace.clone(),
        };
        let mut watch = Watch::start(vec![stream.clone()], self.context.clock, view)?;
        job.tells(watch.round_trips());
        let channel = Channel { stream, role: Role::Connecting, clock: self.context.clock, early: &[] };
        let (waits, driven) = drive(&channel, job);
        watch.stop();
        self.context.hide_state();
        let stats = stream.stats().unwrap_or_default();
        Ok((
            driven,
            Measured {
                stats,
                rtt: watch.rtt(),
                meter: self.meter.get(),
                waits,
                fed: false,
                rate: self.args.transport.rate(),
                buffer: self.args.transport.buffer,
            },
        ))
    }
}

/// Whether the other side gave a reason for giving up. Its reason also tells about incomplete files.
fn is_explained(trouble: &Trouble) -> bool {
    matches!(trouble, Trouble::Session(SessionError::PeerAborted(abort)) if abort.code != AbortCode::Cancelled)
}

/// Whether the other side has stored bytes of the current file.
fn began_there(progress: Progress) -> bool {
    progress.current.is_some_and(|(_, _, sent)| progress.stored > progress.bytes - sent)
}
