//! What can go wrong: a code, whose fault it is, and what to do about it.
//!
//! Scripts rely on the numbers and names of the codes. One table defines both.

mod connection;

use std::fmt;
use std::io;

pub(crate) use connection::no_place;

use crate::report::Report;

macro_rules! codes {
    ($($name:ident = $exit:literal $symbol:literal $owner:ident, $doc:literal;)*) => {
        /// Reason of a failure: an exit code, a name for JSON, and whose fault it is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Code {
            $(#[doc = $doc] $name,)*
        }

        impl Code {
            /// The exit code of a process that fails with it.
            pub const fn exit(self) -> u8 {
                match self { $(Self::$name => $exit,)* }
            }

            /// Its name in records, as in `"error":{"code":…}`.
            pub const fn symbol(self) -> &'static str {
                match self { $(Self::$name => $symbol,)* }
            }

            /// Whose fault it is.
            pub const fn owner(self) -> Owner {
                match self { $(Self::$name => Owner::$owner,)* }
            }
        }

        const ALL: &[Code] = &[$(Code::$name,)*];
    };
}

codes! {
    Failed = 1 "FAILED" Unknown, "Any failure without its own code.";
    ControllerFailed = 1 "CONTROLLER_FAILED" Host, "A congestion controller panicked, or set something unusable.";
    Busy = 1 "BUSY" Peer, "The server has reached its limit of sessions, or no time to answer.";
    Usage = 2 "USAGE" Request, "The command line is wrong.";
    NotFound = 3 "NOT_FOUND" Request, "There is no such file or directory there.";
    AlreadyExists = 3 "ALREADY_EXISTS" Request, "Something has the name already.";
    IsDirectory = 3 "IS_A_DIRECTORY" Request, "A directory is there, and not a file.";
    NotDirectory = 3 "NOT_A_DIRECTORY" Request, "Something else is there, and not a directory.";
    DirectoryNotEmpty = 3 "DIRECTORY_NOT_EMPTY" Request, "A directory that is to be removed or replaced has entries.";
    PermissionDenied = 3 "PERMISSION_DENIED" Peer, "The system there does not permit it to the user of the server.";
    SourceChanged = 3 "SOURCE_CHANGED" Request, "A file changed while it was read.";
    FilesFailed = 3 "FILES_FAILED" Request, "Some files were not copied, the others were.";
    ConnectTimeout = 4 "CONNECT_TIMEOUT" Network, "The peer did not answer: nothing listens there, or UDP is blocked.";
    PeerRefused = 4 "PEER_REFUSED" Peer, "The peer answered and refused the connection.";
    UdpBlocked = 4 "UDP_BLOCKED" Network, "TCP gets through to the peer, UDP does not.";
    AddressInUse = 4 "ADDRESS_IN_USE" Host, "Another program has the UDP port.";
    AddressUnavailable = 4 "ADDRESS_UNAVAILABLE" Host, "The UDP port cannot be opened.";
    NameUnresolved = 4 "NAME_UNRESOLVED" Request, "A host name has no address.";
    NoRoute = 4 "NO_ROUTE" Network, "This machine has no route to the address.";
    Unsupported = 1 "UNSUPPORTED" Host, "This system lacks a required feature.";
    AccessDenied = 5 "ACCESS_DENIED" Peer, "The server refused the request.";
    HostKeyUnknown = 5 "HOST_KEY_UNKNOWN" Request, "The server's key is not known here.";
    HostKeyChanged = 5 "HOST_KEY_CHANGED" Peer, "The server has another key than before.";
    NotAdmitted = 5 "NOT_ADMITTED" Peer, "The server does not admit this side's key.";
    SshFailed = 5 "SSH_FAILED" Network, "Ssh did not reach the remote host, or not log in there.";
    RemoteProgramMissing = 5 "FAR_PROGRAM_MISSING" Peer, "The remote host lacks this program.";
    NotPermitted = 5 "NOT_PERMITTED" Host, "This system denied a permission.";
    Integrity = 6 "INTEGRITY" Peer, "The received bytes differ from the sent ones, or both ends of a copy report different things.";
    LocalIo = 7 "LOCAL_IO" Host, "Reading or writing failed for reasons that affect every file.";
    DiskFull = 7 "DISK_FULL" Host, "A disk is full.";
    PeerLost = 8 "PEER_LOST" Peer, "The peer left, or was silent for too long.";
    IdleTimeout = 8 "IDLE_TIMEOUT" Peer, "Neither side sent anything.";
    Protocol = 9 "PROTOCOL" Peer, "The peer speaks another protocol or another version.";
    Handshake = 9 "HANDSHAKE_FAILED" Peer, "The handshake of the encryption failed.";
    CommandNotRun = 126 "COMMAND_NOT_RUN" Request, "The command exists and cannot be started; the number is the shells' convention.";
    CommandNotFound = 127 "COMMAND_NOT_FOUND" Request, "The command does not exist; the number is the shells' convention.";
    Interrupted = 130 "INTERRUPTED" Request, "It was cancelled; a command by SIGINT.";
    Terminated = 143 "TERMINATED" Request, "SIGTERM.";
}

impl Code {
    /// The code with this name.
    pub fn from_symbol(symbol: &str) -> Option<Self> {
        ALL.iter().copied().find(|code| code.symbol() == symbol)
    }
}

/// Whose fault a failure is, and so who can do something about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Owner {
    /// Whoever asked: the request is wrong, or was cancelled.
    Request,
    /// This host: its disk, its limits, its permissions.
    Host,
    /// The way to the other host: routes, firewalls, ssh.
    Network,
    /// The other host, or its program.
    Peer,
    /// It cannot be told.
    Unknown,
}

/// A failure. It displays as one line: the operation, the file or address, the reason, and what to do next.
#[derive(Clone, Debug, PartialEq)]
pub struct Error {
    /// Its code.
    pub code: Code,
    /// What failed, on which file or address, and why.
    pub message: String,
    /// What to do next, if something can be done.
    pub remedy: Option<String>,
    /// Whoever would read the line caused the failure, and needs none.
    pub is_quiet: bool,
    /// What was done before, for a copy that had begun.
    pub report: Option<Box<Report>>,
}

impl Error {
    /// A failure without a remedy.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), remedy: None, is_quiet: false, report: None }
    }

    /// A request that cannot be carried out as it is.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Code::Usage, message)
    }

    /// The same failure with what to do about it.
    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    /// The same failure without a line for people. Exit code and records still report it.
    #[must_use]
    pub const fn quietly(mut self) -> Self {
        self.is_quiet = true;
        self
    }

    /// The same failure with one more sentence about it.
    #[must_use]
    pub fn and(mut self, sentence: &str) -> Self {
        self.message.push_str("; ");
        self.message.push_str(sentence);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.remedy {
            Some(remedy) => write!(f, "; {remedy}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {}

impl From<io::Error> for Error {
    /// For basic resources that the system refuses: threads, local sockets, temporary files.
    fn from(error: io::Error) -> Self {
        Self::new(Code::Failed, format!("the system refused: {error}"))
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
