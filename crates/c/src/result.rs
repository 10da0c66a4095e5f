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
    RemoteProgramMissing = 41,
    /// The received bytes differ from the sent ones.
    Integrity = 42,
    /// A file of this host cannot be read or written.
    LocalIo = 43,
    /// A disk is full.
    DiskFull = 44,
    /// The server is at its limit of sessions.
    Busy = 45,
}

/// Each result in the order of the numbers: its sentence, and the failures of the library that have it.
const TABLE: &[(FarhaulResult, &CStr, &[Code])] = &[
    (FarhaulResult::Ok, c"The call did what it should.", &[]),
    (FarhaulResult::WouldBlock, c"Nothing can be done now. Wait until the watch is ready, and call again.", &[]),
    (FarhaulResult::Failed, c"Any failure without its own code.", &[]),
    (FarhaulResult::NullArgument, c"A pointer is null that must not be.", &[]),
    (FarhaulResult::InvalidArgument, c"An argument has no meaning, or is out of its range.", &[Code::Usage]),
    (FarhaulResult::Panic, c"A defect of this library. Free the handle and report the message.", &[]),
    (FarhaulResult::Forked, c"The handle belongs to the parent process.", &[]),
    (FarhaulResult::TimedOut, c"The time-out of the call has passed. The connection survives.", &[Code::TimedOut]),
    (FarhaulResult::Cancelled, c"It was cancelled.", &[Code::Interrupted, Code::HungUp, Code::Terminated]),
    (FarhaulResult::Finished, c"This side has finished the connection or its direction before.", &[Code::Finished]),
    (FarhaulResult::Closed, c"This side has closed the connection or the listener.", &[Code::Closed]),
    (FarhaulResult::ClosedByPeer, c"The peer has closed the connection.", &[]),
    (FarhaulResult::Aborted, c"The peer gave up the connection: what it sent may be incomplete.", &[]),
    (FarhaulResult::PeerLost, c"The peer is silent, too slow, or left.", &[Code::PeerLost, Code::IdleTimeout]),
    (
        FarhaulResult::ConnectTimeout,
        c"Nobody answers at the address, or UDP is blocked on the way.",
        &[Code::ConnectTimeout],
    ),
    (FarhaulResult::Refused, c"The peer refused the connection.", &[Code::PeerRefused]),
    (FarhaulResult::UdpBlocked, c"TCP gets through to the peer, UDP does not.", &[Code::UdpBlocked]),
    (FarhaulResult::NameUnresolved, c"The host name has no address.", &[Code::NameUnresolved]),
    (FarhaulResult::NoRoute, c"There is no route to the address, or it is of the other family.", &[Code::NoRoute]),
    (
        FarhaulResult::AddressInUse,
        c"Another program has the UDP port, or the port has a listener.",
        &[Code::AddressInUse],
    ),
    (FarhaulResult::AddressUnavailable, c"The UDP port cannot be opened.", &[Code::AddressUnavailable]),
    (FarhaulResult::NotAdmitted, c"One side does not trust the key of the other one.", &[Code::NotAdmitted]),
    (FarhaulResult::Handshake, c"The handshake of the encryption failed.", &[Code::Handshake]),
    (FarhaulResult::Protocol, c"The peer speaks another protocol or another version.", &[Code::Protocol]),
    (FarhaulResult::Unsupported, c"The connection, its protocol or this system cannot do that.", &[Code::Unsupported]),
    (
        FarhaulResult::MessageTooLong,
        c"The message is longer than the send buffer or the window of the peer.",
        &[Code::MessageTooLong],
    ),
    (FarhaulResult::TooManyConnections, c"The port is at its limit of connections.", &[Code::TooManyConnections]),
    (
        FarhaulResult::EndedEarly,
        c"The stream or the file ended before the announced number of bytes.",
        &[Code::EndedEarly],
    ),
    (FarhaulResult::System, c"The system refused a thread, randomness or a descriptor.", &[Code::System]),
    (FarhaulResult::NotFound, c"There is no such file or directory.", &[Code::NotFound]),
    (FarhaulResult::AlreadyExists, c"Something has the name already.", &[Code::AlreadyExists]),
    (FarhaulResult::IsDirectory, c"A directory is there, and not a file.", &[Code::IsDirectory]),
    (FarhaulResult::NotDirectory, c"Something else is there, and not a directory.", &[Code::NotDirectory]),
    (
        FarhaulResult::DirectoryNotEmpty,
        c"A directory that is to be removed or replaced has entries.",
        &[Code::DirectoryNotEmpty],
    ),
    (FarhaulResult::PermissionDenied, c"A system denied a permission.", &[Code::PermissionDenied, Code::NotPermitted]),
    (FarhaulResult::SourceChanged, c"A file changed while it was read.", &[Code::SourceChanged]),
    (FarhaulResult::FilesFailed, c"Some files were not copied, the others were.", &[Code::FilesFailed]),
    (FarhaulResult::AccessDenied, c"The server refused the request.", &[Code::AccessDenied]),
    (FarhaulResult::HostKeyUnknown, c"The key of the server is not known here.", &[Code::HostKeyUnknown]),
    (FarhaulResult::HostKeyChanged, c"The server has another key than before.", &[Code::HostKeyChanged]),
    (FarhaulResult::SshFailed, c"ssh did not reach the remote host, or not log in there.", &[Code::SshFailed]),
    (FarhaulResult::RemoteProgramMissing, c"The remote host lacks the program farhaul.", &[Code::RemoteProgramMissing]),
    (FarhaulResult::Integrity, c"The received bytes differ from the sent ones.", &[Code::Integrity]),
    (FarhaulResult::LocalIo, c"A file of this host cannot be read or written.", &[Code::LocalIo]),
    (FarhaulResult::DiskFull, c"A disk is full.", &[Code::DiskFull]),
    (FarhaulResult::Busy, c"The server is at its limit of sessions.", &[Code::Busy]),
];

