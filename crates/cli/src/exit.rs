//! How the program ends: exit codes, their symbolic names, and the error that is printed.
//!
//! Scripts rely on the numbers and names; both stand in one table.

use std::fmt;
use std::io;
use std::process::ExitCode;

macro_rules! codes {
    ($($name:ident = $exit:literal $symbol:literal, $doc:literal;)*) => {
        /// Why the program failed. The number is the exit code; the name stands in JSON.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Code {
            $(#[doc = $doc] $name,)*
        }

        impl Code {
            /// The exit code of the process.
            pub(crate) const fn exit(self) -> u8 {
                match self { $(Self::$name => $exit,)* }
            }

            /// The name in `"error":{"code":…}`.
            pub(crate) const fn symbol(self) -> &'static str {
                match self { $(Self::$name => $symbol,)* }
            }
        }

        #[cfg(test)]
        const ALL: &[Code] = &[$(Code::$name,)*];
    };
}

codes! {
    Failed = 1 "FAILED", "Something that has no code of its own.";
    Busy = 1 "BUSY", "The server has as many sessions as it may; try again later.";
    Usage = 2 "USAGE", "The command line asks for something that does not exist.";
    FilesFailed = 3 "FILES_FAILED", "Some files were not copied; the others were.";
    ConnectTimeout = 4 "CONNECT_TIMEOUT", "Nobody answered: nothing listens there, or UDP is blocked.";
    PeerRefused = 4 "PEER_REFUSED", "The peer answered and refused the connection.";
    AddressInUse = 4 "ADDRESS_IN_USE", "Another program has the UDP port.";
    AddressUnavailable = 4 "ADDRESS_UNAVAILABLE", "The UDP port cannot be opened.";
    NameUnresolved = 4 "NAME_UNRESOLVED", "A host name has no address.";
    NoRoute = 4 "NO_ROUTE", "This machine knows no way to the address.";
    Unsupported = 1 "UNSUPPORTED", "This system lacks what is needed.";
    AccessDenied = 5 "ACCESS_DENIED", "The server does not allow it.";
    NotPermitted = 5 "NOT_PERMITTED", "This system does not allow it.";
    Integrity = 6 "INTEGRITY", "The bytes that arrived are not those that were sent.";
    LocalIo = 7 "LOCAL_IO", "Reading or writing failed in a way that concerns every file.";
    DiskFull = 7 "DISK_FULL", "A disk has no room for the data.";
    PeerLost = 8 "PEER_LOST", "The peer went away, or was silent for too long.";
    IdleTimeout = 8 "IDLE_TIMEOUT", "Neither side had anything to send.";
    Protocol = 9 "PROTOCOL", "The peer speaks another protocol or another version.";
    CommandNotRun = 126 "COMMAND_NOT_RUN", "The command to run is there and cannot be started, as shells tell it.";
    CommandNotFound = 127 "COMMAND_NOT_FOUND", "There is no such command to run, as shells tell it.";
    Interrupted = 130 "INTERRUPTED", "SIGINT.";
    Terminated = 143 "TERMINATED", "SIGTERM.";
}

/// A failure as it is reported: one line that says what failed, on which file or address, why, and what to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) code: Code,
    pub(crate) message: String,
    /// Whoever would read the line knows already.
    pub(crate) quiet: bool,
}

impl Fault {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), quiet: false }
    }

    /// The command line is at fault.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Code::Usage, message)
    }

    /// The same failure without a line on stderr; the exit code and the records tell.
    #[must_use]
    pub(crate) const fn quietly(mut self) -> Self {
        self.quiet = true;
        self
    }

    /// The same failure with a further sentence.
    #[must_use]
    pub(crate) fn and(mut self, sentence: &str) -> Self {
        self.message.push_str("; ");
        self.message.push_str(sentence);
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<io::Error> for Fault {
    /// For what the system refuses outright: threads, sockets of our own, temporary files.
    fn from(error: io::Error) -> Self {
        Self::new(Code::Failed, format!("the system refused: {error}"))
    }
}

impl From<&Fault> for ExitCode {
    fn from(fault: &Fault) -> Self {
        Self::from(fault.code.exit())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_written_in_capitals() {
        for (index, code) in ALL.iter().enumerate() {
            let symbol = code.symbol();
            assert!(symbol.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_'), "{symbol}");
            assert!(ALL[..index].iter().all(|other| other.symbol() != symbol), "{symbol}");
        }
    }

    #[test]
    fn exit_codes_are_the_documented_ones() {
        for code in ALL {
            assert!(matches!(code.exit(), 1..=9 | 126 | 127 | 130 | 143), "{code:?}");
        }
    }
}
