//! The command `farhaul`: bulk data over UDP for long fat networks.
//!
//! | to change … | open |
//! | --- | --- |
//! | verbs | `cli.rs`, `cli/` |
//! | options that verbs share | `options/` |
//! | how values are read | `values/` |
//! | what a verb does | `cmd/VERB.rs` |
//! | settings in files, `--show-config` | `config.rs`, `config/` |
//! | exit codes and error lines | `exit.rs`, `fault.rs` |
//! | what is printed: words, JSON records, the progress bar | `output/` |
//! | how a session runs on a stream, what is measured | `host.rs`, `host/` |
//! | the verdict on what held a transfer back | `limit.rs` |
//! | signals | `interrupt.rs` |

mod cli;
mod cmd;
mod config;
mod exit;
mod fault;
mod host;
mod interrupt;
mod limit;
mod options;
mod output;
mod sys;
mod values;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, Command, FromArgMatches};

use cli::{Cli, Verb, refusal};
use cmd::Context;
use config::{Config, Defaults};
use exit::Fault;
use options::Protocol;
use output::json::End;
use output::outlet::STDOUT;
use output::{JsonTo, Output};

fn main() -> ExitCode {
    let parsed = parse();
    let (records, done) = match parsed {
        Ok(None) => (Records::of_unknown(), Ok(0)),
        Ok(Some(cli)) => (
            Records::of(&cli.verb),
            Context::begin(cli.verb.makes_networks()).and_then(|context| cli.verb.run(&context)),
        ),
        Err(fault) => (Records::of_unknown(), Err(fault)),
    };
    farhaul::wait_for_farewells();
    match done.and_then(|code| output::outcome().map(|()| code)) {
        Ok(code) => ExitCode::from(code),
        Err(fault) => {
            output::conclude(records.to, records.start.as_ref(), records.end, &fault);
            if !fault.quiet {
                Output::new(records.to).error(&fault);
            }
            ExitCode::from(&fault)
        }
    }
}

/// What a program that fails early has to record.
struct Records {
    to: JsonTo,
    start: Option<serde_json::Value>,
    end: End,
}

impl Records {
    fn of(verb: &Verb) -> Self {
        Self { to: verb.json_to(), start: Some(verb.start()), end: verb.end() }
    }

    /// Of a command line that cannot be read: nobody knows which settings hold.
    fn of_unknown() -> Self {
        let set = std::env::var("FARHAUL_JSON").is_ok_and(|value| matches!(&*value, "1" | "true" | "yes" | "y" | "on"));
        let to = match arguments().any(|argument| argument == "--json") || set {
            false => JsonTo::Nowhere,
            true if arguments().any(|argument| argument == "pipe") || arguments().last().is_some_and(|a| a == "-") => {
                JsonTo::Stderr
            }
            true => JsonTo::Stdout,
        };
        let end = End { protocol: Protocol::Udt.name(), security: "none", ..End::default() };
        Self { to, start: None, end }
    }
}

/// Reads the command line, with what the files of settings say as defaults; `None` if these were only to be shown.
fn parse() -> Result<Option<Cli>, Fault> {
    // Options before the verb take no values.
    let first = arguments().find(|argument| !argument.starts_with('-'));
    let asks_for_help = arguments().any(|argument| argument == "--help" || argument == "-h");
    let is_verb = |first: &&str| !asks_for_help && cli::command().find_subcommand(first).is_some();
    let Some(verb) = first.as_deref().filter(is_verb) else {
        // Help, the version, or what the parser refuses.
        let read = cli::command().try_get_matches().and_then(|matches| Cli::from_arg_matches(&matches));
        return read.map(Some).map_err(|error| refused(&error, None));
    };
    let config = Config::load(Some(verb), &cli::command())?;
    let mut defaults = config.defaults(verb, &[]);
    let mut matches = matches(verb, &defaults)?;
    let hosts = matches.subcommand().map_or(Vec::new(), |(_, matches)| config::hosts(matches));
    let of_hosts = config.defaults(verb, &hosts);
    if of_hosts != defaults {
        defaults = of_hosts;
        matches = self::matches(verb, &defaults)?;
    }
    match matches.subcommand() {
        Some((verb, options)) if options.get_flag(SHOW_CONFIG) => {
            output::print(&config::show(&cli::command(), verb, options, &defaults));
            Ok(None)
        }
        _ => {
            refusal::of_the_other_side(&matches)?;
            Cli::from_arg_matches(&matches).map(Some).map_err(|error| refused(&error, Some(verb)))
        }
    }
}

/// What was typed, for looking only: what is no UTF-8 is for the parser.
fn arguments() -> impl Iterator<Item = String> {
    std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned())
}

/// The identifier of `--show-config`.
const SHOW_CONFIG: &str = "show_config";

/// Ends the program for help; a refusal names the file that a wrong value is from.
fn matches(verb: &str, defaults: &Defaults) -> Result<ArgMatches, Fault> {
    let command = config::with_defaults(cli::command(), verb, defaults);
    let shows = arguments().any(|argument| argument == "--show-config");
    let command = if shows { command.mut_subcommand(verb, without_requirements) } else { command };
    command.try_get_matches().map_err(|error| {
        let fault = refused(&error, Some(verb));
        if error.kind() == ErrorKind::ValueValidation
            && let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg)
            && let Some(given) =
                defaults.iter().find(|(long, _)| option.split(' ').next() == Some(&format!("--{long}")))
            && !arguments().any(|argument| argument.starts_with(&format!("--{}", given.0)))
        {
            return fault.and(&format!("the value is from {}", given.1.origin()));
        }
        fault
    })
}

/// What is wrong with the command line; ends the program if help or the version was asked for.
fn refused(error: &clap::Error, verb: Option<&str>) -> Fault {
    if !refusal::is_help(error) {
        return refusal::fault(error, verb);
    }
    let printed = error.print().and_then(|()| io::stdout().flush());
    if !error.use_stderr() {
        STDOUT.note(printed);
    }
    if let Err(fault) = output::outcome() {
        Output::new(JsonTo::Nowhere).error(&fault);
        std::process::exit(fault.code.exit().into());
    }
    std::process::exit(error.exit_code())
}

/// To show the settings, nothing has to be said of what they are for.
fn without_requirements(command: Command) -> Command {
    let groups: Vec<_> = command.get_groups().map(|group| group.get_id().clone()).collect();
    let command = command.mut_args(|arg| arg.required(false));
    groups.into_iter().fold(command, |command, group| command.mut_group(group, |group| group.required(false)))
}
