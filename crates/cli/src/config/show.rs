//! `--show-config`: the effective settings and their sources.

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};

use super::{Defaults, OF_THE_MOMENT};

/// Column of the origins.
const WIDTH: usize = 36;

/// The options of `verb` as lines of TOML, each with its source.
pub(crate) fn show(command: &Command, verb: &str, matches: &ArgMatches, defaults: &Defaults) -> String {
    let Some(verb) = command.find_subcommand(verb) else { return String::new() };
    let shown = |arg: &&Arg| arg.get_long().is_some_and(|long| !OF_THE_MOMENT.contains(&long) || long == "listen");
    verb.get_arguments().filter(shown).map(|arg| line(arg, matches, defaults) + "\n").collect()
}

fn line(arg: &Arg, matches: &ArgMatches, defaults: &Defaults) -> String {
    let (id, long) = (arg.get_id().as_str(), arg.get_long().unwrap_or_default());
    let values: Vec<_> =
        matches.get_raw(id).into_iter().flatten().map(|value| value.to_string_lossy().into_owned()).collect();
    if values.is_empty() {
        return format!("# {long} is not set");
    }
    let variable = arg.get_env().map_or("the environment".into(), |name| name.to_string_lossy());
    let origin = match matches.value_source(id) {
        Some(ValueSource::CommandLine) => format!("--{long}"),
        Some(ValueSource::EnvVariable) => variable.into_owned(),
        _ => defaults.get(long).map_or_else(|| "default".to_owned(), |given| given.origin.clone()),
    };
    let between = arg.get_value_delimiter().unwrap_or(' ').to_string();
    let setting = format!("{long} = {}", quoted(&values.join(&between)));
    format!("{setting:WIDTH$} # {origin}")
}

/// The value in TOML.
fn quoted(value: &str) -> String {
    let bare = matches!(value, "true" | "false") || value.parse::<i64>().is_ok();
    if bare { value.to_owned() } else { toml::Value::String(value.to_owned()).to_string() }
}
