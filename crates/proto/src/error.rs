//! Errors of connections. Each names the side at fault.

use core::time::Duration;

use farhaul_cc::ControllerFailure;

/// Why a connection attempt cannot start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The endpoint is at its limit of connections. Close some.
    #[error("the endpoint is at its limit of {0} connections")]
    TooManyConnections(usize),
    /// The address has port zero or is unspecified.
    #[error("the peer's address has port zero or is unspecified")]
    InvalidAddress,
    /// The endpoint has a connection with this address. The protocol identifies connections by their addresses alone.
    #[error("already connected to this address: the protocol allows one connection between two addresses")]
    AlreadyConnected,
    /// The protocol has only streams between a caller and a listener.
    #[error("this protocol has neither messages nor rendezvous; use UDT4 for these")]
    StreamsOnly,
    /// Nothing is known that the key of this peer could be compared with.
    #[error("no key of this peer is known")]
    NoTrust,
    /// A rendezvous with this address is already in progress.
    #[error("a rendezvous with this address is already in progress")]
    RendezvousUnderWay,
}

/// Why a connection is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectionLost {
    /// This side closed it.
    #[error("closed by this side")]
    ClosedLocally,
    /// The peer closed it, and no data is known to be missing. UDT4's shutdown does not tell how much was sent. So a
    /// libudt peer that closes before its last packets were delivered looks the same.
    #[error("closed by the peer")]
    ClosedByPeer,
    /// The peer [aborted](crate::Streams::abort) it. Or the peer closed it while data was known to be missing here, or
    /// while some of this side's data was not acknowledged.
    #[error("the peer ended the connection before everything was transferred")]
    Aborted,
    /// The control channel works, but no datagram got through within this time. A firewall drops UDP.
    #[error("UDP is blocked: the control channel works, but no datagram got through within {0:?}")]
    UdpBlocked(Duration),
    /// The peer's host refused the control channel. No program listens there.
    #[error("the host refused the connection: no program listens there")]
    ChannelRefused,
    /// The control channel broke, or could not be opened.
    #[error("the control channel broke")]
    ChannelBroken,
    /// Nobody answered the handshake in time. No program listens there, or a firewall blocks UDP.
    #[error("no answer within {0:?}: nothing listens there, or a firewall blocks UDP")]
    ConnectTimeout(Duration),
    /// The peer answered, and the handshake did not end in time. The peer is very busy, or most packets are lost.
    #[error("the peer answered, and did not complete the handshake within {0:?}")]
    HandshakeTimeout(Duration),
    /// The peer refused the connection (request type 1002).
    #[error("the peer refused the connection: it is at its limit, or uses another version or socket type")]
    Refused,
    /// No packet came from the peer for this long.
    #[error("no packet from the peer for {0:?}")]
    PeerSilent(Duration),
    /// The peer is alive but acknowledged no data for this long.
    #[error("the peer accepted no data for {0:?}")]
    NoProgress(Duration),
    /// The peer accepted data more slowly than the [minimum progress](crate::Config::min_progress).
    #[error("the peer accepted only {bytes} bytes in {time:?}")]
    TooSlow {
        /// Bytes acknowledged in that time.
        bytes: u64,
        /// The length of the period.
        time: Duration,
    },
    /// The peer speaks UDT4 in a mode or with sizes that this side does not support.
    #[error("incompatible peer: {0}")]
    PeerIncompatible(PeerIncompatible),
    /// The peer violated the protocol.
    #[error("protocol violation by the peer: {0}")]
    PeerMisbehaved(PeerMisbehaved),
    /// The peer reported that it cannot store the data (error signal, type 8), then left or accepted no more.
    #[error("the peer reported error {0}: it could not store the data")]
    PeerError(u32),
    /// The connection cannot be protected.
    #[error("no secure connection: {0}")]
    Insecure(SecurityFault),
    /// The congestion controller of this side panicked, or set something that no connection can use.
    #[error("{0}")]
    ControllerFailed(ControllerFailure),
}

