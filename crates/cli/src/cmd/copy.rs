//! `copy`: files and trees between hosts, over SSH or with a running `serve`, each verified by its digest.

pub(crate) mod args;
mod standard;
pub(super) mod summary;
mod total;

use std::io::IsTerminal;
use std::path::Path;
use std::time::Duration;

use farhaul_transfer::internal::report::Direction;
use farhaul_transfer::{CopyJob, Report};

use super::{Context, report_end};
use crate::ctl;
use crate::exit::Fault;
use crate::options::Transport;
use crate::output::human::is_terminal;
use crate::output::json::{Record, Start};
use crate::output::manifest::Manifest;
use crate::output::observer::{Reporter, Shown};
use crate::output::progress::TransferBar;
use crate::output::tracker::Tracker;
use crate::output::{JsonTo, Output};
use crate::values::Location;
use args::CopyArgs;
use summary::{summary, summary_between, with_copied};
use total::Counting;

pub(crate) fn run(args: &CopyArgs, context: &Context) -> Result<(), Fault> {
    if args.has_original() {
        return Err(super::without_originals());
    }
    let copy = CopyJob::new(&args.places, args.is_recursive())?;
    let output = match copy.writes_stream() && args.transport.json {
        true => Output::new(JsonTo::Stderr),
        false => Output::from_flag(args.transport.json),
    };
    let mut settings = args.transport.settings();
    args.server_keys.set(&mut settings.security, &output);
    if copy.hosts().is_some() {
        // A file of the environment does not reach other hosts.
        settings.key_log.clone_from(&args.transport.unsafe_keylog);
    }
    let copy = copy
        .with_rules(args.rules.rules()?)
        .with_settings(settings)
        .with_ssh(args.to_ssh())
        .control_stream(args.control_stream)
        .flows(args.flows)
        .give_up_after(args.give_up);
    let copy = match args.names.names()? {
        Some(names) => copy.with_names(names)?,
        None => copy,
    };
    copy.check()?;
    if copy.hosts().is_some() && args.transport.trace.is_some() {
        return Err(Fault::usage(
            "--control-stream, --trace and --unsafe-keylog do not reach a copy between two other hosts",
        ));
    }
    standard::check(&copy)?;
    if copy.writes_stream() && std::io::stdout().is_terminal() {
        return Err(Fault::usage("stdout is a terminal: redirect it to a file or a program, or give a target name"));
    }
    let (_, sources) = args.places.split_last().expect("a copy has two places or more");
    let mut start = args.transport.start("copy");
    start.only_sends = matches!(args.places.last(), Some(Location::Remote(_) | Location::Ssh(_)));
    start.settings.insert("sources".into(), sources.iter().map(ToString::to_string).collect::<Vec<_>>().into());
    start.settings.insert("recursive".into(), args.is_recursive().into());
    if let Some(list) = args.names.shown() {
        start.settings.insert("files_from".into(), list.into());
    }
    if let Some(shard) = args.rules.shard {
        start.settings.insert("shard".into(), shard.to_string().into());
    }
    start.settings.insert("flows".into(), args.flows.to_string().into());
    start.settings.insert("give_up_seconds".into(), args.give_up.as_secs_f64().into());
    if let Some(target) = args.control_stream {
        start.settings.insert("control_stream_bps".into(), target.bits_per_second().into());
    }
    let manifest = args.rules.manifest.as_deref();
    if manifest.is_some() && copy.hosts().is_some() {
        return Err(Fault::usage("--manifest does not reach a copy between two other hosts"));
    }
    let view = View {
        transport: &args.transport,
        interval: args.interval,
        is_quiet: args.quiet,
        lists: args.verbose,
        manifest,
    };
    carry_out(&copy, (start, &view), context, &output)
}

/// What a copy is shown by.
pub(super) struct View<'a> {
    pub(super) transport: &'a Transport,
    pub(super) interval: Option<Duration>,
    pub(super) is_quiet: bool,
    /// Each entry that changes is listed.
    pub(super) lists: bool,
    pub(super) manifest: Option<&'a Path>,
}

