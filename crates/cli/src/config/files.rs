//! Where the files lie, after the XDG Base Directory Specification 0.8.

use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use toml::Table;

use crate::exit::Fault;

/// Below each folder.
const NAME: &str = "farhaul/config.toml";
/// Where the system's folders are unless `XDG_CONFIG_DIRS` says otherwise.
const SYSTEM: &str = "/etc/xdg";

/// One file that was there.
#[derive(Debug)]
pub(super) struct File {
    pub(super) path: PathBuf,
    pub(super) table: Table,
}

/// All that are there, the weakest first: the system's in the reverse of their order, then the user's.
pub(super) fn read_all() -> Result<Vec<File>, Fault> {
    let variable = |name| std::env::var_os(name).filter(|value: &OsString| !value.is_empty());
    let system = variable("XDG_CONFIG_DIRS").unwrap_or_else(|| SYSTEM.into());
    let mut folders: Vec<PathBuf> = std::env::split_paths(&system).collect();
    folders.reverse();
    let home = || variable("HOME").map(|home| Path::new(&home).join(".config"));
    folders.extend(variable("XDG_CONFIG_HOME").map(PathBuf::from).or_else(home));
    // "If an implementation encounters a relative path …, it should consider the path invalid and ignore it."
    let paths = folders.into_iter().filter(|folder| folder.is_absolute()).map(|folder| folder.join(NAME));
    paths.filter_map(|path| read(path).transpose()).collect()
}

/// Where it is wrong, and why.
fn in_a_line(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    let why = error.message().split_whitespace().collect::<Vec<_>>().join(" ");
    format!("line {}: {why}", before.matches('\n').count() + 1)
}

fn read(path: PathBuf) -> Result<Option<File>, Fault> {
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
        Err(error) => return Err(Fault::usage(format!("cannot read the settings in {}: {error}", path.display()))),
    };
    match text.parse() {
        Ok(table) => Ok(Some(File { path, table })),
        Err(error) => Err(Fault::usage(format!("{} is no TOML: {}", path.display(), in_a_line(&text, &error)))),
    }
}
