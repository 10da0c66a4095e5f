//! Errors of this crate. Each names the side at fault.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;

use farhaul_cc::SpecError;
use farhaul_proto::{ConnectError, ConnectionLost, SecurityFault, StreamError};

use crate::code::Code;

/// Why a port or a connection cannot have a congestion controller.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControllerError {
    /// The name or an option is unknown.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The protocol, by its name, has none of the user's choice.
    #[error("the protocol '{0}' has none, because its own rules govern the rate")]
    NoneIn(&'static str),
}

/// Why a call of this crate failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The UDP port could not be opened. It is taken, or the address does not belong to this machine.
    #[error("cannot open UDP port {address}: {source}")]
    Bind {
        /// The requested address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The TCP port of a protocol with control channels could not be opened for listening. Another program has it.
    #[error("cannot open TCP port {address}, which this protocol needs beside the UDP port: {source}")]
    BindTcp {
        /// The address, with the number of the UDP port.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The host name or address could not be resolved to a socket address.
    #[error("cannot resolve the address: {0}")]
    Resolve(io::Error),
    /// A setting of the builder is out of its range.
    #[error("{option} must be {range}")]
    InvalidOption {
        /// The builder's method.
        option: &'static str,
        /// The permitted values.
        range: &'static str,
    },
    /// The congestion controller cannot be this one.
    #[error("congestion controller: {0}")]
    Controller(#[from] ControllerError),
    /// Nobody chose whether connections are encrypted.
    #[error("choose the protection of the port: Builder::secure encrypts, Builder::plain does not")]
    NoProtection,
    /// The port cannot have plain clients beside encrypted ones: it was opened without
    /// [`plain_clients`](crate::Builder::plain_clients), it does not [encrypt](crate::Builder::secure), or its protocol is not UDT4.
    #[error("plain clients beside encrypted ones need Builder::secure, Builder::plain_clients and the protocol udt")]
    NoPlainClients,
    /// The operating system supplied no randomness or no thread.
    #[error("the system could not supply {what}: {source}")]
    System {
        /// The missing resource.
        what: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// The peer's address and the port are of different families, IPv4 and IPv6, so the port cannot send there.
    #[error(
        "{peer} cannot be reached from {local}: one address is IPv4, the other IPv6; bind one of the peer's family"
    )]
    WrongFamily {
        /// The address of this side's port.
        local: SocketAddr,
        /// The address of the peer.
        peer: SocketAddr,
    },
    /// The connection attempt could not start.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// Nobody answered in time, and the network reported a reason. The port is closed, there is no route, or sending is
    /// forbidden.
    #[error("no answer from {peer} within {time:?}: {}", advice(.source))]
    Unreachable {
        /// The address of the peer.
        peer: SocketAddr,
        /// Time of the attempt: the time-out, or less if there were other addresses to try or the port is closed.
        time: Duration,
        /// The network's error. It is only a hint, because anybody can forge such messages.
        source: io::Error,
    },
    /// The connection is over.
    #[error(transparent)]
    Lost(#[from] ConnectionLost),
    /// This side finished or closed the stream before.
    #[error("the connection was finished by this side")]
    Finished,
    /// The connection cannot end one direction alone. It is not encrypted, its protocol is not UDT4, or its peer is an older
    /// program. See [`Stream::has_half_close`](crate::Stream::has_half_close).
    #[error(
        "this connection cannot end one direction alone: that needs encryption, the protocol udt, and a peer that can"
    )]
    NoHalfClose,
    /// The protocol cannot change the cap on its rate: see [`Connection::set_max_rate`](crate::Connection::set_max_rate).
    #[error("this connection cannot change the cap on its rate, because its protocol has a rate of its own")]
    FixedCap,
    /// The congestion controller cannot be replaced: see [`Connection::set_controller`](crate::Connection::set_controller).
    #[error("this connection has no congestion controller that can be replaced, because its protocol has its own law")]
    FixedController,
    /// The message exceeds the [send buffer](crate::Builder::send_buffer) or the peer's window. Or the body of a
    /// [custom packet](crate::Connection::send_custom) exceeds a packet's payload.
    #[error("the message of {len} bytes exceeds the limit of {longest} bytes")]
    MessageTooLong {
        /// Its length in bytes.
        len: usize,
        /// The largest possible length in bytes.
        longest: u64,
    },
    /// The peer ended the stream before the announced number of bytes arrived.
    #[error("the stream ended after {received} of {expected} bytes")]
    EndedEarly {
        /// Bytes received.
        received: u64,
        /// Bytes expected.
        expected: u64,
    },
    /// The file ended before all requested bytes were read.
    #[error("the file ended {missing} bytes early: it was shortened meanwhile")]
    FileTooShort {
        /// Missing bytes.
        missing: u64,
    },
    /// A file could not be read or written.
    #[error("cannot {action} the file: {source}")]
    File {
        /// `read` or `write`.
        action: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// The call's own time-out passed. The connection survives.
    #[error("no result within {0:?}")]
    TimedOut(Duration),
    /// A [`Canceller`](crate::Canceller) ended the call. The connection survives. Later calls that would wait end in
    /// the same way until [`Canceller::reset`](crate::Canceller::reset).
    #[error("cancelled")]
    Cancelled,
    /// The endpoint already has a listener.
    #[error("this endpoint already has a listener")]
    AlreadyListening,
    /// The endpoint already has a control stream.
    #[error("this endpoint already has a control stream: drop it before another one begins")]
    HasControlStream,
    /// On a port with encryption, a control stream needs a secure connection.
    #[error("this port is encrypted, so a control stream needs one of its encrypted connections: begin it there")]
    NeedsConnection,
    /// The listener was closed.
    #[error("the listener was closed")]
    ListenerClosed,
    /// The endpoint's driver thread stopped because of a defect. Every connection of the endpoint is lost.
    #[error("the endpoint's driver thread stopped; open a new endpoint")]
    DriverStopped,
}

impl Error {
    /// The kind of this failure, the same in every language.
    pub fn code(&self) -> Code {
        self.class().0
    }

    /// The `std::io` kind of this error.
    ///
    /// Never [`io::ErrorKind::Interrupted`], because the standard library would repeat the call.
    pub fn kind(&self) -> io::ErrorKind {
        self.class().1
    }

    /// Both kinds of this failure: the table of all of them.
    fn class(&self) -> (Code, ErrorKind) {
        match self {
            Self::Bind { source, .. } | Self::BindTcp { source, .. } => match source.kind() {
                ErrorKind::AddrInUse => (Code::AddressInUse, ErrorKind::AddrInUse),
                kind => (Code::AddressUnavailable, kind),
            },
            Self::Resolve(source) => (Code::NameUnresolved, source.kind()),
            Self::InvalidOption { .. }
            | Self::Controller(_)
            | Self::NoProtection
            | Self::NoPlainClients
            | Self::NeedsConnection => (Code::Usage, ErrorKind::InvalidInput),
            Self::System { source, .. } => (Code::System, source.kind()),
            Self::DriverStopped => (Code::System, ErrorKind::Other),
            Self::WrongFamily { .. } => (Code::NoRoute, ErrorKind::InvalidInput),
            Self::Connect(error) => class_of_attempt(error),
            Self::Unreachable { source, .. } => match source.kind() {
                kind @ (ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable) => (Code::NoRoute, kind),
                kind => (Code::ConnectTimeout, kind),
            },
            Self::Lost(lost) => class_of_loss(*lost),
            Self::Finished => (Code::Finished, ErrorKind::BrokenPipe),
            Self::NoHalfClose | Self::FixedCap | Self::FixedController => (Code::Unsupported, ErrorKind::Unsupported),
            Self::MessageTooLong { .. } => (Code::MessageTooLong, ErrorKind::InvalidInput),
            Self::EndedEarly { .. } | Self::FileTooShort { .. } => (Code::EndedEarly, ErrorKind::UnexpectedEof),
            Self::File { source, .. } => (Code::LocalIo, source.kind()),
            Self::TimedOut(_) => (Code::TimedOut, ErrorKind::TimedOut),
            Self::Cancelled => (Code::Interrupted, ErrorKind::Other),
            Self::AlreadyListening | Self::HasControlStream => (Code::AddressInUse, ErrorKind::AddrInUse),
            Self::ListenerClosed => (Code::Closed, ErrorKind::NotConnected),
        }
    }
}

/// Advice for users on a network error.
fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::ConnectionRefused => {
            "its host says that nothing listens on this UDP port; start the listening side first, and check the port"
        }
        ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => {
            "there is no route; check the address, and that the network is up"
        }
        ErrorKind::PermissionDenied => "this machine may not send there; check its firewall and the address",
        _ => "the system cannot send there; check the address",
    }
}

