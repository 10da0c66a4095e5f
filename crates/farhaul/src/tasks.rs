//! Streams for tasks: the same driver thread and the same connections, with wakers in place of blocked threads.
//!
//! Nothing here needs a particular runtime; tokio's traits are what most asynchronous code is written against.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use farhaul_proto::Mode;
use farhaul_proto::udt::ConnectOptions;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::driver::{Core, Place};
use crate::endpoint::{Attempted, Endpoint};
use crate::error::Error;
use crate::listener::{Accept, Listener};
use crate::stream::{Stream, reading, writing};

/// A [`Stream`] whose calls wait as tasks do.
///
/// Shutting it down ([`AsyncWrite::poll_shutdown`]) is [`finish`](AsyncStream::finish): it is done once the peer has
/// acknowledged everything. Dropping it without that aborts the connection.
///
/// **UDT4 has no half-close.** A shutdown ends both directions: reading then gives what had come by then, and the end of the
/// stream. So `tokio::io::copy_bidirectional` comes to its end, but whichever side closes first closes for both: what the
/// peer of a stream sends after this side's shutdown is lost, with an error at the peer only. Where one side goes on sending
/// after the other has said its last word, that last word needs a sign in-band.
#[derive(Clone, Debug)]
pub struct AsyncStream {
    stream: Stream,
    finishing: bool,
}

impl AsyncStream {
    /// The stream for blocking calls.
    pub fn as_blocking(&self) -> &Stream {
        &self.stream
    }

    /// Waits until the peer has acknowledged everything that was written, then closes the connection.
    ///
    /// # Errors
    /// The connection was lost before that.
    pub async fn finish(&mut self) -> Result<(), Error> {
        poll_fn(|cx| self.poll_finish(cx)).await
    }

    fn poll_finish(&mut self, cx: &Context<'_>) -> Poll<Result<(), Error>> {
        let connection = &self.stream;
        if !self.finishing {
            connection.begin_to_finish()?;
            self.finishing = true;
        }
        connection.poll(Place::Settle(connection.id()), cx, connection.is_finished())
    }
}

impl From<Stream> for AsyncStream {
    fn from(stream: Stream) -> Self {
        Self { stream, finishing: false }
    }
}

impl Endpoint {
    /// [`connect`](Endpoint::connect) for tasks. Dropping the future gives the attempt up.
    ///
    /// # Errors
    /// Nobody answers within the connect time-out, the peer refuses, or somebody cancelled.
    pub async fn connect_async(&self, peer: SocketAddr) -> Result<AsyncStream, Error> {
        let to = Attempted { peer, has_alternative: false };
        let (connection, mut reaching) = self.begin(to, ConnectOptions { mode: Mode::Stream, rendezvous: false })?;
        let id = connection.id();
        let mut look = |core: &mut Core<_>, now| reaching.look(core, now, id);
        poll_fn(|cx| connection.poll(Place::Settle(id), cx, &mut look)).await?;
        Ok(Stream::from_connection(connection).into())
    }
}

impl<S: Accept> Listener<S> {
    /// [`accept`](Listener::accept) for tasks. Dropping the future loses no connection.
    ///
    /// # Errors
    /// The listener was closed, or somebody cancelled.
    pub async fn accept_async(&self) -> Result<(S, SocketAddr), Error> {
        poll_fn(|cx| self.poll_accept(cx)).await
    }
}

impl AsyncRead for AsyncStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let connection = &self.stream;
        let room = out.initialize_unfilled();
        if room.is_empty() {
            return Poll::Ready(Ok(()));
        }
        let id = connection.id();
        let poll = connection.poll(Place::Read(id), cx, reading(id, room));
        poll.map(|result| {
            out.advance(result?);
            Ok(())
        })
    }
}

impl AsyncWrite for AsyncStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        if data.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let connection = &self.stream;
        let id = connection.id();
        connection.poll(Place::Write(id), cx, writing(id, data)).map_err(Into::into)
    }

    /// Done at once: written data leaves by itself.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_finish(cx).map_err(Into::into)
    }
}
