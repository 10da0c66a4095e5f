//! The connection of a socket: a stream or messages.

use std::sync::Arc;

use farhaul::{Connection, MessageSocket, Stream};

use crate::port::Port;

/// A connection, from the attempt to connect on.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) handle: Handle,
    /// Kept open until the connection has ended.
    pub(crate) port: Arc<Port>,
}

/// What it carries.
#[derive(Debug)]
pub(crate) enum Handle {
    Stream(Stream),
    Messages(MessageSocket),
}

impl Link {
    pub(crate) fn connection(&self) -> &Connection {
        match &self.handle {
            Handle::Stream(stream) => stream,
            Handle::Messages(messages) => messages,
        }
    }
}
