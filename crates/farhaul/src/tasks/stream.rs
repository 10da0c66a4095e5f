//! Streams for tasks.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::driver::Place;
use crate::stream::{Stream, reading, writing};

/// A [`Stream`] whose calls wait as tasks do.
///
/// Shutting it down ([`AsyncWrite::poll_shutdown`]) is [`finish`](AsyncStream::finish): it is done once the peer has
/// acknowledged everything. Dropping it without that aborts the connection.
///
/// **Time-outs.** There are none for tasks: wrap the call in `tokio::time::timeout`. Giving up a read loses nothing; giving
/// up `write_all` leaves open how much of the data was taken.
///
/// **UDT4 has no half-close.** A shutdown ends both directions: reading then gives what had come by then, and the end of the
/// stream. So `tokio::io::copy_bidirectional` comes to its end, but whichever side closes first closes for both: what the
/// peer of a stream sends after this side's shutdown is lost, with an error at the peer only. Where one side goes on sending
/// after the other has said its last word, that last word needs a sign in-band.
#[derive(Clone, Debug)]
pub struct AsyncStream {
    pub(super) inner: Stream,
    finishing: bool,
}

impl From<Stream> for AsyncStream {
    fn from(inner: Stream) -> Self {
        Self { inner, finishing: false }
    }
}

impl AsyncRead for AsyncStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let connection = &self.inner;
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
        let connection = &self.inner;
        let id = connection.id();
        connection.poll(Place::Write(id), cx, writing(id, data)).map_err(Into::into)
    }

    /// Done at once: written data leaves by itself.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Done once the peer has acknowledged everything; closes the connection in both directions, since UDT4 has no
    /// half-close: see [`AsyncStream`].
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.finishing {
            self.inner.begin_to_finish()?;
            self.finishing = true;
        }
        let connection = &self.inner;
        connection.poll(Place::Settle(connection.id()), cx, connection.is_finished()).map_err(Into::into)
    }
}
