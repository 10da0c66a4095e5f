//! Places of the user's files, by the XDG Base Directory Specification 0.8.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Variable with the user's folder.
const OF_USER: &str = "XDG_CONFIG_HOME";

/// The folder of this user for settings of all programs.
pub fn folder_of_user() -> Option<PathBuf> {
    let home = || variable("HOME").map(|home| Path::new(&home).join(".config"));
    variable(OF_USER).map(PathBuf::from).or_else(home)
}

/// The file of the user's key.
pub fn key_file() -> Option<PathBuf> {
    in_folder_of_user("farhaul/key")
}

/// The file of the keys of servers.
pub fn known_hosts_file() -> Option<PathBuf> {
    in_folder_of_user("farhaul/known_hosts")
}

/// The file of the keys of clients.
pub fn authorized_keys_file() -> Option<PathBuf> {
    in_folder_of_user("farhaul/authorized_keys")
}

/// A variable that is set to something.
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

fn in_folder_of_user(name: &str) -> Option<PathBuf> {
    // A relative path is invalid there, and ignored.
    folder_of_user().filter(|folder| folder.is_absolute()).map(|folder| folder.join(name))
}
