//! A connection that carries messages with boundaries: UDT's SOCK_DGRAM.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use farhaul_proto::udt::{Message, MessageOptions};
use farhaul_proto::{ConnectionId, StreamError};

use crate::connection::Connection;
use crate::driver::Core;
use crate::error::Error;
use crate::port::Attempt;

/// Sends and receives whole messages, reliably unless a time to live is given.
///
/// A clone is a second handle of the same connection. It ends as a [`Stream`](crate::Stream) does. [`Connection`] has
/// the methods of both.
///
/// ```
/// # fn main() -> Result<(), farhaul::Error> {
/// let here = farhaul::Endpoint::plain("127.0.0.1:0")?;
/// let there = farhaul::Endpoint::plain("127.0.0.1:0")?;
/// let listener = there.listen_for_messages()?;
/// let sender = here.connect_with(there.local_addr(), farhaul::ConnectOptions::messages())?;
/// let (receiver, _peer) = listener.accept()?;
/// sender.send(b"one")?;
/// sender.send(b"two")?;
/// let mut room = [0; 16];
/// let first = receiver.recv(&mut room)?.expect("the sender did not close");
/// assert_eq!(&room[..first.len], b"one");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct MessageSocket {
    connection: Arc<Connection>,
}

/// A received message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Bytes written to the buffer.
    pub len: usize,
    /// The buffer was shorter than the message. The rest of the message is lost.
    pub truncated: bool,
}

/// Options for sending a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SendOptions {
    /// Drop the message if it was not delivered within this time. Default: never.
    pub time_to_live: Option<Duration>,
    /// Deliver it only after all earlier messages. Default: once it is complete.
    pub in_order: bool,
}

impl SendOptions {
    /// Drops the message if it was not delivered within `time`.
    pub fn time_to_live(mut self, time: Duration) -> Self {
        self.time_to_live = Some(time);
        self
    }

    /// Delivers the message only after all earlier ones.
    pub fn in_order(mut self) -> Self {
        self.in_order = true;
        self
    }
}

impl MessageSocket {
    pub(crate) fn from_connection(connection: Connection) -> Self {
        Self { connection: Arc::new(connection) }
    }

    /// Sends `message` whole, and waits for room if there is none.
    ///
    /// # Errors
    /// The message is longer than the send buffer. Or the connection is over, the time-out passed, or a canceller ended
    /// the call.
    pub fn send(&self, message: &[u8]) -> Result<(), Error> {
        self.send_with(message, SendOptions::default())
    }

    /// Sends `message` with a time to live or in order (`UDT::sendmsg`).
    ///
    /// # Errors
    /// As for [`send`](MessageSocket::send).
    pub fn send_with(&self, message: &[u8], options: SendOptions) -> Result<(), Error> {
        self.check_length(message)?;
        self.connection.when_writable(sending(self.connection.id(), message, options))
    }

    /// Receives the next message into `out`. `None` is the end: the peer closed, or this side
    /// [finished](Connection::finish), and no message is known to be missing.
    ///
    /// If the peer finished, it was the last message. If it dropped its socket or lost its network, later messages may
    /// be missing without a sign. UDT4 signals both in the same way, so a protocol on top should mark its last message.
    ///
    /// # Errors
    /// The connection was lost, or closed while a message was known to be missing. Or the time-out passed, or a
    /// canceller ended the call.
    pub fn recv(&self, out: &mut [u8]) -> Result<Option<Received>, Error> {
        self.connection.when_readable(receiving(self.connection.id(), out))
    }

    /// [`send_with`](MessageSocket::send_with) without waiting. Returns false if there is no room, or the connection is not
    /// established yet.
    ///
    /// # Errors
    /// As [`send`](MessageSocket::send), without time-out and canceller.
    pub fn try_send(&self, message: &[u8], options: SendOptions) -> Result<bool, Error> {
        self.check_length(message)?;
        Ok(self.connection.attempt(sending(self.connection.id(), message, options))?.is_some())
    }

    /// [`recv`](MessageSocket::recv) without waiting. The outer `None` means that no message is complete, and the inner one
    /// is the end.
    ///
    /// # Errors
    /// As [`recv`](MessageSocket::recv), without time-out and canceller.
    pub fn try_recv(&self, out: &mut [u8]) -> Result<Option<Option<Received>>, Error> {
        self.connection.attempt(receiving(self.connection.id(), out))
    }

    /// Checks that `message` can be sent at all.
    pub(crate) fn check_length(&self, message: &[u8]) -> Result<(), Error> {
        let (len, longest) = (message.len(), self.connection.longest_message());
        if len as u64 > longest { Err(Error::MessageTooLong { len, longest }) } else { Ok(()) }
    }
}

/// An attempt to send `message`. `None` while there is no room, or before the connection is established.
pub(crate) fn sending(id: ConnectionId, message: &[u8], options: SendOptions) -> impl Attempt<()> {
    let options = MessageOptions { ttl: options.time_to_live, in_order: options.in_order };
    move |core: &mut Core<_>, now| match core.transport.send_message(now, id, message, options) {
        Ok(taken) => Ok(taken.then_some(())),
        Err(StreamError::NotConnected) => Ok(None),
        Err(StreamError::MessageTooLong(longest)) => Err(Error::MessageTooLong { len: message.len(), longest }),
        Err(error) => Err(error.into()),
    }
}

/// An attempt to receive a message into `out`. `None` while none is complete, and `Some(None)` at the end.
pub(crate) fn receiving(id: ConnectionId, out: &mut [u8]) -> impl Attempt<Option<Received>> {
    move |core: &mut Core<_>, now| {
        Ok(match core.transport.recv_message(now, id, &mut *out)? {
            Message::Received { len, truncated } => Some(Some(Received { len, truncated })),
            Message::Pending => None,
            Message::End => Some(None),
        })
    }
}

impl Deref for MessageSocket {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}
