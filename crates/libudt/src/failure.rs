//! Failures of calls, with the codes of libudt.

use std::io;

use farhaul::{ConnectError, ConnectionLost, Error};

/// The result of a call.
pub(crate) type Result<T> = std::result::Result<T, Failure>;

/// Why a call failed: libudt's code, and the system's error number if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) code: Code,
    pub(crate) errno: i32,
}

/// The codes of libudt that calls fail with. The thousands are the category.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Code {
    SetupFailed = 1000,
    NoServer = 1001,
    Rejected = 1002,
    NoUdpSocket = 1003,
    ConnectionLost = 2001,
    NotConnected = 2002,
    NoResource = 3000,
    NoThread = 3001,
    InvalidOperation = 5000,
    AlreadyBound = 5001,
    AlreadyConnected = 5002,
    InvalidParameter = 5003,
    InvalidSocket = 5004,
    NotBound = 5005,
    NotListening = 5006,
    RendezvousListener = 5007,
    RendezvousNotBound = 5008,
    MessageCallOnStream = 5009,
    StreamCallOnMessages = 5010,
    PortHasListener = 5011,
    MessageTooLong = 5012,
    InvalidPoll = 5013,
    NoRoomNow = 6001,
    NothingNow = 6002,
    TimedOut = 6003,
    PeerSignalled = 7000,
}

impl Failure {
    pub(crate) fn of_system(code: Code, error: &io::Error) -> Self {
        Self { code, errno: error.raw_os_error().unwrap_or(0) }
    }
}

impl From<Code> for Failure {
    fn from(code: Code) -> Self {
        Self { code, errno: 0 }
    }
}

impl From<ConnectionLost> for Failure {
    fn from(lost: ConnectionLost) -> Self {
        Self::from(match lost {
            ConnectionLost::ConnectTimeout(_) => Code::NoServer,
            ConnectionLost::Refused | ConnectionLost::PeerIncompatible(_) => Code::Rejected,
            _ => Code::ConnectionLost,
        })
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Bind { source, .. } => Self::of_system(Code::NoUdpSocket, &source),
            Error::Unreachable { source, .. } => Self::of_system(Code::NoServer, &source),
            Error::System { what: "a thread", source } => Self::of_system(Code::NoThread, &source),
            Error::System { source, .. } => Self::of_system(Code::NoResource, &source),
            Error::Lost(lost) => lost.into(),
            Error::WrongFamily { .. }
            | Error::InvalidOption { .. }
            | Error::Controller(_)
            | Error::Connect(ConnectError::InvalidAddress) => Code::InvalidParameter.into(),
            Error::Connect(ConnectError::TooManyConnections(_)) => Code::NoResource.into(),
            Error::Connect(_) => Code::SetupFailed.into(),
            Error::TimedOut(_) => Code::TimedOut.into(),
            Error::MessageTooLong { .. } => Code::MessageTooLong.into(),
            Error::AlreadyListening => Code::PortHasListener.into(),
            Error::ListenerClosed => Code::NotListening.into(),
            Error::FixedController => Code::InvalidOperation.into(),
            _ => Code::ConnectionLost.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_failed_attempt_to_connect_says_whether_anybody_answered() {
        let code = |lost| Failure::from(Error::Lost(lost)).code;
        assert_eq!(code(ConnectionLost::ConnectTimeout(Duration::from_secs(3))), Code::NoServer);
        assert_eq!(code(ConnectionLost::Refused), Code::Rejected);
        assert_eq!(code(ConnectionLost::ClosedByPeer), Code::ConnectionLost);
    }

    #[test]
    fn the_error_number_of_the_system_is_kept() {
        let source = io::Error::from_raw_os_error(libc::EADDRINUSE);
        let failure = Failure::from(Error::Bind { address: ([127, 0, 0, 1], 1).into(), source });
        assert_eq!(failure, Failure { code: Code::NoUdpSocket, errno: libc::EADDRINUSE });
    }
}
