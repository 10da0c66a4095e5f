//! The keys of servers by the names under which they were called: one line each, `NAME ssh-ed25519 AAAA…`.

use std::fmt;

use crate::public_key::{PublicKey, PublicKeyError};

/// The content of a file of known hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownHosts {
    /// Line number, name, key.
    entries: Vec<(usize, String, PublicKey)>,
}

/// The standing of a server's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// This key belongs to the name.
    Same,
    /// Nothing is known about the name.
    Nothing,
    /// Another key belongs to the name. Somebody may be in between, or the server was installed anew.
    Changed {
        /// The line with the other key, from 1.
        line: usize,
    },
}

impl KnownHosts {
    /// Reads a file. Empty lines and lines that begin with `#` are skipped.
    ///
    /// # Errors
    /// The first line that cannot be read.
    pub fn parse(text: &str) -> Result<Self, LineError> {
        let mut entries = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (name, key) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            let key = key.parse().map_err(|why| LineError { line: number, fault: LineFault::Key(why) })?;
            entries.push((number, name.to_owned(), key));
        }
        Ok(Self { entries })
    }

    /// The standing of `key` for the server `name`. A name may have several keys.
    pub fn look(&self, name: &str, key: PublicKey) -> Known {
        let of_name = || self.entries.iter().filter(|(_, known, _)| known == name);
        match of_name().next() {
            None => Known::Nothing,
            Some(_) if of_name().any(|(.., known)| *known == key) => Known::Same,
            Some(&(line, ..)) => Known::Changed { line },
        }
    }

    /// The line to append to the file for a new server.
    pub fn line(name: &str, key: PublicKey) -> String {
        format!("{name} {key}\n")
    }
}

/// Why a line of a file of keys is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LineError {
    /// The line, from 1.
    pub line: usize,
    /// The fault.
    pub fault: LineFault,
}

/// The fault of a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LineFault {
    /// The key.
    #[error(transparent)]
    Key(#[from] PublicKeyError),
    /// An option that does not exist.
    #[error("there is no option {0:?}; the options are path, rate, sessions, bytes, files, expires, from and links")]
    UnknownOption(String),
    /// A word of a name that was meant as an option, as far as anybody can tell.
    #[error(
        "{0:?} looks like an option, and would only name the client: write options as NAME=VALUE, such as expires=2027-06-30; \
         without path=DIR,write a key only reads; or choose another name"
    )]
    OptionAsName(String),
    /// An option with a value that it never has.
    #[error("{option}={value:?} is refused: {reason}")]
    Value {
        /// The option.
        option: &'static str,
        /// The value.
        value: String,
        /// The reason.
        reason: &'static str,
    },
    /// An option that stands twice.
    #[error("the option {0} stands twice")]
    Twice(&'static str),
    /// Two lines have the same key.
    #[error("the same key stands in line {0}")]
    SameKey(usize),
}

impl std::error::Error for LineError {}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> PublicKey {
        PublicKey::from_bytes([byte; 32])
    }

    #[test]
    fn a_server_is_known_by_its_name_and_key() {
        let text =
            format!("# mine\n\n{}{}", KnownHosts::line("far.example:9000", key(1)), KnownHosts::line("b", key(2)));
        let known = KnownHosts::parse(&text).unwrap();
        assert_eq!(known.look("far.example:9000", key(1)), Known::Same);
        assert_eq!(known.look("far.example:9000", key(2)), Known::Changed { line: 3 });
        assert_eq!(known.look("far.example:9001", key(1)), Known::Nothing);
        let both = KnownHosts::parse(&format!("{text}b {}\n", key(3))).unwrap();
        assert_eq!((both.look("b", key(2)), both.look("b", key(3))), (Known::Same, Known::Same));
    }

    #[test]
    fn a_line_that_cannot_be_read_is_named() {
        let error = KnownHosts::parse("# mine\nfar ssh-rsa AAAA\n").unwrap_err();
        assert_eq!((error.line, error.fault), (2, LineFault::Key(PublicKeyError::Algorithm("ssh-rsa".into()))));
        assert!(KnownHosts::parse("far").is_err());
    }
}
