//! The command `farhaul`: bulk data over UDP for long fat networks.
//!
//! | to change … | open |
//! | --- | --- |
//! | verbs, options, how values are read | `cli.rs`, `cli/` |
//! | what a verb does | `cmd/VERB.rs` |
//! | settings in files, `--show-config` | `config.rs`, `config/` |
//! | exit codes and error lines | `exit.rs`, `fault.rs` |
//! | what is printed: words, JSON records, the progress bar | `output/` |
//! | how a session runs on a stream, what is measured | `host.rs`, `host/` |
//! | signals | `interrupt.rs` |

mod cli;
mod cmd;
mod config;
mod exit;
mod fault;
mod host;
mod interrupt;
mod output;
mod sys;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, Command, CommandFactory, FromArgMatches};

use cli::Cli;
use cmd::Context;
use config::{Config, Defaults};
use exit::{Code, Fault};
use output::outlet::STDOUT;
use output::{JsonTo, Output};

fn main() -> ExitCode {
    let done = parse().and_then(|cli| match cli {
        Some(cli) => cmd::run(cli.verb, &Context::begin()?),
        None => Ok(()),
    });
    farhaul::wait_for_farewells();
    match done.and_then(|()| output::outcome()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            if !fault.quiet {
                Output::new(JsonTo::Nowhere).error(&fault);
            }
            ExitCode::from(&fault)
        }
    }
}

/// Reads the command line, with what the files of settings say as defaults; `None` if these were only to be shown.
fn parse() -> Result<Option<Cli>, Fault> {
    // Options before the verb take no values.
    let first = arguments().find(|argument| !argument.starts_with('-'));
    let asks_for_help = arguments().any(|argument| argument == "--help" || argument == "-h");
    let is_verb = |first: &&str| !asks_for_help && Cli::command().find_subcommand(first).is_some();
    let Some(verb) = first.as_deref().filter(is_verb) else {
        // Help, the version, or what the parser refuses.
        let matches = Cli::command().try_get_matches().unwrap_or_else(|error| leave(&error));
        return Ok(Some(Cli::from_arg_matches(&matches).unwrap_or_else(|error| leave(&error))));
    };
    let config = Config::load(Some(verb), &Cli::command())?;
    let mut defaults = config.defaults(verb, &[]);
    let mut matches = matches(verb, &defaults);
    let hosts = matches.subcommand().map_or(Vec::new(), |(_, matches)| config::hosts(matches));
    let of_hosts = config.defaults(verb, &hosts);
    if of_hosts != defaults {
        defaults = of_hosts;
        matches = self::matches(verb, &defaults);
    }
    match matches.subcommand() {
        Some((verb, options)) if options.get_flag(SHOW_CONFIG) => {
            output::print(&config::show(&Cli::command(), verb, options, &defaults));
            Ok(None)
        }
        _ => Ok(Some(Cli::from_arg_matches(&matches).unwrap_or_else(|error| leave(&error)))),
    }
}

/// What was typed, for looking only: what is no UTF-8 is for the parser.
fn arguments() -> impl Iterator<Item = String> {
    std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned())
}

/// The identifier of `--show-config`.
const SHOW_CONFIG: &str = "show_config";

/// Ends the program on usage errors and for help, as clap does, naming the file that a wrong value is from.
fn matches(verb: &str, defaults: &Defaults) -> ArgMatches {
    let command = config::with_defaults(Cli::command(), verb, defaults);
    let shows = arguments().any(|argument| argument == "--show-config");
    let command = if shows { command.mut_subcommand(verb, without_requirements) } else { command };
    command.try_get_matches().unwrap_or_else(|error| {
        if error.kind() == ErrorKind::ValueValidation
            && let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg)
            && let Some(given) =
                defaults.iter().find(|(long, _)| option.split(' ').next() == Some(&format!("--{long}")))
            && !arguments().any(|argument| argument.starts_with(&format!("--{}", given.0)))
        {
            let _ = error.print();
            Output::new(JsonTo::Nowhere).error(&Fault::usage(format!("the value is from {}", given.1.origin())));
            std::process::exit(Code::Usage.exit().into());
        }
        leave(&error)
    })
}

/// Ends the program as the parser says: with help or the version on stdout, or with what is wrong on stderr.
fn leave(error: &clap::Error) -> ! {
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

impl From<std::io::Error> for Fault {
    /// For what the system refuses outright: threads, sockets of our own, temporary files.
    fn from(error: std::io::Error) -> Self {
        Self::new(Code::Failed, format!("the system refused: {error}"))
    }
}
