//! Settings files: TOML below the XDG folders. Their values are defaults of the options.
//!
//! Precedence, highest first: flag, environment, the user's file, the system's file, built-in default. In a file:
//! `[host."NAME"]`, `[VERB]`, keys above all sections. Keys are the long names of options. Unknown keys are refused, since
//! a misspelt setting would have no effect.

mod files;
mod show;

use std::collections::BTreeMap;
use std::path::Path;

use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command};
use farhaul::Protocol;
use toml::{Table, Value};

use crate::exit::Fault;
use crate::options::Transport;
use crate::values::SshPlace;
use files::File;
pub(crate) use files::{files_to_look_for, section_of_own};
pub(crate) use show::show;

/// The verbs that have settings worth keeping.
const VERBS: &[&str] = &[
    "copy", "serve", "rsh", "ls", "cat", "rm", "mv", "mkdir", "pipe", "bench", "profile", "stream", "relay", "emulate",
];
/// The verbs that open connections. Keys above all sections apply to them.
const CONNECTING: &[&str] =
    &["copy", "serve", "rsh", "ls", "cat", "rm", "mv", "mkdir", "pipe", "bench", "profile", "stream"];
/// Keys of connections that mean something else in a verb: the rate of a stream is its target, and no cap.
const OTHER_MEANING: &[(&str, &str)] = &[("stream", "rate")];
/// Options of a single run, which no file may set. Dangers are among them. The exception is `listen` of a server.
const OF_THE_MOMENT: &[&str] = &[
    "listen",
    "connect",
    "to",
    "config",
    "help",
    "help-all",
    "version",
    "show-config",
    "unsafe-keylog",
    "expose-private-keys",
];
/// A name that is more similar than this to a key may be meant: clap's own limit for options.
const SIMILAR: f64 = 0.7;
/// Name of the table of hosts.
const HOSTS: &str = "host";

/// The settings of all files.
#[derive(Debug, Default)]
pub(crate) struct Config {
    /// Lowest precedence first.
    files: Vec<File>,
}

/// A value from a file, and its place there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Given {
    value: String,
    origin: String,
}

impl Given {
    /// The file and the section.
    pub(crate) fn origin(&self) -> &str {
        &self.origin
    }
}

/// Values by the long names of options.
pub(crate) type Defaults = BTreeMap<String, Given>;

impl Config {
    /// Reads the files, if `verb` has settings at all. The keys of `own`, a file of this verb alone, have no section. It takes
    /// the place of the user's and the system's files.
    pub(crate) fn load(verb: Option<&str>, own: Option<&Path>, command: &Command) -> Result<Self, Fault> {
        let Some(verb) = verb.filter(|verb| VERBS.contains(verb)) else { return Ok(Self::default()) };
        let files = match own {
            Some(path) => vec![files::read_own(path, verb)?],
            None => files::read_all()?,
        };
        let config = Self { files };
        config.files.iter().try_for_each(|file| check(file, command))?;
        Ok(config)
    }

    /// Reads and checks all files. Returns the paths of those that exist.
    pub(crate) fn examine(command: &Command) -> Result<Vec<String>, Fault> {
        let files = files::read_all()?;
        files.iter().try_for_each(|file| check(file, command))?;
        Ok(files.iter().map(|file| file.path.display().to_string()).collect())
    }

    /// The settings for `verb` and its connections to `hosts`, each a `host:port` or a `host`.
    pub(crate) fn defaults(&self, verb: &str, hosts: &[String]) -> Defaults {
        let mut defaults = Defaults::new();
        for file in &self.files {
            let path = file.path.display();
            let mut take = |table: &Table, origin: &str| {
                for (key, value) in table {
                    if let Some(value) = plain(value) {
                        defaults.insert(key.clone(), Given { value, origin: origin.to_owned() });
                    }
                }
            };
            let connects = CONNECTING.contains(&verb);
            if connects {
                take(&of_connections(&file.table, verb), &path.to_string());
            }
            if let Some(Value::Table(table)) = file.table.get(verb) {
                take(table, &file.section(verb));
            }
            for (name, table) in of_hosts(&file.table) {
                if connects && hosts.iter().any(|host| is_named(host, name)) {
                    take(&of_connections(table, verb), &format!("{path} [host.\"{name}\"]"));
                }
            }
        }
        defaults
    }
}

