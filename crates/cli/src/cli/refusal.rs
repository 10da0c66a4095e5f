//! A command line that cannot be read, as one line that says what is wrong and what to do next.

use clap::error::ErrorKind;
use clap::{ArgMatches, Error};

use crate::exit::Fault;

/// Whether help or the version was asked for, and nothing is wrong.
pub(crate) fn is_help(error: &Error) -> bool {
    !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
}

/// What is wrong, and where it is explained.
pub(crate) fn fault(error: &Error, verb: Option<&str>) -> Fault {
    let text = error.render().to_string();
    let mut paragraphs = text.split("\n\n").map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
    let what = paragraphs.next().unwrap_or_default();
    let what = what.strip_prefix("error: ").unwrap_or(&what);
    let what = what.replace("the following required arguments were not provided:", "missing:");
    let tips: String = paragraphs.filter_map(|text| text.strip_prefix("tip: ").map(|tip| format!("; {tip}"))).collect();
    let next = match verb {
        Some(verb) => format!("`farhaul {verb} --help` explains the options"),
        None => "`farhaul --help` lists the verbs".to_owned(),
    };
    Fault::usage(format!("{what}{tips}; {next}"))
}

/// What holds for the side that sends cannot be asked for where the other side is that one.
///
/// In the environment and in files such settings stand for everything that this side sends, and are no request.
pub(crate) fn of_the_other_side(matches: &ArgMatches) -> Result<(), Fault> {
    let Some((verb, options)) = matches.subcommand() else { return Ok(()) };
    let receives = match verb {
        "bench" => options.get_flag("reverse"),
        "copy" => {
            let first = options.get_raw("places").and_then(|mut places| places.next());
            first.is_some_and(|place| place.to_string_lossy().contains("://"))
        }
        _ => false,
    };
    if !receives {
        return Ok(());
    }
    let typed = |id: &&&str| options.value_source(id) == Some(clap::parser::ValueSource::CommandLine);
    match ["rate", "controller"].iter().find(typed) {
        None => Ok(()),
        Some(option) => Err(Fault::usage(format!(
            "--{option} holds for the side that sends, which is the other one here: give it to `farhaul {}` there",
            if verb == "bench" { "bench --listen" } else { "serve" }
        ))),
    }
}
