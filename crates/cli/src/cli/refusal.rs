//! Errors of the command line in one line: the problem and the next step.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{ArgMatches, Error};

use crate::cmd::doctor::Examinee;
use crate::exit::Fault;
use crate::options::ProtocolChoice;
use crate::values::Location;

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
        Some(verb) => format!("`farhaul {verb} --help` explains the options"),
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

/// Refuses `--controller` and `--background` with a protocol whose own rules govern the rate.
///
/// In the environment and in files it may be meant for other protocols, so it is accepted there.
pub(crate) fn of_the_protocol(matches: &ArgMatches) -> Result<(), Fault> {
    let Some((_, options)) = matches.subcommand() else { return Ok(()) };
    let choice = options.try_get_one::<ProtocolChoice>("protocol").ok().flatten();
    match choice.map(|choice| choice.protocol.entry()) {
        Some(entry) if entry.controller.is_none() => {
            let of_controllers = [("controller", "--controller"), ("background", "--background")];
            match of_controllers.iter().find(|(id, _)| is_typed(options, id)) {
                Some((_, option)) => Err(Fault::usage(format!(
                    "{option} does not go with the protocol '{}', whose own rules govern the rate",
                    entry.name
                ))),
                None => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

/// Refuses options on a receiver that are settings of the sender: `--controller`, and `--rate` where the sender does not ask the
/// receiver for its cap.
///
/// In the environment and in files they apply to whatever this side sends, so they are accepted there.
pub(crate) fn of_the_other_side(matches: &ArgMatches) -> Result<(), Fault> {
    let Some((verb, options)) = matches.subcommand() else { return Ok(()) };
    let of_the_sender: &[&str] = match verb {
        "bench" if options.get_flag("reverse") => &["rate", "controller"],
        // An original sender has no ear for a cap.
        "pipe" if is_typed(options, "connect") && is_original(options) => &["rate"],
        "copy" => {
            let first = options.get_raw("places").and_then(|mut places| places.next());
            match first.and_then(|place| place.to_string_lossy().split_once("://").map(|(scheme, _)| scheme.to_owned()))
            {
                Some(scheme) if scheme == "udt" => &["controller"],
                // A Tsunami client names the rate to its server.
                Some(scheme) if scheme != "tsunami" => &["rate", "controller"],
                _ => &[],
            }
        }
        _ => &[],
    };
    match of_the_sender.iter().find(|id| is_typed(options, id)) {
        None => Ok(()),
        Some(option) => Err(Fault::usage(format!(
            "--{option} is a setting of the sender, which is the other side here: give it to `farhaul {}` there",
            match verb {
                "bench" => "bench --listen",
                "pipe" => "pipe --listen",
                _ => "serve",
            }
        ))),
    }
}

/// Options of `copy` for keys of its own, and for ssh: the names in the program, and on the command line.
const OWN_KEYS: [(&str, &str); 3] =
    [("key", "--key"), ("host_key", "--host-key"), ("host_key_policy", "--host-key-policy")];
const OF_SSH: [(&str, &str); 7] = [
    ("ssh", "--ssh"),
    ("port", "-P"),
    ("identity", "-i"),
    ("jump", "-J"),
    ("option", "-o"),
    ("remote_path", "--remote-path"),
    ("port_range", "--port-range"),
];
const OF_SSH_COPIES: [(&str, &str); 3] =
    [("install", "--install"), ("no_fallback", "--no-fallback"), ("detach", "--detach")];

/// Options of connections that `rsh` has not: it prints nothing but what the command does, and ssh identifies both sides.
const NOT_OF_RSH: [(&str, &str); 3] = [("json", "--json"), ("trace", "--trace"), ("key", "--key")];

/// Refuses options of keys with a copy over SSH, and options of ssh with any other copy: they would have no effect.
///
/// In the environment and in files they may be meant for other copies, so they are accepted there.
pub(crate) fn of_the_way(matches: &ArgMatches) -> Result<(), Fault> {
    let Some((verb, options)) = matches.subcommand() else { return Ok(()) };
    let typed = |all: &[(&str, &'static str)]| all.iter().find(|(id, _)| is_typed(options, id)).map(|(_, name)| *name);
    let of_ssh = match verb {
        "doctor" if options.get_one("host").is_none_or(|host| !matches!(host, Examinee::OverSsh { .. })) => {
            typed(&OF_SSH)
                .map(|option| format!("{option} is for `farhaul doctor HOST:`, with nothing behind the colon"))
        }
        "rsh" => typed(&NOT_OF_RSH).map(|option| format!("{option} has no effect in a command over SSH")),
        "copy" => {
            let mut places = options.get_many::<Location>("places").into_iter().flatten();
            if places.any(|place| matches!(place, Location::Ssh(_))) {
                typed(&OWN_KEYS).map(|option| {
                    format!(
                        "{option} is for copies with a server: over SSH, ssh identifies both sides, and the copy makes keys of \
                         its own; -i FILE names a key for ssh"
                    )
                })
            } else {
                let option = typed(&OF_SSH).or_else(|| typed(&OF_SSH_COPIES));
                option
                    .map(|option| format!("{option} is for copies over SSH: write the remote end as [user@]host:path"))
            }
        }
        _ => None,
    };
    of_ssh.map_or(Ok(()), |message| Err(Fault::usage(message)))
}

/// Whether the protocol talks to an original program, which sends or receives alone.
fn is_original(options: &ArgMatches) -> bool {
    let choice = options.try_get_one::<ProtocolChoice>("protocol").ok().flatten();
    choice.is_some_and(|choice| choice.protocol.entry().name == "sabul")
}

fn is_typed(options: &ArgMatches, id: &str) -> bool {
    options.value_source(id) == Some(ValueSource::CommandLine)
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
            ("--rate", "5", "`farhaul bench --help`"),
            ("--protocoll", "udt", "`farhaul bench --help`"),
        ] {
            let message = next_step(option, value);
            assert!(message.contains(list), "{message}");
        }
    }
}