/// The lasting value of an option of connections: that of its environment variable, or that of a file. Files that cannot be
/// read have none.
pub(crate) fn lasting(option: &str, variable: &str, command: &Command) -> Option<String> {
    let of_environment = std::env::var(variable).ok().filter(|value| !value.is_empty());
    let of_files = || {
        Some(Config::load(Some(CONNECTING[0]), None, command).ok()?.defaults(CONNECTING[0], &[]).remove(option)?.value)
    };
    of_environment.or_else(of_files)
}

/// Adds the default controller of the chosen protocol, unless a file has another. `options` are those of the verb, with
/// values that nobody has judged.
pub(crate) fn add_controller(defaults: &mut Defaults, options: &ArgMatches) {
    if options.try_contains_id("protocol").is_err() || defaults.contains_key("controller") {
        return;
    }
    let is_default = options.value_source("protocol") == Some(ValueSource::DefaultValue);
    let raw = options.get_raw("protocol").and_then(Iterator::last).map(|value| value.to_string_lossy().into_owned());
    let of_file = defaults.get("protocol").filter(|_| is_default).map(|given| given.value.clone());
    let protocol = of_file.or(raw).and_then(|text| text.parse::<Protocol>().ok());
    if let Some(controller) = protocol.and_then(|protocol| protocol.controller()) {
        let given = Given { value: controller.to_string(), origin: "default".to_owned() };
        defaults.insert("controller".to_owned(), given);
    }
}

/// The command, with `defaults` as defaults of `verb`.
pub(crate) fn with_defaults(command: Command, verb: &str, defaults: &Defaults) -> Command {
    command.mut_subcommand(verb, |command| {
        let ids: Vec<_> = command
            .get_arguments()
            .filter_map(|arg| Some((arg.get_id().clone(), defaults.get(arg.get_long()?)?.value.clone())))
            .collect();
        ids.into_iter().fold(command, |command, (id, value)| {
            // Clap keeps defaults for the life of the program.
            let value: &'static str = Box::leak(value.into_boxed_str());
            command.mut_arg(id, |arg| arg.required(false).default_value(value))
        })
    })
}

/// The hosts that a command line connects to, each as `host:port`, or as `host` over SSH.
pub(crate) fn hosts(matches: &ArgMatches) -> Vec<String> {
    let typed = |id: &str| -> Vec<String> {
        let given = matches.try_contains_id(id).is_ok() && matches.value_source(id) == Some(ValueSource::CommandLine);
        let values = given.then(|| matches.get_raw(id)).flatten().into_iter().flatten();
        values.map(|value| value.to_string_lossy().into_owned()).collect()
    };
    let of_rsh = typed("host").into_iter().flat_map(|host| of_host(&host));
    typed("connect").into_iter().chain(of_rsh).chain(typed("places").iter().flat_map(|place| of_place(place))).collect()
}

/// The host of a place, as sections may name it. Over SSH, that is with and without the user.
fn of_place(place: &str) -> Vec<String> {
    if let Some((_, rest)) = place.split_once("://") {
        return vec![rest.split('/').next().unwrap_or(rest).to_owned()];
    }
    let Some(Ok(SshPlace { host, .. })) = SshPlace::read(place.as_bytes()) else { return Vec::new() };
    of_host(&host)
}

/// A host that ssh reaches, with and without the user.
fn of_host(host: &str) -> Vec<String> {
    let name = host.rsplit_once('@').map(|(_, name)| name.to_owned());
    name.into_iter().chain([host.to_owned()]).collect()
}