/// Runs a copy, and prints what happens. `start` lacks what every copy has.
pub(super) fn carry_out(
    copy: &CopyJob,
    (mut start, view): (Start, &View<'_>),
    context: &Context,
    output: &Output,
) -> Result<(), Fault> {
    start.for_people = !view.is_quiet;
    start.settings.insert("interval_seconds".into(), view.interval.map(|time| time.as_secs_f64()).into());
    start.settings.insert("target".into(), copy.target().into());
    let tracker = if copy.is_of_one_file() { Tracker::of_one_file() } else { Tracker::default() };
    let counting = Counting::of(copy, &tracker);
    let shown = Shown {
        start: Some(start.clone()),
        bar: bar(view, output).inspect(|_| counting.begin()),
        tracker: tracker.clone(),
        interval: view.interval,
        trace: view.transport.begin_trace("copy", output)?,
        manifest: view.manifest.map(Manifest::begin).transpose()?,
        is_dry_run: copy.rules().dry_run,
        lists: view.lists || copy.rules().dry_run,
    };
    let reporter = Reporter::new(output.clone(), shown);
    show_state(context, output, &tracker, &counting);
    let controlled = {
        let (tracker, counting) = (tracker.clone(), counting.clone());
        let amounts = move || {
            counting.begin();
            tracker.snapshot().record()
        };
        ctl::listen(context.controlled("copy", (what(copy), copy.settings().rate), amounts))
    };
    let result = copy.run(&context.environment(reporter.clone()));
    drop(controlled);
    context.hide_state();
    output.detach();
    let (report, result) = match result {
        Ok(report) => (report, Ok(())),
        Err(mut fault) => {
            let report = fault.report.take().map_or_else(Report::default, |report| *report);
            let fault = with_copied(fault, &report, copy.hosts().is_some());
            (report, Err(fault))
        }
    };
    reporter.conclude(result.as_ref().err());
    let result = result.and(reporter.end_manifest(report.failed == Some(0)));
    if result.is_err() && copy.uses_ssh() {
        // Of two such records, the first is written.
        output.record(&Record::Start(Box::new(start)));
    }
    if result.is_ok() && !view.is_quiet && !copy.rules().dry_run {
        output.print_line(&match copy.hosts() {
            Some(hosts) => summary_between(output, &report, hosts, reporter.has_carrier()),
            None => summary(output, &report),
        });
    }
    // The sending program has written the last record of a copy between two other hosts.
    if reporter.has_end() { result } else { report_end(output, report, result) }
}

/// A copy in a few words.
fn what(copy: &CopyJob) -> String {
    let sources = copy.sources();
    let from = match (copy.hosts(), sources.as_slice()) {
        (Some((from, _)), _) => from.to_owned(),
        (None, [one]) => one.clone(),
        (None, [first, others @ ..]) => format!("{first} and {} more", others.len()),
        (None, []) if copy.reads_stream() => "-".to_owned(),
        (None, []) => copy.peer(),
    };
    let to = match copy.direction() {
        Direction::Sent | Direction::Received => copy.target(),
        Direction::Both => copy.peer(),
    };
    format!("{from} to {to}")
}

/// Prints the amounts and the connections on SIGUSR1.
fn show_state(context: &Context, output: &Output, tracker: &Tracker, counting: &Counting) {
    let (tracker, counting, output) = (tracker.clone(), counting.clone(), output.clone());
    context.interrupt.shows(move || {
        counting.begin();
        let now = tracker.snapshot();
        output.state(&now.words());
        now.connections.iter().for_each(|stats| output.state(&super::state(stats)));
    });
}

/// A progress bar on a terminal.
fn bar(view: &View<'_>, output: &Output) -> Option<TransferBar> {
    let shown = !view.is_quiet && !output.is_json() && is_terminal();
    shown.then(|| {
        let bar = TransferBar::new();
        output.attach(bar.on_screen());
        bar
    })
}
