//! The kinds of failures: one table of names, exit codes and whose fault each is, for programs in every language.

macro_rules! codes {
    ($($name:ident = $exit:literal $symbol:literal $owner:ident, $doc:literal;)*) => {
        /// The kind of a failure: a name for records and other languages, an exit code, and whose fault it is.
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

            /// Its name in records, as in `"error":{"code":…}`, and in other languages.
            pub const fn symbol(self) -> &'static str {
                match self { $(Self::$name => $symbol,)* }
            }

            /// Whose fault it is.
            pub const fn owner(self) -> Owner {
                match self { $(Self::$name => Owner::$owner,)* }
            }

            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name,)*];
        }
    };
}

codes! {
    Failed = 1 "FAILED" Unknown, "Any failure without its own code.";
    ControllerFailed = 1 "CONTROLLER_FAILED" Host, "A congestion controller panicked, or set something unusable.";
    Busy = 1 "BUSY" Peer, "The server has reached its limit of sessions, or no time to answer.";
    TooManyConnections = 1 "TOO_MANY_CONNECTIONS" Host, "The port is at its limit of connections.";
    System = 1 "SYSTEM" Host, "The system refused a thread, randomness or a descriptor.";
    Closed = 1 "CLOSED" Request, "This side has closed the connection or the listener.";
    Finished = 1 "FINISHED" Request, "This side has finished its direction of the connection.";
    Usage = 2 "USAGE" Request, "The command line, a setting or an argument is wrong.";
    MessageTooLong = 2 "MESSAGE_TOO_LONG" Request, "The message is longer than the send buffer or the window of the peer.";
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
    AddressInUse = 4 "ADDRESS_IN_USE" Host, "Another program has the UDP port, or the port has a listener.";
    AddressUnavailable = 4 "ADDRESS_UNAVAILABLE" Host, "The UDP port cannot be opened.";
    NameUnresolved = 4 "NAME_UNRESOLVED" Request, "A host name has no address.";
    NoRoute = 4 "NO_ROUTE" Network, "This machine has no route to the address, or the port is of the other family.";
    Unsupported = 1 "UNSUPPORTED" Host, "This system, the connection or its protocol lacks a required feature.";
    AccessDenied = 5 "ACCESS_DENIED" Peer, "The server refused the request.";
    HostKeyUnknown = 5 "HOST_KEY_UNKNOWN" Request, "The server's key is not known here.";
    HostKeyChanged = 5 "HOST_KEY_CHANGED" Peer, "The server has another key than before.";
    NotAdmitted = 5 "NOT_ADMITTED" Peer, "The server does not admit this side's key.";
    SshFailed = 5 "SSH_FAILED" Network, "Ssh did not reach the remote host, or not log in there.";
    RemoteProgramMissing = 5 "REMOTE_PROGRAM_MISSING" Peer, "The remote host lacks this program.";
    NotPermitted = 5 "NOT_PERMITTED" Host, "This system denied a permission.";
    Integrity = 6 "INTEGRITY" Peer, "The received bytes differ from the sent ones, or both ends of a copy report different things.";
    LocalIo = 7 "LOCAL_IO" Host, "Reading or writing failed for reasons that affect every file.";
    DiskFull = 7 "DISK_FULL" Host, "A disk is full.";
    PeerLost = 8 "PEER_LOST" Peer, "The peer left, or was silent for too long.";
    EndedEarly = 8 "ENDED_EARLY" Peer, "The stream or the file ended before the announced number of bytes.";
    IdleTimeout = 8 "IDLE_TIMEOUT" Peer, "Neither side sent anything.";
    TimedOut = 8 "TIMED_OUT" Peer, "The call's own time-out passed. The connection survives.";
    Protocol = 9 "PROTOCOL" Peer, "The peer speaks another protocol or another version.";
    Handshake = 9 "HANDSHAKE_FAILED" Peer, "The handshake of the encryption failed.";
    CommandNotRun = 126 "COMMAND_NOT_RUN" Request, "The command exists and cannot be started; the number is the shells' convention.";
    CommandNotFound = 127 "COMMAND_NOT_FOUND" Request, "The command does not exist; the number is the shells' convention.";
    Interrupted = 130 "INTERRUPTED" Request, "It was cancelled; a command by SIGINT.";
    HungUp = 129 "HUNG_UP" Request, "SIGHUP: the terminal of the command has ended.";
    Terminated = 143 "TERMINATED" Request, "SIGTERM.";
}

impl Code {
    /// The code with this name.
    pub fn from_symbol(symbol: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.symbol() == symbol)
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
    /// The path to the other host: routes, firewalls, ssh.
    Network,
    /// The other host, or its program.
    Peer,
    /// It cannot be told.
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_written_in_capitals() {
        for (index, code) in Code::ALL.iter().enumerate() {
            let symbol = code.symbol();
            assert!(symbol.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_'), "{symbol}");
            assert!(Code::ALL[..index].iter().all(|other| other.symbol() != symbol), "{symbol}");
            assert_eq!(Code::from_symbol(symbol), Some(*code));
        }
    }

    #[test]
    fn exit_codes_are_the_documented_ones() {
        for code in Code::ALL {
            assert!(matches!(code.exit(), 1..=9 | 126 | 127 | 129 | 130 | 143), "{code:?}");
        }
    }
}
