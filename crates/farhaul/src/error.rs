//! What can go wrong, and whose fault it is.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use farhaul_proto::{ConnectError, ConnectionLost, StreamError};

/// Why a call of this crate failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The UDP port could not be opened: it is taken, or the address is not one of this machine.
    #[error("cannot open UDP port {address}: {source}")]
    Bind {
        /// The address that was asked for.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The host name or address could not be turned into a socket address.
    #[error("cannot resolve the address: {0}")]
    Resolve(io::Error),
    /// A setting of the builder is out of its range.
    #[error("{option} must be {range}")]
    InvalidOption {
        /// The builder's method.
        option: &'static str,
        /// What it takes.
        range: &'static str,
    },
    /// The congestion controller's name or options are not known.
    #[error("congestion controller: {0}")]
    Controller(String),
    /// The operating system gave no randomness or no thread.
    #[error("the system could not give {what}: {source}")]
    System {
        /// What was asked for.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The peer's address is of the other family than the port's, IPv4 or IPv6, so nothing can be sent there.
    #[error(
        "{peer} cannot be reached from {local}: one address is of IPv4, the other of IPv6; bind one of the peer's family"
    )]
    WrongFamily {
        /// The address of this side's port.
        local: SocketAddr,
        /// Who was to be called.
        peer: SocketAddr,
    },
    /// No connection could be begun.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// Nobody answered in time, and the network said why: the port is closed, there is no route, sending is not allowed.
    #[error("no answer from {peer} within {time:?}: {}", crate::reach::advice(.source))]
    Unreachable {
        /// Who was called.
        peer: SocketAddr,
        /// How long this side tried: the time-out, or less if there were other addresses to try.
        time: Duration,
        /// What the network said. A hint only: anybody can forge such messages.
        source: io::Error,
    },
    /// The connection is over.
    #[error(transparent)]
    Lost(#[from] ConnectionLost),
    /// The stream was finished or closed by this side before.
    #[error("the connection was finished by this side")]
    Finished,
    /// The message is longer than the [send buffer](crate::Builder::send_buffer) or the peer's window, or the body of a
    /// [custom packet](crate::Connection::send_custom) longer than a packet's payload.
    #[error("the message of {len} bytes is longer than {longest}, the most that can be sent")]
    MessageTooLong {
        /// Its length in bytes.
        len: usize,
        /// The greatest possible length in bytes.
        longest: u64,
    },
    /// The peer ended the stream before as many bytes arrived as were announced.
    #[error("the stream ended after {received} of {expected} bytes")]
    EndedEarly {
        /// Bytes that arrived.
        received: u64,
        /// Bytes that were expected.
        expected: u64,
    },
    /// The file ended before as many bytes were read as were to be sent.
    #[error("the file ended {missing} bytes early: it was shortened meanwhile")]
    FileTooShort {
        /// Bytes that were not there.
        missing: u64,
    },
    /// A file could not be read or written.
    #[error("cannot {action} the file: {source}")]
    File {
        /// `read` or `write`.
        action: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The call's own time-out passed; the connection lives on.
    #[error("no result within {0:?}")]
    TimedOut(Duration),
    /// A [`Canceller`](crate::Canceller) ended the call; the connection lives on. Later calls that would have to wait end in
    /// the same way until [`Canceller::reset`](crate::Canceller::reset).
    #[error("cancelled")]
    Cancelled,
    /// There is a listener on this endpoint already.
    #[error("this endpoint has a listener already")]
    AlreadyListening,
    /// The listener was closed.
    #[error("the listener was closed")]
    ListenerClosed,
    /// The endpoint's driver thread is gone: it met a defect, and every connection of the endpoint is lost.
    #[error("the endpoint's driver thread stopped; open a new endpoint")]
    DriverStopped,
}

impl Error {
    /// The kind under which `std::io` knows such errors.
    ///
    /// Never [`io::ErrorKind::Interrupted`]: the standard library would repeat the call.
    pub fn kind(&self) -> io::ErrorKind {
        match self {
            Self::Bind { source, .. }
            | Self::Resolve(source)
            | Self::System { source, .. }
            | Self::Unreachable { source, .. }
            | Self::File { source, .. } => source.kind(),
            Self::InvalidOption { .. } | Self::Controller(_) | Self::MessageTooLong { .. } => {
                io::ErrorKind::InvalidInput
            }
            Self::WrongFamily { .. } | Self::Connect(ConnectError::InvalidAddress) => io::ErrorKind::InvalidInput,
            Self::Connect(ConnectError::TooManyConnections(_)) => io::ErrorKind::QuotaExceeded,
            Self::Connect(ConnectError::RendezvousUnderWay | ConnectError::AlreadyConnected) => {
                io::ErrorKind::AddrInUse
            }
            Self::Connect(ConnectError::StreamsOnly) => io::ErrorKind::Unsupported,
            Self::Connect(_) => io::ErrorKind::Other,
            Self::Lost(lost) => lost_kind(*lost),
            Self::Finished => io::ErrorKind::BrokenPipe,
            Self::EndedEarly { .. } | Self::FileTooShort { .. } => io::ErrorKind::UnexpectedEof,
            Self::TimedOut(_) => io::ErrorKind::TimedOut,
            Self::AlreadyListening => io::ErrorKind::AddrInUse,
            Self::ListenerClosed => io::ErrorKind::NotConnected,
            Self::Cancelled | Self::DriverStopped => io::ErrorKind::Other,
        }
    }
}

fn lost_kind(lost: ConnectionLost) -> io::ErrorKind {
    match lost {
        ConnectionLost::ClosedLocally => io::ErrorKind::NotConnected,
        ConnectionLost::ClosedByPeer => io::ErrorKind::BrokenPipe,
        ConnectionLost::Aborted | ConnectionLost::PeerError(_) => io::ErrorKind::ConnectionReset,
        ConnectionLost::ConnectTimeout(_)
        | ConnectionLost::PeerSilent(_)
        | ConnectionLost::NoProgress(_)
        | ConnectionLost::TooSlow { .. } => io::ErrorKind::TimedOut,
        ConnectionLost::Refused => io::ErrorKind::ConnectionRefused,
        ConnectionLost::PeerIncompatible(_) => io::ErrorKind::Unsupported,
        ConnectionLost::PeerMisbehaved(_) => io::ErrorKind::InvalidData,
        _ => io::ErrorKind::ConnectionAborted,
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        Self::new(error.kind(), error)
    }
}

impl From<StreamError> for Error {
    fn from(error: StreamError) -> Self {
        match error {
            StreamError::Lost(lost) => Self::Lost(lost),
            StreamError::Finished => Self::Finished,
            // The handles of this crate keep id and mode together and wait until they are connected, so the rest can
            // only mean that the connection was released.
            _ => Self::Lost(ConnectionLost::ClosedLocally),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cancelled_call_is_not_repeated_by_the_standard_library() {
        assert_ne!(io::Error::from(Error::Cancelled).kind(), io::ErrorKind::Interrupted);
    }

    #[test]
    fn a_full_endpoint_is_no_address_in_use() {
        assert_eq!(Error::from(ConnectError::TooManyConnections(1)).kind(), io::ErrorKind::QuotaExceeded);
        assert_eq!(Error::from(ConnectError::RendezvousUnderWay).kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn the_typed_error_survives_the_conversion() {
        let error = io::Error::from(Error::from(ConnectionLost::Refused));
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        assert!(matches!(
            error.get_ref().and_then(|inner| inner.downcast_ref()),
            Some(Error::Lost(ConnectionLost::Refused))
        ));
    }
}
