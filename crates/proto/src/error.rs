//! What can go wrong, and whose fault it is.

use core::time::Duration;

/// Why no connection can be begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The table of connections is full; close some.
    #[error("this endpoint holds as many connections as it may ({0})")]
    TooManyConnections(usize),
    /// The address has port zero or is unspecified.
    #[error("the peer's address has no port or no host")]
    InvalidAddress,
    /// The protocol tells connections apart by their addresses alone, and this endpoint has one with that address.
    #[error("there is a connection with this address already, and the protocol knows only one between two addresses")]
    AlreadyConnected,
    /// The protocol has streams between a caller and a listener, and nothing else.
    #[error("the 2004 protocol has neither messages nor rendezvous: use UDT4 for these")]
    StreamsOnly,
    /// A rendezvous with this address is under way already.
    #[error("a rendezvous with this address is under way")]
    RendezvousUnderWay,
}

/// Why a connection is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectionLost {
    /// This side closed it.
    #[error("closed by this side")]
    ClosedLocally,
    /// The peer closed it, and nothing that is known of was missing. UDT4's shutdown does not say how much was sent, so a libudt
    /// peer that closes before its last packets were delivered looks the same.
    #[error("closed by the peer")]
    ClosedByPeer,
    /// The peer [aborted](crate::Streams::abort) it, or closed it while data was known to be missing here or some of this side's
    /// was not acknowledged.
    #[error("the peer ended the connection before everything was transferred")]
    Aborted,
    /// Nobody answered the handshake in time: no program listens there, or UDP is blocked.
    #[error("no answer within {0:?}: nothing listens there, or UDP is blocked on the way")]
    ConnectTimeout(Duration),
    /// The peer refused the connection (request type 1002).
    #[error("the peer refused the connection: it accepts no more, or speaks another version or socket type")]
    Refused,
    /// Nothing was heard from the peer for too long.
    #[error("nothing heard from the peer for {0:?}")]
    PeerSilent(Duration),
    /// This side's data made no progress for too long although the peer is alive.
    #[error("the peer took no data for {0:?}")]
    NoProgress(Duration),
    /// This side's data went too slowly for the [minimum progress](crate::Config::min_progress) that is asked for.
    #[error("the peer took only {bytes} bytes in {time:?}")]
    TooSlow {
        /// What it took.
        bytes: u64,
        /// In this time.
        time: Duration,
    },
    /// The peer speaks UDT4 in a way that this side cannot serve.
    #[error("incompatible peer: {0}")]
    PeerIncompatible(PeerIncompatible),
    /// The peer broke the protocol.
    #[error("protocol violation by the peer: {0}")]
    PeerMisbehaved(PeerMisbehaved),
    /// The peer reported that it cannot write what it receives (error signal, type 8), and then left or took no more.
    #[error("the peer reported error {0}: it could not store the data")]
    PeerError(u32),
}

/// In what the peer differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PeerIncompatible {
    /// One side wants a stream, the other messages.
    #[error("one side uses stream mode and the other message mode")]
    SocketType,
    /// The packet size it offers is too small to be useful (attack A5).
    #[error("its packet size of {0} bytes is too small")]
    PacketSize(u32),
}

/// What the peer did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PeerMisbehaved {
    /// The handshake answer echoed another initial sequence number than ours (libudt's error 1004).
    #[error("the handshake answer did not echo our initial sequence number")]
    SequenceNotEchoed,
    /// It never sent a packet again that it was told is missing, although it is alive: it takes it for received. Somebody
    /// may have acknowledged it in this side's name.
    #[error("a missing packet was not sent again for {0:?}, as if it had been acknowledged")]
    GapNotRepaired(Duration),
}