/// Why a connection cannot be protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SecurityFault {
    /// The peer's key is not one that this side trusts.
    #[error("the peer's key is not the one that is expected")]
    UnknownKey,
    /// The peer does not admit this side's key.
    #[error("the peer does not admit this side's key")]
    NotAdmitted,
    /// The handshake failed: no common cipher, a damaged message, a wrong signature.
    #[error("the handshake failed")]
    Handshake,
    /// The peer speaks another version of packet protection.
    #[error("the peer speaks another version of packet protection")]
    Version,
    /// The peer does not follow to new keys, and the old ones have reached their limit.
    #[error("the peer does not follow to new keys")]
    KeyLimit,
    /// Too many forged packets were tried with one key.
    #[error("too many forged packets")]
    Forgeries,
}

/// The incompatible property of the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PeerIncompatible {
    /// The program there is no Farhaul, or speaks no blast protocol.
    #[error("the program there is no Farhaul with a control channel")]
    NoFarhaul,
    /// Another version of the control channel.
    #[error("it speaks version {0} of the control channel")]
    ChannelVersion(u8),
    /// Another protocol.
    #[error("it speaks another protocol; choose the same on both sides")]
    OtherProtocol,
    /// One side uses stream mode, the other message mode.
    #[error("one side uses stream mode and the other message mode")]
    SocketType,
    /// The peer offers a packet size too small to be useful (attack A5).
    #[error("its packet size of {0} bytes is too small")]
    PacketSize(u32),
    /// One side alone calls by rendezvous, or what came was no call of the peer.
    #[error("one side alone is in a rendezvous; both must be, or one must listen")]
    Rendezvous,
}

/// The peer's violation of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PeerMisbehaved {
    /// The handshake answer did not echo this side's initial sequence number (libudt's error 1004).
    #[error("the handshake answer did not echo this side's initial sequence number")]
    SequenceNotEchoed,
    /// The peer is alive but never retransmitted a packet reported missing, so it considers the packet received.
    /// Somebody may have forged an acknowledgement in this side's name.
    #[error("the peer did not retransmit a missing packet for {0:?}, as if it had been acknowledged")]
    GapNotRepaired(Duration),
    /// The peer acknowledged packets that were never sent. It wants more than its share of the path (attack B8).
    #[error("the peer acknowledged packets that were never sent to it")]
    AcknowledgedUnsent,
    /// The peer ended its direction of the stream, and then moved the end or sent data behind it (attack B21).
    #[error("the peer ended its stream, and then moved the end or sent more")]
    EndContradicted,
    /// A control record that no peer of this protocol sends.
    #[error("control record: {0}")]
    ControlRecord(ControlFault),
}

impl PeerMisbehaved {
    /// A control record that does not fit the state of the transfer.
    pub const fn out_of_turn(record: &'static str) -> Self {
        Self::ControlRecord(ControlFault::OutOfTurn(record))
    }

    /// A value that its field in a control record never has.
    pub const fn out_of_range(field: &'static str, value: u64, valid: &'static str) -> Self {
        Self::ControlRecord(ControlFault::OutOfRange { field, value, valid })
    }
}

/// The fault of a control record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ControlFault {
    /// No record has this type.
    #[error("no record has the type {0}")]
    UnknownType(u32),
    /// The record has a length that its type never has.
    #[error("{record} has {length} bytes, valid is {valid}")]
    Length {
        /// The name of the record.
        record: &'static str,
        /// Its length in bytes.
        length: u64,
        /// The valid length in bytes.
        valid: u64,
    },
    /// A value that its field never has.
    #[error("{field} is {value}, valid is {valid}")]
    OutOfRange {
        /// The name of the field.
        field: &'static str,
        /// The value on the wire.
        value: u64,
        /// The valid values, in words.
        valid: &'static str,
    },
    /// A record that does not fit the state of the transfer.
    #[error("{0} is out of turn")]
    OutOfTurn(&'static str),
}
