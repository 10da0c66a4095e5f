//! Message sockets for tasks.

use crate::driver::WaitPlace;
use crate::error::Error;
use crate::message::{MessageSocket, Received, SendOptions, receiving, sending};

/// A [`MessageSocket`] whose calls wait as tasks do.
///
/// A clone is a second handle of the same connection. For time-outs, wrap a call in `tokio::time::timeout`. An
/// abandoned `recv` loses no message, and an abandoned `send` has sent nothing.
#[derive(Clone, Debug)]
pub struct AsyncMessageSocket {
    pub(super) inner: MessageSocket,
}

impl AsyncMessageSocket {
    /// Sends `message` whole, and waits for room if there is none.
    ///
    /// # Errors
    /// The message is longer than the send buffer; the connection is over; a canceller ended the call.
    pub async fn send(&self, message: &[u8]) -> Result<(), Error> {
        self.send_with(message, SendOptions::default()).await
    }

    /// Sends `message` with a time to live or in order (`UDT::sendmsg`).
    ///
    /// # Errors
    /// As [`send`](AsyncMessageSocket::send).
    pub async fn send_with(&self, message: &[u8], options: SendOptions) -> Result<(), Error> {
        self.inner.check_length(message)?;
        let id = self.inner.id();
        self.inner.wait(WaitPlace::Write(id), sending(id, message, options)).await
    }

    /// Receives the next message into `out`. `None` is the end, as far as UDT4 shows it: see [`MessageSocket::recv`].
    ///
    /// # Errors
    /// The connection was lost, or closed while a message was known to be missing; a canceller ended the call.
    pub async fn recv(&self, out: &mut [u8]) -> Result<Option<Received>, Error> {
        let id = self.inner.id();
        self.inner.wait(WaitPlace::Read(id), receiving(id, out)).await
    }
}

impl From<MessageSocket> for AsyncMessageSocket {
    fn from(inner: MessageSocket) -> Self {
        Self { inner }
    }
}
