//! The file that takes the secrets of connections.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use farhaul::security::SecretLog;
use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::error::{Code, Error};

/// Permissions of the file: its owner's alone.
const PRIVATE: u32 = 0o600;
/// Bits that nobody else may have on it.
const OTHERS: u32 = 0o077;

/// A file that takes secrets, one a line.
#[derive(Debug)]
pub(super) struct KeyLogFile(File);

impl KeyLogFile {
    /// Opens the file, or makes it. An old one keeps its lines.
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let refused = |why: &dyn std::fmt::Display| {
            Error::new(Code::LocalIo, format!("cannot write secrets to {}: {why}", path.display()))
        };
        let mut options = OpenOptions::new();
        let file = options
            .append(true)
            .create(true)
            .mode(PRIVATE)
            .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
            .open(path);
        let file = file.map_err(|error| match error.raw_os_error() {
            Some(error) if error == Errno::LOOP.raw_os_error() => refused(&"it is a symbolic link; name another file"),
            _ => refused(&error),
        })?;
        let metadata = file.metadata().map_err(|error| refused(&error))?;
        if metadata.is_file() && metadata.mode() & OTHERS != 0 {
            return Err(refused(&"others may open it; `chmod 600` it, or name a new file"));
        }
        Ok(Self(file))
    }
}

impl SecretLog for KeyLogFile {
    fn secret(&self, line: &str) {
        // One call, so that lines of several connections do not mix. A full disk costs the log alone.
        let written: io::Result<()> = (&self.0).write_all(format!("{line}\n").as_bytes());
        drop(written);
    }
}
