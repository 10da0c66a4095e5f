//! The end of the program: exit codes, their symbolic names, and the error line.
//!
//! Scripts rely on the numbers and names. One table defines both.

use std::fmt;
use std::io;
use std::process::ExitCode;

macro_rules! codes {
    ($($name:ident = $exit:literal $symbol:literal, $doc:literal;)*) => {
        /// Reason of a failure: an exit code, and a name for JSON.
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

        const ALL: &[Code] = &[$(Code::$name,)*];
    };
}

codes! {
    Failed = 1 "FAILED", "Any failure without its own code.";
    Busy = 1 "BUSY", "The server has reached its limit of sessions.";
    Usage = 2 "USAGE", "The command line is wrong.";
    FilesFailed = 3 "FILES_FAILED", "Some files were not copied, the others were.";
    ConnectTimeout = 4 "CONNECT_TIMEOUT", "The peer did not answer: nothing listens there, or UDP is blocked.";
    PeerRefused = 4 "PEER_REFUSED", "The peer answered and refused the connection.";
    UdpBlocked = 4 "UDP_BLOCKED", "TCP gets through to the peer, UDP does not.";
    AddressInUse = 4 "ADDRESS_IN_USE", "Another program has the UDP port.";
    AddressUnavailable = 4 "ADDRESS_UNAVAILABLE", "The UDP port cannot be opened.";
    NameUnresolved = 4 "NAME_UNRESOLVED", "A host name has no address.";
    NoRoute = 4 "NO_ROUTE", "This machine has no route to the address.";
    Unsupported = 1 "UNSUPPORTED", "This system lacks a required feature.";
    AccessDenied = 5 "ACCESS_DENIED", "The server refused the request.";
    HostKeyUnknown = 5 "HOST_KEY_UNKNOWN", "The server's key is not known here.";
    HostKeyChanged = 5 "HOST_KEY_CHANGED", "The server has another key than before.";
    NotAdmitted = 5 "NOT_ADMITTED", "The server does not admit this side's key.";
    SshFailed = 5 "SSH_FAILED", "Ssh did not reach the far host, or not log in there.";
    FarProgramMissing = 5 "FAR_PROGRAM_MISSING", "The far host lacks this program.";
    NotPermitted = 5 "NOT_PERMITTED", "This system denied a permission.";
    Integrity = 6 "INTEGRITY", "The received bytes differ from the sent ones, or both ends of a copy report different things.";
    LocalIo = 7 "LOCAL_IO", "Reading or writing failed for reasons that affect every file.";
    DiskFull = 7 "DISK_FULL", "A disk is full.";
    PeerLost = 8 "PEER_LOST", "The peer left, or was silent for too long.";
    IdleTimeout = 8 "IDLE_TIMEOUT", "Neither side sent anything.";
    Protocol = 9 "PROTOCOL", "The peer speaks another protocol or another version.";
    Handshake = 9 "HANDSHAKE_FAILED", "The handshake of the encryption failed.";
    CommandNotRun = 126 "COMMAND_NOT_RUN", "The command exists and cannot be started; the number is the shells' convention.";
    CommandNotFound = 127 "COMMAND_NOT_FOUND", "The command does not exist; the number is the shells' convention.";
    Interrupted = 130 "INTERRUPTED", "SIGINT.";
    Terminated = 143 "TERMINATED", "SIGTERM.";
}

impl Code {
    /// The code with this name.
    pub(crate) fn from_symbol(symbol: &str) -> Option<Self> {
        ALL.iter().copied().find(|code| code.symbol() == symbol)
    }
}

/// A failure for its report: one line with the operation, the file or address, the reason, and the next step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) code: Code,
    pub(crate) message: String,
    /// The reader of stderr needs no line, because it caused the failure.
    pub(crate) quiet: bool,
}

impl Fault {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), quiet: false }
    }

    /// An error of the command line.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Code::Usage, message)
    }

    /// The same failure without a line on stderr. The exit code and the records still report it.
    #[must_use]
    pub(crate) const fn quietly(mut self) -> Self {
        self.quiet = true;
        self
    }

    /// The same failure with one more sentence.
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
    /// For basic resources that the system refuses: threads, local sockets, temporary files.
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