const fn class_of_attempt(error: &ConnectError) -> (Code, ErrorKind) {
    match error {
        ConnectError::TooManyConnections(_) => (Code::TooManyConnections, ErrorKind::QuotaExceeded),
        ConnectError::InvalidAddress => (Code::Usage, ErrorKind::InvalidInput),
        ConnectError::StreamsOnly => (Code::Usage, ErrorKind::Unsupported),
        ConnectError::AlreadyConnected | ConnectError::RendezvousUnderWay => (Code::AddressInUse, ErrorKind::AddrInUse),
        ConnectError::NoTrust => (Code::HostKeyUnknown, ErrorKind::PermissionDenied),
        _ => (Code::Failed, ErrorKind::Other),
    }
}

fn class_of_loss(lost: ConnectionLost) -> (Code, ErrorKind) {
    match lost {
        ConnectionLost::ClosedLocally => (Code::Closed, ErrorKind::NotConnected),
        ConnectionLost::ClosedByPeer => (Code::PeerLost, ErrorKind::BrokenPipe),
        ConnectionLost::Aborted | ConnectionLost::PeerError(_) => (Code::PeerLost, ErrorKind::ConnectionReset),
        ConnectionLost::ConnectTimeout(_) => (Code::ConnectTimeout, ErrorKind::TimedOut),
        ConnectionLost::HandshakeTimeout(_) => (Code::Busy, ErrorKind::TimedOut),
        ConnectionLost::PeerSilent(_) | ConnectionLost::NoProgress(_) | ConnectionLost::TooSlow { .. } => {
            (Code::PeerLost, ErrorKind::TimedOut)
        }
        ConnectionLost::UdpBlocked(_) => (Code::UdpBlocked, ErrorKind::ConnectionAborted),
        ConnectionLost::Refused => (Code::PeerRefused, ErrorKind::ConnectionRefused),
        ConnectionLost::ChannelRefused => (Code::PeerRefused, ErrorKind::ConnectionAborted),
        ConnectionLost::PeerIncompatible(_) => (Code::Protocol, ErrorKind::Unsupported),
        ConnectionLost::PeerMisbehaved(_) => (Code::Protocol, ErrorKind::InvalidData),
        ConnectionLost::Insecure(SecurityFault::UnknownKey) => (Code::HostKeyUnknown, ErrorKind::PermissionDenied),
        ConnectionLost::Insecure(SecurityFault::NotAdmitted) => (Code::NotAdmitted, ErrorKind::PermissionDenied),
        ConnectionLost::Insecure(SecurityFault::Handshake) => (Code::Handshake, ErrorKind::PermissionDenied),
        ConnectionLost::Insecure(_) => (Code::Protocol, ErrorKind::PermissionDenied),
        ConnectionLost::ControllerFailed(_) => (Code::ControllerFailed, ErrorKind::Other),
        _ => (Code::PeerLost, ErrorKind::ConnectionAborted),
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
            StreamError::NoHalfClose => Self::NoHalfClose,
            // The handles of this crate keep id and mode together and wait until they are connected. So any other error
            // means that the connection was released.
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

    #[test]
    fn a_network_error_is_named_with_advice() {
        for (errno, word) in [
            (rustix::io::Errno::NETUNREACH, "route"),
            (rustix::io::Errno::HOSTUNREACH, "route"),
            (rustix::io::Errno::CONNREFUSED, "port"),
            (rustix::io::Errno::ACCESS, "firewall"),
        ] {
            assert!(advice(&errno.into()).contains(word), "{errno}");
        }
    }
}
