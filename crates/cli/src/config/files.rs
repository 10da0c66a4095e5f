//! Places of the settings files, by the XDG Base Directory Specification 0.8.

use std::ffi::OsString;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use farhaul_transfer::internal::keys::places::folder_of_user;
use farhaul_transfer::internal::keys::trusted_file::{self, Distrust};
use farhaul_transfer::internal::lists;
use toml::{Table, Value};

use crate::exit::{Code, Fault};
use crate::output::human;

/// Below each folder.
const NAME: &str = "farhaul/config.toml";
/// Variable with the user's folder.
const OF_USER: &str = "XDG_CONFIG_HOME";
/// Variable with the system's folders.
const OF_SYSTEM: &str = "XDG_CONFIG_DIRS";
/// Default of the system's folders.
const SYSTEM: &str = "/etc/xdg";

/// Sections that the file of one verb may have, by verb.
const OWN_SECTIONS: &[(&str, &str)] = &[("serve", "plain")];

/// An existing file.
#[derive(Debug)]
pub(super) struct File {
    pub(super) path: PathBuf,
    pub(super) text: String,
    pub(super) table: Table,
    /// The file of one verb: its keys have no section there.
    pub(super) is_of_verb: bool,
}

impl File {
    /// The file with its keys for `verb`, in messages.
    pub(super) fn section(&self, verb: &str) -> String {
        let section = if self.is_of_verb { String::new() } else { format!(" [{verb}]") };
        format!("{}{section}", self.path.display())
    }

    /// Where the key stands in this section, for messages: `, line 7`. Empty if it is written in another way, as in an inline table.
    pub(super) fn line_of(&self, section: &str, key: &str) -> String {
        let mut here = String::new();
        for (line, number) in self.text.lines().zip(1..) {
            let line = line.trim();
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
                here = unquoted(name);
            } else if here == section && line.split_once('=').is_some_and(|(name, _)| unquoted(name) == key) {
                return format!(", line {number}");
            }
        }
        String::new()
    }
}

/// The name of a key or a section without quotation marks.
fn unquoted(name: &str) -> String {
    name.chars().filter(|character| !matches!(character, '"' | '\'' | ' ' | '\t')).collect()
}

/// A place to look for a file, and the variable that changes it.
struct SettingsPlace {
    path: PathBuf,
    variable: &'static str,
}

/// A variable that is set to something.
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// All existing files, lowest precedence first: the system's in reverse order, then the user's.
pub(super) fn read_all() -> Result<Vec<File>, Fault> {
    places().into_iter().filter_map(|place| place.read().transpose()).collect()
}

/// The paths of all files, whether they exist or not.
pub(crate) fn files_to_look_for() -> Vec<String> {
    places().iter().map(|place| place.path.display().to_string()).collect()
}

fn places() -> Vec<SettingsPlace> {
    let system = variable(OF_SYSTEM).unwrap_or_else(|| SYSTEM.into());
    let mut folders: Vec<(PathBuf, &str)> = std::env::split_paths(&system).map(|folder| (folder, OF_SYSTEM)).collect();
    folders.reverse();
    folders.extend(folder_of_user().map(|folder| (folder, OF_USER)));
    // "If an implementation encounters a relative path …, it should consider the path invalid and ignore it."
    let absolute = folders.into_iter().filter(|(folder, _)| folder.is_absolute());
    absolute.map(|(folder, variable)| SettingsPlace { path: folder.join(NAME), variable }).collect()
}

/// The file of one verb. Its keys become the section of the verb. The verb reads its own sections itself.
pub(super) fn read_own(path: &Path, verb: &str) -> Result<File, Fault> {
    let File { path, text, mut table, .. } = read_named(path)?;
    for (_, section) in OWN_SECTIONS.iter().filter(|(of, _)| *of == verb) {
        if table.get(*section).is_some_and(Value::is_table) {
            table.remove(*section);
        }
    }
    Ok(File { path, text, table: Table::from_iter([(verb.to_owned(), table.into())]), is_of_verb: true })
}

/// A section of the file of one verb, which has more than options. `None` if the file lacks it, or has an option of this name.
pub(crate) fn section_of_own(path: &Path, name: &str) -> Result<Option<Table>, Fault> {
    let mut table = read_named(path)?.table;
    Ok(match table.remove(name) {
        Some(Value::Table(section)) => Some(section),
        _ => None,
    })
}

fn read_named(path: &Path) -> Result<File, Fault> {
    let file = SettingsPlace { path: path.to_owned(), variable: "--config" }.read()?;
    file.ok_or_else(|| Fault::new(Code::LocalIo, format!("there is no file {}", path.display())))
}

impl SettingsPlace {
    fn read(self) -> Result<Option<File>, Fault> {
        let mut text = Vec::new();
        match trusted_file::open(&self.path, "has settings for this program") {
            Ok(None) => return Ok(None),
            Ok(Some(mut file)) => file.read_to_end(&mut text).map_err(|error| self.unreadable(&error))?,
            Err(Distrust::System(error)) => return Err(self.unreadable(&error)),
            Err(Distrust::Others(why)) => return Err(Fault::new(Code::NotPermitted, why)),
        };
        let no_toml = |why: &str| Fault::usage(format!("{} is no TOML: {why}", self.path.display()));
        let text = lists::utf8(&text).map_err(|error| no_toml(&error.to_string()))?;
        let table = text.parse().map_err(|error| no_toml(&in_a_line(text, &error)))?;
        Ok(Some(File { path: self.path, text: text.to_owned(), table, is_of_verb: false }))
    }

    /// An unreadable file is an error, since its settings may forbid something, such as writing to a server.
    fn unreadable(&self, error: &io::Error) -> Fault {
        let message = format!(
            "cannot read the settings in {}: {}; let this user read them, or leave them out with {}=/dev/null",
            self.path.display(),
            human::reason(error),
            self.variable
        );
        Fault::new(Code::LocalIo, message)
    }
}

/// Line and reason of the error.
fn in_a_line(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    let why = error.message().split_whitespace().collect::<Vec<_>>().join(" ");
    format!("line {}: {why}", before.matches('\n').count() + 1)
}
