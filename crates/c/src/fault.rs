//! A failure before it crosses the border: its code and its message.

use farhaul::{ConnectError, ConnectionLost, Error as ConnectionError, security};
use farhaul_transfer::Error as TransferError;

use crate::result::FarhaulResult;

/// Why a call failed.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) result: FarhaulResult,
    pub(crate) message: String,
}

impl Fault {
    pub(crate) fn new(result: FarhaulResult, message: impl Into<String>) -> Self {
        Self { result, message: message.into() }
    }

    /// An argument that has no meaning.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(FarhaulResult::InvalidArgument, message)
    }

    /// A null pointer for the argument of this name.
    pub(crate) fn null(argument: &str) -> Self {
        Self::new(FarhaulResult::NullArgument, format!("`{argument}` is a null pointer"))
    }
}

impl From<ConnectionError> for Fault {
    fn from(error: ConnectionError) -> Self {
        Self::new(of_connection(&error), error.to_string())
    }
}

impl From<TransferError> for Fault {
    fn from(error: TransferError) -> Self {
        Self::new(FarhaulResult::of_code(error.code), error.to_string())
    }
}

impl From<rustix::io::Errno> for Fault {
    fn from(error: rustix::io::Errno) -> Self {
        Self::new(FarhaulResult::System, format!("the system refused: {error}"))
    }
}

impl From<security::IdentityError> for Fault {
    fn from(error: security::IdentityError) -> Self {
        Self::invalid(error.to_string())
    }
}

fn of_connection(error: &ConnectionError) -> FarhaulResult {
    use FarhaulResult as R;
    match error {
        ConnectionError::Bind { source, .. } | ConnectionError::BindTcp { source, .. } => match source.kind() {
            std::io::ErrorKind::AddrInUse => R::AddressInUse,
            _ => R::AddressUnavailable,
        },
        ConnectionError::Resolve(_) => R::NameUnresolved,
        ConnectionError::InvalidOption { .. }
        | ConnectionError::Controller(_)
        | ConnectionError::NoProtection
        | ConnectionError::NoPlainClients => R::InvalidArgument,
        ConnectionError::System { .. } | ConnectionError::DriverStopped => R::System,
        ConnectionError::WrongFamily { .. } => R::NoRoute,
        ConnectionError::Connect(error) => of_connect(error),
        ConnectionError::Unreachable { source, .. } => match source.kind() {
            std::io::ErrorKind::HostUnreachable | std::io::ErrorKind::NetworkUnreachable => R::NoRoute,
            _ => R::ConnectTimeout,
        },
        ConnectionError::Lost(lost) => of_lost(*lost),
        ConnectionError::Finished => R::Finished,
        ConnectionError::NoHalfClose | ConnectionError::FixedCap | ConnectionError::FixedController => R::Unsupported,
        ConnectionError::MessageTooLong { .. } => R::MessageTooLong,
        ConnectionError::EndedEarly { .. } | ConnectionError::FileTooShort { .. } => R::EndedEarly,
        ConnectionError::File { .. } => R::LocalIo,
        ConnectionError::TimedOut(_) => R::TimedOut,
        ConnectionError::Cancelled => R::Cancelled,
        ConnectionError::AlreadyListening => R::AddressInUse,
        ConnectionError::ListenerClosed => R::Closed,
        _ => R::Failed,
    }
}

const fn of_connect(error: &ConnectError) -> FarhaulResult {
    match error {
        ConnectError::TooManyConnections(_) => FarhaulResult::TooManyConnections,
        ConnectError::InvalidAddress => FarhaulResult::InvalidArgument,
        ConnectError::AlreadyConnected | ConnectError::RendezvousUnderWay => FarhaulResult::AddressInUse,
        ConnectError::StreamsOnly => FarhaulResult::Unsupported,
        ConnectError::NoTrust => FarhaulResult::NotAdmitted,
        _ => FarhaulResult::Failed,
    }
}

fn of_lost(lost: ConnectionLost) -> FarhaulResult {
    match lost {
        ConnectionLost::ClosedLocally => FarhaulResult::Closed,
        ConnectionLost::ClosedByPeer => FarhaulResult::ClosedByPeer,
        ConnectionLost::Aborted | ConnectionLost::PeerError(_) => FarhaulResult::Aborted,
        ConnectionLost::UdpBlocked(_) => FarhaulResult::UdpBlocked,
        ConnectionLost::ConnectTimeout(_) => FarhaulResult::ConnectTimeout,
        ConnectionLost::Refused | ConnectionLost::ChannelRefused => FarhaulResult::Refused,
        ConnectionLost::PeerSilent(_) | ConnectionLost::NoProgress(_) | ConnectionLost::TooSlow { .. } => {
            FarhaulResult::PeerLost
        }
        ConnectionLost::PeerIncompatible(_) | ConnectionLost::PeerMisbehaved(_) => FarhaulResult::Protocol,
        ConnectionLost::Insecure(fault) => match fault {
            security::SecurityFault::UnknownKey | security::SecurityFault::NotAdmitted => FarhaulResult::NotAdmitted,
            _ => FarhaulResult::Handshake,
        },
        _ => FarhaulResult::PeerLost,
    }
}
