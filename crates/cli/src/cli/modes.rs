//! Options that a mode of a verb cannot keep. They are refused where they are typed: a cap, a check or a list of keys
//! without effect is worse than none.
//!
//! In the environment and in files they may be meant for other runs, so they are accepted there.

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};

use crate::cmd::doctor::Examinee;
use crate::exit::Fault;
use crate::options::ProtocolChoice;
use crate::values::{Location, Scheme};

/// A mode of some verbs, which other options or places select.
struct Mode {
    verbs: &'static [&'static str],
    is: fn(&ArgMatches) -> bool,
    options: Options,
    /// Why, and what to do instead. It follows the option.
    why: &'static str,
}

/// Identifiers of options.
enum Options {
    Lost(&'static [&'static str]),
    /// Those that similar modes keep, and those of this one. All others are lost, those that are added later as well.
    Kept(&'static [&'static str], &'static [&'static str]),
}
use Options::{Kept, Lost};

const LISTENING: &[&str] = &["serve", "bench", "pipe"];
const KEYS: &[&str] = &["key", "host_key", "host_key_policy"];

/// What copies from original programs keep.
const ORIGINAL_COPY: &[&str] =
    &["places", "list", "quiet", "interval", "json", "plain", "protocol", "background", "timeout", "connect_timeout"];
/// What streams of original programs keep.
const ORIGINAL_STREAM: &[&str] = &["json", "plain", "protocol", "buffer", "timeout"];

const MODES: &[Mode] = &[
    Mode {
        verbs: &["copy"],
        is: |options| has_original(options, Scheme::Tsunami),
        options: Kept(ORIGINAL_COPY, &["rate", "mtu"]),
        why: "has no effect on a copy from an original Tsunami server, which only gives its files",
    },
    Mode {
        verbs: &["copy"],
        is: |options| has_original(options, Scheme::Rbudp),
        options: Kept(ORIGINAL_COPY, &["buffer"]),
        why: "has no effect on a copy from an original RBUDP sender, which only gives its file, at its own rate",
    },
    // An original sender has no ear for a cap.
    Mode {
        verbs: &["pipe"],
        is: |options| speaks(options, "sabul") && is_typed(options, "connect"),
        options: Kept(ORIGINAL_STREAM, &["connect", "connect_timeout"]),
        why: "has no effect on a stream from a SABUL sender: its law and its rate are settings of the sender, the other side",
    },
    Mode {
        verbs: &["pipe"],
        is: |options| speaks(options, "sabul") && is_typed(options, "listen"),
        options: Kept(ORIGINAL_STREAM, &["listen", "rate"]),
        why: "has no effect on a stream to a SABUL receiver, whose rules govern it",
    },
    Mode {
        verbs: &["serve", "pipe", "bench", "copy", "ls", "cat", "rm", "mv", "mkdir"],
        is: |options| options.get_flag("plain"),
        options: Lost(&["key", "cipher", "host_key", "host_key_policy", "authorized_keys", "any_client"]),
        why: "has no effect with --plain, which neither encrypts nor knows anybody by a key: leave out one of them",
    },
    Mode {
        verbs: LISTENING,
        is: |options| is_typed(options, "connect") && !has_flag(options, "rendezvous"),
        options: Lost(&["authorized_keys", "any_client"]),
        why: "is for the side that listens: --host-key names the key of the one that it connects to",
    },
    Mode {
        verbs: LISTENING,
        is: |options| is_typed(options, "listen") && !is_typed(options, "connect"),
        options: Lost(&["host_key", "host_key_policy", "connect_timeout"]),
        why: "is for the side that connects",
    },
    Mode {
        verbs: &["bench"],
        is: |options| options.get_flag("reverse"),
        options: Lost(&["rate", "controller"]),
        why: "is a setting of the sender, which is the other side here: give it to `farhaul bench --listen` there",
    },
    // Only the sender of a copy has a law. It may ask a receiver of Farhaul for its cap, and no original one.
    Mode {
        verbs: &["copy"],
        is: |options| scheme(options).as_deref() == Some("udt"),
        options: Lost(&["controller"]),
        why: "is a setting of the sender, which is the other side here: give it to `farhaul serve` there",
    },
    Mode {
        verbs: &["copy", "serve", "pipe", "bench", "ls", "cat", "rm", "mv", "mkdir"],
        is: |options| choice(options).is_some_and(|choice| choice.protocol.entry().controller.is_none()),
        options: Lost(&["controller", "background"]),
        why: "does not go with the protocol '{protocol}', whose own rules govern the rate",
    },
    Mode {
        verbs: &["doctor"],
        is: |options| options.get_one("host").is_none_or(|host| !matches!(host, Examinee::OverSsh { .. })),
        options: Lost(OF_SSH),
        why: "is for `farhaul doctor HOST:`, with nothing behind the colon",
    },
    // It prints nothing but what the command does, and ssh identifies both sides.
    Mode {
        verbs: &["rsh"],
        is: |_| true,
        options: Lost(&["json", "trace", "key"]),
        why: "has no effect in a command over SSH",
    },
    Mode {
        verbs: &["copy"],
        is: |options| is_over_ssh(options),
        options: Lost(KEYS),
        why: "is for copies with a server: over SSH, ssh identifies both sides, and the copy makes keys of its own; -i FILE \
              names a key for ssh",
    },
    Mode {
        verbs: &["copy"],
        is: |options| !is_over_ssh(options),
        options: Lost(OF_COPIES_OVER_SSH),
        why: "is for copies over SSH: write the remote end as [user@]host:path",
    },
];

