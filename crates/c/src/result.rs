//! The results of calls.

use std::ffi::{CStr, c_char};

use farhaul_transfer::Code;

/// The result of a call. Its number never changes its meaning, and later versions may have more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[non_exhaustive]
pub enum FarhaulResult {
    /// The call did what it should.
    Ok = 0,
    /// Nothing can be done now. Wait until the watch is ready, and call again.
    WouldBlock = 1,
    /// Any failure without its own code.
    Failed = 2,
    /// A pointer is null that must not be.
    NullArgument = 3,
    /// An argument has no meaning, or is out of its range.
    InvalidArgument = 4,
    /// A defect of this library. Free the handle and report the message.
    Panic = 5,
    /// The handle belongs to the parent process.
    Forked = 6,
    /// The time-out of the call has passed. The connection survives.
    TimedOut = 7,
    /// It was cancelled.
    Cancelled = 8,
    /// This side has finished the connection or its direction before.
    Finished = 9,
    /// This side has closed the connection or the listener.
    Closed = 10,
    /// The peer has closed the connection.
    ClosedByPeer = 11,
    /// The peer gave up the connection: what it sent may be incomplete.
    Aborted = 12,
    /// The peer is silent, too slow, or left.
    PeerLost = 13,
    /// Nobody answers at the address, or UDP is blocked on the way.
    ConnectTimeout = 14,
    /// The peer refused the connection.
    Refused = 15,
    /// TCP gets through to the peer, UDP does not.
    UdpBlocked = 16,
    /// The host name has no address.
    NameUnresolved = 17,
    /// There is no route to the address, or it is of the other family.
    NoRoute = 18,
    /// Another program has the UDP port, or the port has a listener.
    AddressInUse = 19,
    /// The UDP port cannot be opened.
    AddressUnavailable = 20,
    /// One side does not trust the key of the other one.
    NotAdmitted = 21,
    /// The handshake of the encryption failed.
    Handshake = 22,
    /// The peer speaks another protocol or another version.
    Protocol = 23,
    /// The connection, its protocol or this system cannot do that.
    Unsupported = 24,
    /// The message is longer than the send buffer or the window of the peer.
    MessageTooLong = 25,
    /// The port is at its limit of connections.
    TooManyConnections = 26,
    /// The stream or the file ended before the announced number of bytes.
    EndedEarly = 27,
    /// The system refused a thread, randomness or a descriptor.
    System = 28,
    /// There is no such file or directory.
    NotFound = 29,
    /// Something has the name already.
    AlreadyExists = 30,
    /// A directory is there, and not a file.
    IsDirectory = 31,
    /// Something else is there, and not a directory.
    NotDirectory = 32,
    /// A directory that is to be removed or replaced has entries.
    DirectoryNotEmpty = 33,
    /// A system denied a permission.
    PermissionDenied = 34,
    /// A file changed while it was read.
    SourceChanged = 35,
    /// Some files were not copied, the others were.
    FilesFailed = 36,
    /// The server refused the request.
    AccessDenied = 37,
    /// The key of the server is not known here.
    HostKeyUnknown = 38,
    /// The server has another key than before.
    HostKeyChanged = 39,
    /// ssh did not reach the remote host, or not log in there.
    SshFailed = 40,
    /// The remote host lacks the program farhaul.
    ProgramMissing = 41,
    /// The received bytes differ from the sent ones.
    Integrity = 42,
    /// A file of this host cannot be read or written.
    LocalIo = 43,
    /// A disk is full.
    DiskFull = 44,
    /// The server is at its limit of sessions.
    Busy = 45,
}

/// The sentence for each number, in the order of the numbers.
const SENTENCES: &[&CStr] = &[
    c"The call did what it should.",
    c"Nothing can be done now. Wait until the watch is ready, and call again.",
    c"Any failure without its own code.",
    c"A pointer is null that must not be.",
    c"An argument has no meaning, or is out of its range.",
    c"A defect of this library. Free the handle and report the message.",
    c"The handle belongs to the parent process.",
    c"The time-out of the call has passed. The connection survives.",
    c"It was cancelled.",
    c"This side has finished the connection or its direction before.",
    c"This side has closed the connection or the listener.",
    c"The peer has closed the connection.",
    c"The peer gave up the connection: what it sent may be incomplete.",
    c"The peer is silent, too slow, or left.",
    c"Nobody answers at the address, or UDP is blocked on the way.",
    c"The peer refused the connection.",
    c"TCP gets through to the peer, UDP does not.",
    c"The host name has no address.",
    c"There is no route to the address, or it is of the other family.",
    c"Another program has the UDP port, or the port has a listener.",
    c"The UDP port cannot be opened.",
    c"One side does not trust the key of the other one.",
    c"The handshake of the encryption failed.",
    c"The peer speaks another protocol or another version.",
    c"The connection, its protocol or this system cannot do that.",
    c"The message is longer than the send buffer or the window of the peer.",
    c"The port is at its limit of connections.",
    c"The stream or the file ended before the announced number of bytes.",
    c"The system refused a thread, randomness or a descriptor.",
    c"There is no such file or directory.",
    c"Something has the name already.",
    c"A directory is there, and not a file.",
    c"Something else is there, and not a directory.",
    c"A directory that is to be removed or replaced has entries.",
    c"A system denied a permission.",
    c"A file changed while it was read.",
    c"Some files were not copied, the others were.",
    c"The server refused the request.",
    c"The key of the server is not known here.",
    c"The server has another key than before.",
    c"ssh did not reach the remote host, or not log in there.",
    c"The remote host lacks the program farhaul.",
    c"The received bytes differ from the sent ones.",
    c"A file of this host cannot be read or written.",
    c"A disk is full.",
    c"The server is at its limit of sessions.",
];

