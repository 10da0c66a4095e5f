//! What has to be known before the command line is read: the verb, the hosts, `--show-config`, `--json`.
//!
//! Settings of files depend on the verb and on its hosts, and they are defaults of the options. So a first parse reads what can
//! be read, without judging values. The second one has the defaults, and refuses what is wrong.

use clap::builder::ValueParser;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};

use super::{SHOW_CONFIG, command, json_to};
use crate::output::JsonTo;

/// A command line as far as it can be read.
pub(crate) struct Early {
    matches: ArgMatches,
}

impl Early {
    /// Reads the arguments of this program.
    ///
    /// # Errors
    /// Help or the version was asked for.
    pub(crate) fn read() -> Result<Self, Error> {
        Self::of(std::env::args_os().collect())
    }

    fn of(arguments: Vec<std::ffi::OsString>) -> Result<Self, Error> {
        let mut command = without_values(command());
        // Each turn passes over one option that does not exist, to see what stands behind it.
        for _ in &arguments {
            let Err(error) = command.clone().try_get_matches_from(&arguments) else { break };
            let Some(unknown) = unknown_option(&error) else { break };
            command = passing(command, unknown);
        }
        let matches = command.ignore_errors(true).try_get_matches_from(arguments)?;
        Ok(Self { matches })
    }

    /// The verb, if there is one, and what was said of it.
    pub(crate) fn verb(&self) -> Option<(&str, &ArgMatches)> {
        self.matches.subcommand()
    }

    /// Whether the settings are only to be shown.
    pub(crate) fn shows_config(&self) -> bool {
        self.verb().is_some_and(|(_, options)| options.get_flag(SHOW_CONFIG))
    }

    /// Whether the option with this identifier was typed.
    pub(crate) fn is_typed(&self, id: &str) -> bool {
        self.verb().is_some_and(|(_, options)| {
            options.try_contains_id(id).is_ok() && options.value_source(id) == Some(ValueSource::CommandLine)
        })
    }

    /// Where records go if the command line cannot be read.
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

/// The command with values that nobody judges: files behind them must be read once only.
fn without_values(command: Command) -> Command {
    command
        .mut_args(|arg| if arg.get_action().takes_values() { arg.value_parser(ValueParser::os_string()) } else { arg })
        .mut_subcommands(without_values)
}

/// The long option that no verb of this command line has.
fn unknown_option(error: &Error) -> Option<&'static str> {
    match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(argument)) if error.kind() == ErrorKind::UnknownArgument => {
            // Names live as long as the program in clap.
            (argument.len() > 2 && argument.starts_with("--")).then(|| &*Box::leak(argument.clone().into_boxed_str()))
        }
        _ => None,
    }
}

/// The command with the option `--name`, which may have a value, wherever it has none of that name.
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
    fn the_verb_and_its_flags_are_seen_behind_what_is_wrong() {
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
    fn the_settings_are_shown_whatever_else_is_missing() {
        assert!(early("copy --show-config").shows_config() && early("--show-config bench").shows_config());
        assert!(!early("copy a").shows_config());
        assert!(early("bench --rate 5").is_typed("rate") && !early("bench").is_typed("rate"));
    }

    #[test]
    fn help_is_no_command_line() {
        for line in ["bench --help", "bench --nosuch --help", "--version", "help"] {
            let arguments = ["farhaul"].into_iter().chain(line.split(' ')).map(Into::into).collect();
            assert!(Early::of(arguments).err().is_some_and(|error| !error.use_stderr()), "{line}");
        }
    }
}
