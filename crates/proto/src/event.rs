//! What an endpoint tells its host.

use crate::error::ConnectionLost;

/// Names a connection of one endpoint. Never reused: an id kept too long names nothing, not somebody else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

impl ConnectionId {
    /// The id with these parts; only endpoints make ids.
    pub const fn from_parts(slot: u32, generation: u32) -> Self {
        Self { slot, generation }
    }

    /// Which place of the endpoint's table it takes; small and dense, so that hosts can index by it.
    pub const fn slot(self) -> usize {
        self.slot as usize
    }
}

/// Something that happened on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The connection that this side opened is established.
    Connected(ConnectionId),
    /// A peer opened a connection to this side.
    Accepted(ConnectionId),
    /// Data, a message, or the end of the stream can be read, after a read that found nothing.
    Readable(ConnectionId),
    /// There is room again after a write that found none.
    Writable(ConnectionId),
    /// After `finish`: everything was acknowledged, and the peer has been told that this side closed.
    Finished(ConnectionId),
    /// The peer says that it cannot store what it receives (error signal, type 8), with its code; libudt's only one is 4000,
    /// for a file. Said once. Anybody on the path can forge it, so the connection goes on; if it is aborted, goes silent
    /// or takes no data for five seconds, this is the reason given.
    PeerComplained(ConnectionId, u32),
    /// The connection is over; what arrived in order before can still be read.
    Closed(ConnectionId, ConnectionLost),
}

impl Event {
    /// The connection it is about.
    pub const fn connection(self) -> ConnectionId {
        match self {
            Self::Connected(id)
            | Self::Accepted(id)
            | Self::Readable(id)
            | Self::Writable(id)
            | Self::Finished(id)
            | Self::PeerComplained(id, _)
            | Self::Closed(id, _) => id,
        }
    }
}