const OF_SSH: &[&str] = &["ssh", "port", "identity", "jump", "option", "remote_path", "port_range"];
const OF_COPIES_OVER_SSH: &[&str] =
    &["ssh", "port", "identity", "jump", "option", "remote_path", "port_range", "install", "no_fallback", "detach"];

/// Refuses the first option of the command line that would have no effect. `command` is the program's.
pub(crate) fn check(matches: &ArgMatches, command: &Command) -> Result<(), Fault> {
    let Some((verb, options)) = matches.subcommand() else { return Ok(()) };
    let typed = || {
        let all = command.find_subcommand(verb).into_iter().flat_map(Command::get_arguments);
        all.filter(|arg| is_typed(options, arg.get_id().as_str()))
    };
    for mode in MODES.iter().filter(|mode| mode.verbs.contains(&verb) && (mode.is)(options)) {
        if let Some(option) = typed().find(|arg| mode.options.lose(arg.get_id().as_str())) {
            let protocol = choice(options).map_or("", |choice| choice.protocol.entry().name);
            return Err(Fault::usage(format!("{} {}", name(option), mode.why.replace("{protocol}", protocol))));
        }
    }
    Ok(())
}

impl Options {
    fn lose(&self, id: &str) -> bool {
        match self {
            Lost(lost) => lost.contains(&id),
            Kept(shared, own) => !shared.contains(&id) && !own.contains(&id),
        }
    }
}

/// An option on the command line.
fn name(option: &Arg) -> String {
    let short = || option.get_short().map(|letter| format!("-{letter}"));
    option.get_long().map(|long| format!("--{long}")).or_else(short).unwrap_or_default()
}

fn choice(options: &ArgMatches) -> Option<&ProtocolChoice> {
    options.try_get_one("protocol").ok().flatten()
}

fn speaks(options: &ArgMatches, protocol: &str) -> bool {
    choice(options).is_some_and(|choice| choice.protocol.entry().name == protocol)
}

fn places(options: &ArgMatches) -> impl Iterator<Item = &Location> {
    options.try_get_many("places").ok().flatten().into_iter().flatten()
}

fn has_original(options: &ArgMatches, scheme: Scheme) -> bool {
    places(options).any(|place| matches!(place, Location::Original(place) if place.scheme == scheme))
}

fn is_over_ssh(options: &ArgMatches) -> bool {
    places(options).any(|place| matches!(place, Location::Ssh(_)))
}

/// The scheme of the source of a copy.
fn scheme(options: &ArgMatches) -> Option<String> {
    let first = options.get_raw("places").and_then(|mut places| places.next())?;
    first.to_string_lossy().split_once("://").map(|(scheme, _)| scheme.to_owned())
}

