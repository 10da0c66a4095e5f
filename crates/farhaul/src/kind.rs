//! The kinds of connections: streams and messages.

use farhaul_proto::Mode;

use crate::connection::Connection;
use crate::message::MessageSocket;
use crate::stream::Stream;

/// What a connection carries: a [`Stream`] of bytes, or messages with boundaries ([`MessageSocket`]).
pub trait ConnectionKind: sealed::Sealed + Sized {
    /// The same connection for tasks, as `accept_async` and `connect_with_async` return it.
    #[cfg(feature = "tokio")]
    type Async: From<Self>;
}

impl ConnectionKind for Stream {
    #[cfg(feature = "tokio")]
    type Async = crate::tasks::AsyncStream;
}

impl ConnectionKind for MessageSocket {
    #[cfg(feature = "tokio")]
    type Async = crate::tasks::AsyncMessageSocket;
}

mod sealed {
    use super::{Connection, Mode};

    /// Closed, because a new kind of connection needs a new mode of the protocol.
    #[expect(unnameable_types, reason = "no other crate implements it")]
    pub trait Sealed {
        const MODE: Mode;
        fn of_connection(connection: Connection) -> Self;
    }
}

impl sealed::Sealed for Stream {
    const MODE: Mode = Mode::Stream;

    fn of_connection(connection: Connection) -> Self {
        Self::from_connection(connection)
    }
}

impl sealed::Sealed for MessageSocket {
    const MODE: Mode = Mode::Message;

    fn of_connection(connection: Connection) -> Self {
        Self::from_connection(connection)
    }
}
