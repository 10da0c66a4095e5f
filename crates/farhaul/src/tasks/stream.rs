//! Streams for tasks.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::driver::{Place, Registration};
use crate::stream::{Stream, reading, writing};

/// A [`Stream`] whose calls wait as tasks do.
///
/// Shutting it down ([`AsyncWrite::poll_shutdown`]) is [`finish`](AsyncStream::finish): it completes once the peer has
/// acknowledged everything. Dropping it without that aborts the connection.
///
/// **Time-outs.** Tasks have none: wrap the call in `tokio::time::timeout`. An abandoned read loses nothing. After an
/// abandoned `write_all`, the number of bytes taken is unknown.
///
/// **Wakers.** In each direction, a handle keeps the waker of the last task that polled it. It keeps it until that task
/// is woken, another one polls, or the handle is dropped. So several tasks that read at once need a clone each.
///
/// **UDT4 has no half-close.** A shutdown ends both directions. Reading then returns the data that had arrived by then,
/// and the end of the stream. So `tokio::io::copy_bidirectional` completes, but the side that closes first closes for
/// both. Data that a peer sends after this side's shutdown is lost, with an error at the peer only. Where one side goes
/// on sending after the other's last data, the protocol must mark that last data in-band.
#[derive(Debug)]
pub struct AsyncStream {
    pub(super) inner: Stream,
    finishing: bool,
    waits: Waits,
}

/// The last task that polled, for each condition that a handle waits for.
#[derive(Debug, Default)]
struct Waits {
    read: Registration,
    write: Registration,
    settle: Registration,
}

impl From<Stream> for AsyncStream {
    fn from(inner: Stream) -> Self {
        Self { inner, finishing: false, waits: Waits::default() }
    }
}

impl Clone for AsyncStream {
    /// A second handle, without a waiting task.
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), finishing: self.finishing, waits: Waits::default() }
    }
}

impl Drop for AsyncStream {
    fn drop(&mut self) {
        let (connection, id) = (&self.inner, self.inner.id());
        connection.withdraw(Place::Read(id), &mut self.waits.read);
        connection.withdraw(Place::Write(id), &mut self.waits.write);
        connection.withdraw(Place::Settle(id), &mut self.waits.settle);
    }
}

impl AsyncRead for AsyncStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let Self { inner: connection, waits, .. } = &mut *self;
        let room = out.initialize_unfilled();
        if room.is_empty() {
            return Poll::Ready(Ok(()));
        }
        let id = connection.id();
        let poll = connection.poll(Place::Read(id), cx, &mut waits.read, reading(id, room));
        poll.map(|result| {
            out.advance(result?);
            Ok(())
        })
    }
}

impl AsyncWrite for AsyncStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        if data.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let Self { inner: connection, waits, .. } = &mut *self;
        let id = connection.id();
        connection.poll(Place::Write(id), cx, &mut waits.write, writing(id, data)).map_err(Into::into)
    }

    /// Completes at once: written data leaves without it.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Completes once the peer has acknowledged everything. Closes the connection in both directions, since UDT4 has no
    /// half-close: see [`AsyncStream`].
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.finishing {
            self.inner.begin_to_finish()?;
            self.finishing = true;
        }
        let Self { inner: connection, waits, .. } = &mut *self;
        let place = Place::Settle(connection.id());
        connection.poll(place, cx, &mut waits.settle, connection.is_finished()).map_err(Into::into)
    }
}
