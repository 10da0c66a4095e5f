//! A run of the program: its command line, its verb, its last record and its exit code.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, Command, FromArgMatches};
use farhaul::Protocol;
use farhaul_transfer::Report;

use crate::cli::{Cli, Early, Verb, command, modes, refusal};
use crate::cmd::Context;
use crate::config::{Config, Defaults, add_controller, hosts, show, with_defaults};
use crate::exit::Fault;
use crate::output::json::End;
use crate::output::standard_stream::STDOUT;
use crate::output::{JsonTo, Output};

/// Runs the command line of this process.
pub(crate) fn run() -> ExitCode {
    let early = Early::read().unwrap_or_else(|help| print_help(&help));
    let (records, done) = match parse(&early) {
        Ok(None) => (Records::of_unread(&early), Ok(0)),
        Ok(Some(cli)) => (
            Records::of(&cli.verb, early.verb().map_or("", |(name, _)| name)),
            begin(&cli.verb).and_then(|context| cli.verb.run(&context)),
        ),
        Err(fault) => (Records::of_unread(&early), Err(fault)),
    };
    if !farhaul_transfer::internal::remote::peer_knows_of_the_end() {
        farhaul::wait_idle();
    }
    match done.and_then(|code| crate::output::outcome().map(|()| code)) {
        Ok(code) => ExitCode::from(code),
        Err(fault) => {
            crate::output::conclude(records.to, records.start.as_ref(), records.end, &fault);
            if !fault.is_quiet {
                Output::new(records.to).error(&fault);
            }
            crate::output::drain();
            crate::exit::exit_code(early.verb().map(|(name, _)| name), &fault)
        }
    }
}

/// Begins a verb, while the program has a single thread.
fn begin(verb: &Verb) -> Result<Context, Fault> {
    if verb.is_background() {
        crate::sys::lower_priority();
    }
    Context::begin(verb.network_rights(), verb.at_signals())
}

/// The records of a program that fails before its verb writes some.
struct Records {
    to: JsonTo,
    start: Option<serde_json::Value>,
    end: End,
}

impl Records {
    fn of(verb: &Verb, name: &str) -> Self {
        Self { to: verb.json_to(name), start: Some(verb.start(name)), end: verb.end() }
    }

    /// Records of an unreadable command line: its settings are unknown, so there is no `start`.
    fn of_unread(early: &Early) -> Self {
        let report = Report { protocol: Protocol::default().to_string(), ..Report::default() };
        let end = End { report, ..End::default() };
        Self { to: early.json_to(), start: None, end }
    }
}

/// Reads the command line, with the settings of files as defaults. `None` if `--show-config` has printed them.
fn parse(early: &Early) -> Result<Option<Cli>, Fault> {
    let Some((verb, options)) = early.verb() else {
        let read = command()
            .clone()
            .try_get_matches_from(early.arguments())
            .and_then(|matches| Cli::from_arg_matches(&matches));
        return read.map(Some).map_err(|error| refused(&error, None));
    };
    let config = Config::load(Some(verb), early.config_file().as_deref(), command())?;
    let mut defaults = config.defaults(verb, &hosts(options));
    add_controller(&mut defaults, options);
    let matches = matches(early, verb, &defaults)?;
    match matches.subcommand() {
        Some((verb, options)) if early.shows_config() => {
            crate::output::print(&show(command(), verb, options, &defaults));
            Ok(None)
        }
        _ => {
            modes::check(&matches, command())?;
            Cli::from_arg_matches(&matches).map(Some).map_err(|error| refused(&error, Some(verb)))
        }
    }
}

/// All options of `verb`. A refusal names the settings file of a wrong value.
fn matches(early: &Early, verb: &str, defaults: &Defaults) -> Result<ArgMatches, Fault> {
    let command = with_defaults(command().clone(), verb, defaults);
    let command = if early.shows_config() { command.mut_subcommand(verb, without_requirements) } else { command };
    command.clone().try_get_matches_from(early.arguments()).map_err(|error| {
        let fault = refused(&error, Some(verb));
        match origin(&error, early, command.find_subcommand(verb), defaults) {
            Some(origin) => fault.and(&format!("the value is from {origin}")),
            None => fault,
        }
    })
}

/// The variable or the settings file with the wrong value that `error` reports.
fn origin(error: &clap::Error, early: &Early, verb: Option<&Command>, defaults: &Defaults) -> Option<String> {
    if !matches!(error.kind(), ErrorKind::ValueValidation | ErrorKind::InvalidValue) {
        return None;
    }
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else { return None };
    let long = option.strip_prefix("--")?.split(' ').next()?;
    let arg = verb?.get_arguments().find(|arg| arg.get_long() == Some(long))?;
    if early.is_typed(arg.get_id().as_str()) {
        return None;
    }
    let variable = arg.get_env().filter(|name| std::env::var_os(name).is_some());
    variable.map(|name| name.to_string_lossy().into_owned()).or_else(|| Some(defaults.get(long)?.origin().to_owned()))
}

/// The error in the command line. Ends the program if `error` is a request for help or the version.
fn refused(error: &clap::Error, verb: Option<&str>) -> Fault {
    if refusal::is_help(error) { print_help(error) } else { refusal::fault(error, verb) }
}

/// Prints help or the version, and ends the program.
fn print_help(help: &clap::Error) -> ! {
    let printed = help.print().and_then(|()| io::stdout().flush());
    if !help.use_stderr() {
        STDOUT.note(printed);
    }
    if let Err(fault) = crate::output::outcome() {
        Output::new(JsonTo::Nowhere).error(&fault);
        std::process::exit(fault.code.exit().into());
    }
    std::process::exit(help.exit_code())
}

/// The command without required options: `--show-config` needs none.
fn without_requirements(command: Command) -> Command {
    let groups: Vec<_> = command.get_groups().map(|group| group.get_id().clone()).collect();
    let command = command.mut_args(|arg| arg.required(false));
    groups.into_iter().fold(command, |command, group| command.mut_group(group, |group| group.required(false)))
}
