//! Help texts: prose wraps at the terminal's width, indented lines stay literal.

use std::sync::LazyLock;

use clap::{Arg, ArgAction, Command, CommandFactory};

use super::Cli;
use crate::cmd::manual::LITERAL;

/// Options of connections that a verb refuses. No help names them.
const REFUSED: [(&str, &[&str]); 1] = [("rsh", &["json", "trace", "key", "plain"])];

/// The command line, with its texts ready for wrapping and examples at the end of each short help.
pub(crate) fn command() -> &'static Command {
    // A run looks at it several times, and building it takes a third of a millisecond.
    static COMMAND: LazyLock<Command> = LazyLock::new(|| whole().mut_subcommands(with_examples));
    &COMMAND
}

/// The same for the manual and for completions, which have no short help.
pub(crate) fn whole() -> Command {
    let command = Cli::command();
    let verbs: Vec<String> = command.get_subcommands().map(|verb| verb.get_name().to_owned()).collect();
    let command = match command.get_after_long_help().map(|text| flowing(&text.to_string())) {
        Some(text) => command.after_long_help(text),
        None => command,
    };
    let command = REFUSED.iter().fold(command, |command, (verb, refused)| {
        let hide = |verb: Command| refused.iter().fold(verb, |verb, id| verb.mut_arg(id, |arg| arg.hide(true)));
        command.mut_subcommand(verb, hide)
    });
    let command = verbs.iter().fold(command, |command, verb| {
        command.mut_subcommand(verb, |verb| match verb.get_long_about().map(|text| flowing(&text.to_string())) {
            Some(text) => verb.long_about(text),
            None => verb,
        })
    });
    command.mut_subcommands(with_two_helps)
}

/// The verb with a short help, which lacks the options with `hide_short_help`, and one of everything.
fn with_two_helps(verb: Command) -> Command {
    let short = Arg::new("help").short('h').long("help").action(ArgAction::HelpShort);
    let long = Arg::new("help-all").long("help-all").action(ArgAction::HelpLong);
    let both = [short.help("Print the options that most people use"), long.help("Explain all options")];
    verb.disable_help_flag(true).args(both.map(|help| help.help_heading(None))).mut_subcommands(with_two_helps)
}

/// The verb, whose short help ends with its first examples.
fn with_examples(verb: Command) -> Command {
    let about = verb.get_long_about().map(ToString::to_string).unwrap_or_default();
    let examples = about.split("\n\n").find(|paragraph| paragraph.starts_with(LITERAL));
    let verb = match examples.map(|examples| format!("Examples:\n{examples}")) {
        Some(examples) => verb.after_help(examples).after_long_help(""),
        None => verb,
    };
    verb.mut_subcommands(with_examples)
}

/// Each paragraph of prose as one line.
fn flowing(text: &str) -> String {
    let paragraph = |text: &str| match text.starts_with(LITERAL) {
        true => text.to_owned(),
        false => text.replace('\n', " "),
    };
    text.split("\n\n").map(paragraph).collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Width of a usual terminal, in columns.
    const WIDTH: usize = 80;

    #[test]
    fn the_short_help_of_a_verb_fits_on_a_screen_and_leads_to_all_options() {
        for name in ["copy", "serve", "rsh", "ls", "cat", "rm", "mv", "mkdir", "pipe", "bench"] {
            let mut command = command().clone();
            let verb = command.find_subcommand_mut(name).unwrap();
            let (short, long) = (verb.render_help().to_string(), verb.render_long_help().to_string());
            let options = |help: &str| help.lines().filter(|line| line.trim_start().starts_with('-')).count();
            assert!(options(&short) <= 15 && options(&long) > 20, "{name}: {short}");
            assert!(short.contains("--help-all") && short.contains("Examples:"), "{short}");
        }
    }

    #[test]
    fn commands_to_type_fit_on_a_line_and_prose_is_wrapped_once() {
        for verb in command().get_subcommands() {
            for line in verb.get_long_about().map(ToString::to_string).unwrap_or_default().lines() {
                assert!(!line.starts_with(LITERAL) || line.chars().count() <= WIDTH, "{line}");
            }
        }
        assert_eq!(flowing("one\ntwo\n\n    x --y\n    z\n\nthree"), "one two\n\n    x --y\n    z\n\nthree");
    }
}
