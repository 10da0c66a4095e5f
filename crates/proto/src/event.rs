//! Events that an endpoint reports to its driver.

use crate::error::ConnectionLost;

/// Names a connection of one endpoint. Ids are never reused, so an outdated id names no connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId {
    /// Its place in the endpoint.
    pub slot: u32,
    pub(crate) generation: u32,
}

impl ConnectionId {
    /// Builds an id from its parts. Only endpoints make ids.
    pub const fn from_parts(slot: u32, generation: u32) -> Self {
        Self { slot, generation }
    }

    /// Its slot in the endpoint's table. Slots are small and dense, so drivers can index arrays by them.
    pub const fn slot(self) -> usize {
        self.slot as usize
    }
}

/// An event on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The connection that this side opened is established.
    Connected(ConnectionId),
    /// A peer opened a connection to this side.
    Accepted(ConnectionId),
    /// Data, a message, or the end of the stream can be read. Follows a read that returned nothing.
    Readable(ConnectionId),
    /// The send buffer has room again. Follows a write that was not taken in full.
    Writable(ConnectionId),
    /// Everything was acknowledged after `finish_sending`. The peer may still send.
    SendingFinished(ConnectionId),
    /// Everything was acknowledged after `finish`, or both directions have ended one by one. The endpoint now sends the peer its shutdown.
    Finished(ConnectionId),
    /// The peer reports that it cannot store the data (error signal, type 8), with its error code. libudt uses only
    /// 4000, for files.
    ///
    /// Reported once per connection. Any node on the path can forge the signal, so the connection continues. The signal
    /// becomes the reason of the end if the connection is aborted, the peer falls silent, or it takes no data for 5 s.
    PeerComplained(ConnectionId, u32),
    /// The connection is over. Data that arrived in order before can still be read.
    Closed(ConnectionId, ConnectionLost),
}

impl Event {
    /// The connection that the event concerns.
    pub const fn connection(self) -> ConnectionId {
        match self {
            Self::Connected(id)
            | Self::Accepted(id)
            | Self::Readable(id)
            | Self::Writable(id)
            | Self::SendingFinished(id)
            | Self::Finished(id)
            | Self::PeerComplained(id, _)
            | Self::Closed(id, _) => id,
        }
    }
}