/// A number that is no result.
const UNKNOWN: &CStr = c"an unknown result";

/// The meaning of a result in one sentence. The text lives for ever.
#[unsafe(no_mangle)]
pub extern "C" fn farhaul_strerror(result: i32) -> *const c_char {
    let found = usize::try_from(result).ok().and_then(|number| SENTENCES.get(number));
    found.unwrap_or(&UNKNOWN).as_ptr()
}

/// A call without a result of its own that came to its end.
impl From<()> for FarhaulResult {
    fn from((): ()) -> Self {
        Self::Ok
    }
}

impl FarhaulResult {
    /// The result for a failure of a copy or a request.
    pub(crate) const fn of_code(code: Code) -> Self {
        match code {
            Code::Busy => Self::Busy,
            Code::TooManyConnections => Self::TooManyConnections,
            Code::System => Self::System,
            Code::Closed => Self::Closed,
            Code::Finished => Self::Finished,
            Code::TimedOut => Self::TimedOut,
            Code::EndedEarly => Self::EndedEarly,
            Code::MessageTooLong => Self::MessageTooLong,
            Code::Usage => Self::InvalidArgument,
            Code::NotFound => Self::NotFound,
            Code::AlreadyExists => Self::AlreadyExists,
            Code::IsDirectory => Self::IsDirectory,
            Code::NotDirectory => Self::NotDirectory,
            Code::DirectoryNotEmpty => Self::DirectoryNotEmpty,
            Code::PermissionDenied | Code::NotPermitted => Self::PermissionDenied,
            Code::SourceChanged => Self::SourceChanged,
            Code::FilesFailed => Self::FilesFailed,
            Code::ConnectTimeout => Self::ConnectTimeout,
            Code::PeerRefused => Self::Refused,
            Code::UdpBlocked => Self::UdpBlocked,
            Code::AddressInUse => Self::AddressInUse,
            Code::AddressUnavailable => Self::AddressUnavailable,
            Code::NameUnresolved => Self::NameUnresolved,
            Code::NoRoute => Self::NoRoute,
            Code::Unsupported => Self::Unsupported,
            Code::AccessDenied => Self::AccessDenied,
            Code::HostKeyUnknown => Self::HostKeyUnknown,
            Code::HostKeyChanged => Self::HostKeyChanged,
            Code::NotAdmitted => Self::NotAdmitted,
            Code::SshFailed => Self::SshFailed,
            Code::RemoteProgramMissing => Self::ProgramMissing,
            Code::Integrity => Self::Integrity,
            Code::LocalIo => Self::LocalIo,
            Code::DiskFull => Self::DiskFull,
            Code::PeerLost | Code::IdleTimeout => Self::PeerLost,
            Code::Protocol => Self::Protocol,
            Code::Handshake => Self::Handshake,
            Code::Interrupted | Code::HungUp | Code::Terminated => Self::Cancelled,
            _ => Self::Failed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_result_has_a_sentence_and_a_number_of_its_own() {
        for text in SENTENCES {
            let text = text.to_str().unwrap();
            assert!(
                text.ends_with('.')
                    && SENTENCES.iter().filter(|other| other.to_bytes() == text.as_bytes()).count() == 1,
                "{text}"
            );
        }
        assert_eq!(SENTENCES.len(), FarhaulResult::Busy as usize + 1);
        for (number, words) in [(0, "The call did"), (45, "The server is"), (46, "an unknown"), (-1, "an unknown")] {
            // SAFETY: the text is static.
            let text = unsafe { CStr::from_ptr(farhaul_strerror(number)) };
            assert!(text.to_str().unwrap().starts_with(words), "{text:?}");
        }
    }
}