fn has_flag(options: &ArgMatches, id: &str) -> bool {
    matches!(options.try_get_one::<bool>(id), Ok(Some(true)))
}

fn is_typed(options: &ArgMatches, id: &str) -> bool {
    options.try_contains_id(id).is_ok() && options.value_source(id) == Some(ValueSource::CommandLine)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    fn refusal(command: &str) -> Option<String> {
        let matches =
            Cli::command().try_get_matches_from(command.split(' ')).map_err(|error| error.to_string()).unwrap();
        check(&matches, &Cli::command()).err().map(|fault| fault.message)
    }

    #[test]
    fn every_option_of_the_table_is_one_of_its_verb() {
        let command = Cli::command();
        for mode in MODES {
            let (ids, more) = match mode.options {
                Lost(ids) => (ids, &[][..]),
                Kept(shared, own) => (shared, own),
            };
            for id in ids.iter().chain(more) {
                let has = |verb: &&str| {
                    let verb = command.find_subcommand(verb).unwrap();
                    verb.get_arguments().any(|arg| arg.get_id() == *id)
                };
                assert!(mode.verbs.iter().any(has), "{id}");
            }
        }
    }

    #[test]
    fn an_option_that_a_mode_cannot_keep_is_refused_by_its_name() {
        let original = "farhaul copy --plain tsunami://h/x to";
        for (command, option) in [
            // It would not be a dry run.
            (format!("{original} -n"), "--dry-run"),
            (format!("{original} --skip digest"), "--skip"),
            (format!("{original} --flows 2"), "--flows"),
            ("farhaul copy --plain rbudp://h/x to --mtu 1400".into(), "--mtu"),
            ("farhaul copy --plain rbudp://h/x to --rate 5mbit".into(), "--rate"),
            ("farhaul pipe --plain --protocol sabul --connect h:1 --rate 5mbit".into(), "--rate"),
            ("farhaul pipe --plain --protocol sabul --connect h:1 --wait".into(), "--wait"),
            ("farhaul pipe --plain --protocol sabul --listen :1 --flows 2".into(), "--flows"),
            ("farhaul pipe --plain --protocol sabul --listen :1 --connect h:1 --rendezvous".into(), "--listen"),
            // Everybody would be admitted.
            ("farhaul serve --plain --root . --authorized-keys f".into(), "--authorized-keys"),
            ("farhaul copy --plain a udt://h:1/b --cipher aes128".into(), "--cipher"),
            ("farhaul bench --connect h:1 --any-client".into(), "--any-client"),
            (
                "farhaul pipe --listen :1 --host-key SHA256:MayKhw+kXNjQnyxhJhhjq74QQnPZMEfYYpAX3Xh4H+A".into(),
                "--host-key",
            ),
            ("farhaul bench --protocol rbudp --plain --connect h:1 --background".into(), "--background"),
            ("farhaul copy a udt://h:1/b -J jump".into(), "-J"),
        ] {
            let refusal = refusal(&command).unwrap_or_else(|| panic!("accepted: {command}"));
            assert!(refusal.starts_with(&format!("{option} ")), "{command}: {refusal}");
        }
    }

    #[test]
    fn what_a_mode_keeps_is_accepted() {
        for command in [
            "farhaul copy --plain tsunami://h/x to --rate 5mbit --mtu 1400 --interval 1s --json",
            "farhaul copy --plain rbudp://h/x to --buffer 1MB --timeout 3s -q",
            // It gives way with its processor and its disk.
            "farhaul copy --plain --background tsunami://h/x to",
            "farhaul pipe --plain --protocol sabul --listen :1 --rate 5mbit --buffer 1MB",
            "farhaul pipe --plain --protocol sabul --connect h:1 --connect-timeout 3s",
            "farhaul pipe --rendezvous --listen :1 --connect h:1 --connect-timeout 3s",
            "farhaul serve --plain --protocol tsunami --root . --rate 5mbit --mtu 1400",
            "farhaul copy --rate 5mbit udt://h:1/a b",
        ] {
            assert_eq!(refusal(command), None, "{command}");
        }
    }
}
