//! Errors of the command line in one line: the problem and the next step.

use clap::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::exit::Fault;

/// Whether `error` is a request for help or the version.
pub(crate) fn is_help(error: &Error) -> bool {
    !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
}

/// The problem, and the help page that explains it.
pub(crate) fn fault(error: &Error, verb: Option<&str>) -> Fault {
    let text = error.render().to_string();
    let mut paragraphs = text.split("\n\n").map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
    let what = paragraphs.next().unwrap_or_default();
    let what = what.strip_prefix("error: ").unwrap_or(&what);
    let what = what.replace("the following required arguments were not provided:", "missing:");
    let what = with_bounds(&what);
    let tips: String = paragraphs.filter_map(|text| text.strip_prefix("tip: ").map(|tip| format!("; {tip}"))).collect();
    if let Some(advice) = verb.and_then(|verb| of_other_programs(error, verb)) {
        return Fault::usage(format!("{what}: {advice}"));
    }
    let next = match verb {
        Some(_) if is_about(error, "--protocol") => "`farhaul protocols` explains the options".to_owned(),
        Some(_) if is_about(error, "--controller") => "`farhaul controllers` explains the options".to_owned(),
        Some(verb) => format!("`farhaul {verb} --help-all` explains the options"),
        None => "`farhaul --help` lists the verbs".to_owned(),
    };
    Fault::usage(format!("{what}{tips}; {next}"))
}

/// Options of scp and rsync that `copy` lacks, and what it has instead.
const OF_OTHER_PROGRAMS: [(&[&str], &str); 9] = [
    (
        &["-z", "--compress", "-C"],
        "nothing is compressed on the way; compress before: tar c DIR | zstd | farhaul copy - HOST:FILE",
    ),
    (&["-e", "--rsh"], "--ssh 'ssh -p 2222' names another ssh"),
    (&["--progress", "--info"], "a terminal shows the progress; --interval 1s --json reports it"),
    (
        &["--partial", "--append", "--inplace"],
        "what has arrived is kept in any case, and the same command goes on with it",
    ),
    (&["-c", "--checksum"], "--skip digest compares contents"),
    (&["-l"], "--rate 400mbit caps the rate"),
    (&["-u", "--update", "--ignore-existing"], "--skip exists leaves alone what is there"),
    (
        &["-p", "-t", "--times", "--perms", "--links"],
        "-a keeps times, permissions and links; times and new permissions are kept in any case",
    ),
    (&["-S", "--sparse"], "holes stay holes with -a"),
];

/// What `copy` has in the place of an option of scp or rsync.
fn of_other_programs(error: &Error, verb: &str) -> Option<&'static str> {
    let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg) else { return None };
    let option = argument.split(['=', ' ']).next()?;
    let is_unknown = verb == "copy" && error.kind() == ErrorKind::UnknownArgument;
    let found = OF_OTHER_PROGRAMS.iter().find(|(options, _)| is_unknown && options.contains(&option));
    found.map(|(_, advice)| *advice)
}

/// The problem with the range of a number in words. The parser prints `A..=B`, or the largest number for no upper bound.
fn with_bounds(what: &str) -> String {
    let in_words = || {
        let (before, range) = what.rsplit_once(" is not in ")?;
        let (subject, _) = before.rsplit_once(": ")?;
        let (low, high) = range.split_once("..")?;
        let has_no_bound = high.parse().is_ok_and(|high: u64| high >= i64::MAX.unsigned_abs());
        let high = high.trim_start_matches('=');
        Some(match has_no_bound {
            true => format!("{subject}: it must be at least {low}"),
            false => format!("{subject}: it must be from {low} to {high}"),
        })
    };
    in_words().unwrap_or_else(|| what.to_owned())
}

/// Whether `error` is a wrong value of this option.
fn is_about(error: &Error, option: &str) -> bool {
    let argument = error.get(ContextKind::InvalidArg);
    let named = matches!(argument, Some(ContextValue::String(text)) if text.split(' ').next() == Some(option));
    named && error.kind() == ErrorKind::ValueValidation
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    fn next_step(option: &str, value: &str) -> String {
        let command = ["farhaul", "bench", "--connect", "h:1", option, value];
        fault(&Cli::command().try_get_matches_from(command).unwrap_err(), Some("bench")).message
    }

    #[test]
    fn a_number_out_of_its_range_is_told_the_range_in_words() {
        for (verb, option, value, words) in [
            ("serve", "--max-sessions", "0", "'--max-sessions <N>': it must be at least 1;"),
            ("profile", "--repeat", "0", ": it must be from 1 to 1000;"),
        ] {
            let error = Cli::command().try_get_matches_from(["farhaul", verb, option, value]).unwrap_err();
            let message = fault(&error, Some(verb)).message;
            assert!(message.contains(words), "{message}");
        }
    }

    #[test]
    fn the_options_of_other_programs_have_an_answer() {
        for (option, advice) in [
            ("-z", "nothing is compressed"),
            ("--compress", "zstd"),
            ("-l", "--rate"),
            ("-e", "--ssh"),
            ("--partial", "the same command"),
            ("--checksum", "--skip digest"),
        ] {
            let error = Cli::command().try_get_matches_from(["farhaul", "copy", option, "a", "h:b"]).unwrap_err();
            let message = fault(&error, Some("copy")).message;
            assert!(message.contains(option.split('=').next().unwrap()) && message.contains(advice), "{message}");
        }
    }

    #[test]
    fn a_wrong_value_with_options_of_its_own_leads_to_the_list_of_them() {
        for (option, value, list) in [
            ("--protocol", "huricane", "`farhaul protocols`"),
            ("--protocol", "rbudp:rate=fast", "`farhaul protocols`"),
            ("--controller", "udt:nosuch=1", "`farhaul controllers`"),
            ("--rate", "5", "`farhaul bench --help-all`"),
            ("--protocoll", "udt", "`farhaul bench --help-all`"),
        ] {
            let message = next_step(option, value);
            assert!(message.contains(list), "{message}");
        }
    }
}