/// Whether `name` is `host`, with or without the port of `host`.
fn is_named(host: &str, name: &str) -> bool {
    let without_port = host.rsplit_once(':').map_or(host, |(name, _)| name);
    name == host
        || name == without_port
        || Some(name) == without_port.strip_prefix('[').and_then(|h| h.strip_suffix(']'))
}

/// The settings of connections that `verb` has, too.
fn of_connections(table: &Table, verb: &str) -> Table {
    let own = |key: &str| OTHER_MEANING.contains(&(verb, key));
    table.iter().filter(|(key, _)| !own(key)).map(|(key, value)| (key.clone(), value.clone())).collect()
}

fn of_hosts(table: &Table) -> impl Iterator<Item = (&str, &Table)> {
    let hosts = table.get(HOSTS).and_then(Value::as_table).into_iter().flatten();
    hosts.filter_map(|(name, value)| Some((name.as_str(), value.as_table()?)))
}

/// A value in the form of the command line.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Integer(number) => Some(number.to_string()),
        Value::Float(number) => Some(number.to_string()),
        Value::Boolean(flag) => Some(flag.to_string()),
        _ => None,
    }
}

/// Refuses keys and sections of `file` that no option has.
fn check(file: &File, command: &Command) -> Result<(), Fault> {
    let connection = Transport::augment_args(Command::new("connection"));
    let path = file.path.display();
    let section = |place: &str, named: &str, table: &Table, options: &Command| {
        table.iter().try_for_each(|(key, value)| {
            let refused = |why: &str| Fault::usage(format!("{place}{}: '{key}' {why}", file.line_of(named, key)));
            settable(options, key).map_err(|why| refused(&why))?;
            plain(value).map(drop).ok_or_else(|| refused("must be a text in quotes, a number, true or false"))
        })
    };
    let (sections, settings): (Table, Table) = file.table.clone().into_iter().partition(|(_, value)| value.is_table());
    section(&path.to_string(), "", &settings, &connection)?;
    for (name, value) in &sections {
        let Value::Table(table) = value else { continue };
        match command.find_subcommand(name).filter(|_| VERBS.contains(&name.as_str())) {
            Some(verb) => section(&file.section(name), if file.is_of_verb { "" } else { name }, table, verb)?,
            None if name == HOSTS => {
                for (host, value) in table {
                    let at = format!("{path} [host.\"{host}\"]");
                    let wanted = || Fault::usage(format!("{path}: 'host.{host}' must be a section: [host.\"{host}\"]"));
                    section(&at, &format!("{HOSTS}.{host}"), value.as_table().ok_or_else(wanted)?, &connection)?;
                }
            }
            None => {
                let all = VERBS.join("], [");
                return Err(Fault::usage(format!(
                    "{path}: there is no section [{name}]: there are [{all}] and [host.\"NAME\"]"
                )));
            }
        }
    }
    Ok(())
}

/// Whether a file may set `key`, or the reason why not.
fn settable(options: &Command, key: &str) -> Result<(), String> {
    let Some(arg) = options.get_arguments().find(|arg| arg.get_long() == Some(key)) else {
        let names = options.get_arguments().filter_map(|arg| arg.get_long());
        let similar = |name: &&str| strsim::jaro_winkler(name, key);
        let nearest = names.max_by(|one, other| similar(one).total_cmp(&similar(other)));
        return Err(match nearest.filter(|name| similar(name) > SIMILAR) {
            Some(name) => format!("is no option here; a similar one is '{name}'"),
            None => "is no option here; `farhaul VERB --help-all` lists them, here without the dashes".to_owned(),
        });
    };
    let serves = options.get_name() == "serve" && key == "listen";
    if OF_THE_MOMENT.contains(&key) && !serves {
        return Err("says what to do now, and cannot be set in a file".to_owned());
    }
    if options.get_arg_conflicts_with(arg).is_empty() {
        Ok(())
    } else {
        Err("excludes another option, and cannot be set in a file".to_owned())
    }
}

#[cfg(test)]
mod tests;
