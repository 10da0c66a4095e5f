//! The connection of a socket: a stream or messages.

use std::sync::Arc;

use farhaul::{Connection, MessageSocket, Stream};

use crate::port::Port;

/// A connection, from the attempt to connect on.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) channel: Channel,
    /// Kept open until the connection has ended.
    pub(crate) port: Arc<Port>,
}

/// What it carries.
#[derive(Debug)]
pub(crate) enum Channel {
    Stream(Stream),
    Messages(MessageSocket),
}

impl Link {
    pub(crate) fn connection(&self) -> &Connection {
        match &self.channel {
            Channel::Stream(stream) => stream,
            Channel::Messages(messages) => messages,
        }
    }
}
