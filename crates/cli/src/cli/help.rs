//! Help texts: prose wraps at the terminal's width, indented lines stay literal.

use clap::{Command, CommandFactory};

use super::Cli;
use crate::cmd::manual::LITERAL;

/// Options of a verb that few people need: its help names them in one line, and the manual explains them.
const RARE: [(&str, &[&str]); 1] =
    [("copy", &["cipher", "trace", "connect_timeout", "no_path_memory", "unsafe_keylog"])];

/// Options of connections that a verb refuses. No help names them.
const REFUSED: [(&str, &[&str]); 1] = [("rsh", &["json", "trace", "key", "plain"])];

/// The command line, with its texts ready for wrapping.
pub(crate) fn command() -> Command {
    RARE.iter().fold(whole(), |command, (verb, rare)| command.mut_subcommand(verb, |verb| without_rare(verb, rare)))
}

/// The same with all options in its help, for the manual and for completions.
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
    verbs.iter().fold(command, |command, verb| {
        command.mut_subcommand(verb, |verb| match verb.get_long_about().map(|text| flowing(&text.to_string())) {
            Some(text) => verb.long_about(text),
            None => verb,
        })
    })
}

/// The verb, whose help names these options at its end alone.
fn without_rare(verb: Command, rare: &[&str]) -> Command {
    let names: Vec<_> = rare.iter().map(|id| format!("--{}", id.replace('_', "-"))).collect();
    let others = format!("Fewer people need {}: `farhaul man {}` explains them.", names.join(", "), verb.get_name());
    let verb = rare.iter().fold(verb, |verb, id| verb.mut_arg(id, |arg| arg.hide(true)));
    verb.after_help(others)
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

    /// Width of help without a known terminal, in columns.
    const WIDTH: usize = 100;

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