/// A number that is no result.
const UNKNOWN: &CStr = c"an unknown result";

/// The meaning of a result in one sentence. The text lives for ever.
#[unsafe(no_mangle)]
pub extern "C" fn farhaul_strerror(result: i32) -> *const c_char {
    let found = usize::try_from(result).ok().and_then(|number| TABLE.get(number));
    found.map_or(UNKNOWN, |(_, sentence, _)| sentence).as_ptr()
}

/// A call without a result of its own that came to its end.
impl From<()> for FarhaulResult {
    fn from((): ()) -> Self {
        Self::Ok
    }
}

impl FarhaulResult {
    /// The result for a failure of the library: of a connection, a copy or a request.
    pub(crate) fn of_code(code: Code) -> Self {
        TABLE.iter().find(|(_, _, codes)| codes.contains(&code)).map_or(Self::Failed, |(result, ..)| *result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_result_has_a_sentence_and_a_number_of_its_own() {
        for (number, (result, sentence, _)) in TABLE.iter().enumerate() {
            assert_eq!(*result as usize, number);
            let same = TABLE.iter().filter(|(_, other, _)| other == sentence).count();
            assert!(sentence.to_bytes().ends_with(b".") && same == 1, "{sentence:?}");
        }
        assert_eq!(TABLE.len(), FarhaulResult::Busy as usize + 1);
        for (number, words) in [(0, "The call did"), (45, "The server is"), (46, "an unknown"), (-1, "an unknown")] {
            // SAFETY: the text is static.
            let text = unsafe { CStr::from_ptr(farhaul_strerror(number)) };
            assert!(text.to_str().unwrap().starts_with(words), "{text:?}");
        }
    }

    #[test]
    fn a_failure_has_one_result() {
        for code in Code::ALL {
            assert!(TABLE.iter().filter(|(_, _, codes)| codes.contains(code)).count() <= 1, "{code:?}");
        }
        assert_eq!(FarhaulResult::of_code(Code::NotPermitted), FarhaulResult::PermissionDenied);
        assert_eq!(FarhaulResult::of_code(Code::ControllerFailed), FarhaulResult::Failed);
    }
}
