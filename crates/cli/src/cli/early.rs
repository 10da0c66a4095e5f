//! The first, lenient parse of the command line: the verb, its hosts, `--show-config`, `--json`.
//!
//! Settings files supply defaults, which depend on the verb and its hosts. The first parse finds both and judges no values.
//! The second parse has the defaults and refuses errors.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::ValueParser;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};

use super::{SHOW_CONFIG, command, json_to};
use crate::cmd::rsh::order;
use crate::output::JsonTo;

/// The readable part of a command line.
pub(crate) struct Early {
    arguments: Vec<OsString>,
    matches: ArgMatches,
}

impl Early {
    /// Reads the arguments of this program, which come from nowhere else.
    ///
    /// # Errors
    /// A request for help or the version.
    pub(crate) fn read() -> Result<Self, Error> {
        let arguments = order::options_first(std::env::args_os().collect(), command());
        Self::of(arguments.clone()).map_err(|help| with_values(help, arguments))
    }

    fn of(arguments: Vec<OsString>) -> Result<Self, Error> {
        let mut command = without_values(command().clone());
        // Each round makes one unknown option known, to reach the options behind it.
        for _ in &arguments {
            let Err(error) = command.clone().try_get_matches_from(&arguments) else { break };
            let Some(unknown) = unknown_option(&error) else { break };
            command = passing(command, unknown);
        }
        let matches = command.ignore_errors(true).try_get_matches_from(&arguments)?;
        Ok(Self { arguments, matches })
    }

    /// The arguments, for the second parse.
    pub(crate) fn arguments(&self) -> &[OsString] {
        &self.arguments
    }

    /// The verb, if there is one, and its options.
    pub(crate) fn verb(&self) -> Option<(&str, &ArgMatches)> {
        self.matches.subcommand()
    }

    /// The file of `--config`.
    pub(crate) fn config_file(&self) -> Option<PathBuf> {
        let (_, options) = self.verb()?;
        let raw = options.try_get_raw("config").ok().flatten()?.next_back()?;
        Some(raw.into())
    }

    /// Whether `--show-config` is given.
    pub(crate) fn shows_config(&self) -> bool {
        self.verb().is_some_and(|(_, options)| options.get_flag(SHOW_CONFIG))
    }

    /// Whether the option with this identifier stands on the command line.
    pub(crate) fn is_typed(&self, id: &str) -> bool {
        self.verb().is_some_and(|(_, options)| {
            options.try_contains_id(id).is_ok() && options.value_source(id) == Some(ValueSource::CommandLine)
        })
    }

    /// Destination of records if the second parse fails.
    pub(crate) fn json_to(&self) -> JsonTo {
        let Some((verb, options)) = self.verb() else { return JsonTo::Nowhere };
        let last = options.try_get_raw("places").ok().flatten().and_then(Iterator::last);
        json_to(verb, wants_json(options), last.is_some_and(|place| place == "-"))
    }
}

fn wants_json(options: &ArgMatches) -> bool {
    let here = options.try_get_one::<bool>("json").ok().flatten().copied().unwrap_or(false);
    here || options.subcommand().is_some_and(|(_, options)| wants_json(options))
}

/// The same help or version as `help`, with the possible values of options, which the lenient parse does not know.
fn with_values(help: Error, arguments: Vec<OsString>) -> Error {
    command().clone().try_get_matches_from(arguments).err().filter(|error| error.kind() == help.kind()).unwrap_or(help)
}

/// The command with all values as plain text. A value parser may read a pipe, which works only once.
fn without_values(command: Command) -> Command {
    command
        .mut_args(|arg| if arg.get_action().takes_values() { arg.value_parser(ValueParser::os_string()) } else { arg })
        .mut_subcommands(without_values)
}

/// The long option that `error` reports as unknown.
fn unknown_option(error: &Error) -> Option<&'static str> {
    match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(argument)) if error.kind() == ErrorKind::UnknownArgument => {
            // Clap keeps names for the life of the program.
            (argument.len() > 2 && argument.starts_with("--")).then(|| &*Box::leak(argument.clone().into_boxed_str()))
        }
        _ => None,
    }
}

/// The command and its verbs with the additional option `--name`, whose value is optional.
fn passing(command: Command, option: &'static str) -> Command {
    let long = &option[2..];
    let is_known = command.get_arguments().any(|arg| arg.get_long() == Some(long));
    let unknown = Arg::new(option).long(long).num_args(0..=1).action(ArgAction::Append);
    let command = if is_known { command } else { command.arg(unknown) };
    command.mut_subcommands(|verb| passing(verb, option))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn early(arguments: &str) -> Early {
        let arguments = ["farhaul"].into_iter().chain(arguments.split(' ')).map(Into::into).collect();
        Early::of(arguments).unwrap()
    }

    #[test]
    fn the_verb_and_its_flags_are_found_behind_errors() {
        for (line, verb, to) in [
            ("bench --intervall 3 --rate x --json", Some("bench"), JsonTo::Stdout),
            ("bench --nosuch=1 --nosuch=2 --none --json", Some("bench"), JsonTo::Stdout),
            ("lab run --nosuch --json", Some("lab"), JsonTo::Stdout),
            ("pipe --nosuch --json", Some("pipe"), JsonTo::Stderr),
            ("copy --nosuch --json a b -", Some("copy"), JsonTo::Stderr),
            ("emulate -- ls --json", Some("emulate"), JsonTo::Nowhere),
            ("--nosuch", None, JsonTo::Nowhere),
        ] {
            let early = early(line);
            assert_eq!((early.verb().map(|(verb, _)| verb), early.json_to()), (verb, to), "{line}");
        }
    }

    #[test]
    fn show_config_needs_no_other_option() {
        assert!(early("copy --show-config").shows_config() && early("--show-config bench").shows_config());
        assert!(!early("copy a").shows_config());
        assert!(early("bench --rate 5").is_typed("rate") && !early("bench").is_typed("rate"));
    }

    #[test]
    fn help_is_returned_as_an_error() {
        for line in ["bench --help", "bench --nosuch --help-all", "--version", "help"] {
            let arguments = ["farhaul"].into_iter().chain(line.split(' ')).map(Into::into).collect();
            assert!(Early::of(arguments).err().is_some_and(|error| !error.use_stderr()), "{line}");
        }
    }
}
