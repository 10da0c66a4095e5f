//! Streams for tasks.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::driver::{Registration, WaitPlace};
use crate::error::Error;
use crate::stream::{Stream, reading, writing};

/// A [`Stream`] whose calls wait as tasks do.
///
/// **The end.** After the last write, await [`finish`](AsyncStream::finish). It returns once the peer has acknowledged everything, and is
/// the proof of delivery. The stream can be dropped then. Dropping it without an end aborts the connection.
///
/// Shutting it down ([`AsyncWrite::poll_shutdown`]) completes as late. It ends this side's direction alone, as
/// [`Stream::finish_sending`] does, if the connection [can](Stream::has_half_close), so that an answer can still be read. Otherwise it is
/// `finish`. [`finish_in_background`](AsyncStream::finish_in_background) waits for nothing.
///
/// ```
/// use tokio::io::{AsyncReadExt, AsyncWriteExt};
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let listener = farhaul::Listener::plain("127.0.0.1:0")?;
/// let endpoint = farhaul::Endpoint::plain("127.0.0.1:0")?;
/// let mut stream = endpoint.connect_async(listener.local_addr()).await?;
/// stream.write_all(b"everything").await?;
/// stream.finish().await?;
/// drop(stream);
///
/// let (mut accepted, _peer) = listener.accept_async().await?;
/// let mut text = String::new();
/// accepted.read_to_string(&mut text).await?;
/// assert_eq!(text, "everything");
/// # Ok(())
/// # }
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(run())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// **Time-outs.** Tasks have none: wrap the call in `tokio::time::timeout`. An abandoned read loses nothing. After an
/// abandoned `write_all`, the number of bytes taken is unknown.
///
/// **Wakers.** In each direction, a handle keeps the waker of the last task that polled it. It keeps it until that task
/// is woken, another one polls, or the handle is dropped. So several tasks that read at once need a clone each.
///
/// **Plain UDT4 has no half-close.** Without one, a shutdown ends both directions. Reading then returns the data that had arrived by then,
/// and the end of the stream. So `tokio::io::copy_bidirectional` completes, but the side that closes first closes for
/// both. Data that a peer sends after this side's shutdown is lost, with an error at the peer only. Where one side goes
/// on sending after the other's last data, the protocol must mark that last data in-band.
#[derive(Debug)]
pub struct AsyncStream {
    pub(super) inner: Stream,
    /// `None` before this handle begins to shut it down.
    shutdown: Option<Shutdown>,
    waits: Waits,
}

/// What a shutdown ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shutdown {
    /// This side's direction.
    Sending,
    /// The connection.
    Both,
}

/// The last task that polled, for each condition that a handle waits for.
#[derive(Debug, Default)]
struct Waits {
    read: Registration,
    write: Registration,
    change: Registration,
}

impl From<Stream> for AsyncStream {
    fn from(inner: Stream) -> Self {
        Self { inner, shutdown: None, waits: Waits::default() }
    }
}

impl Clone for AsyncStream {
    /// A second handle, without a waiting task.
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), shutdown: self.shutdown, waits: Waits::default() }
    }
}

impl Drop for AsyncStream {
    fn drop(&mut self) {
        let (connection, id) = (&self.inner, self.inner.id());
        connection.withdraw(WaitPlace::Read(id), &mut self.waits.read);
        connection.withdraw(WaitPlace::Write(id), &mut self.waits.write);
        connection.withdraw(WaitPlace::Change(id), &mut self.waits.change);
    }
}

impl AsyncStream {
    /// Ends this side's direction alone and returns at once: see [`Stream::finish_sending`].
    ///
    /// # Errors
    /// The connection has no half-close; it is over, or was finished.
    pub fn finish_sending(&self) -> Result<(), Error> {
        self.inner.finish_sending()
    }

    /// Ends as much as a shutdown of this connection ends.
    fn begin_shutdown(&self) -> Result<Shutdown, Error> {
        match self.inner.finish_sending() {
            Ok(()) => Ok(Shutdown::Sending),
            Err(Error::NoHalfClose) => self.inner.begin_to_finish().map(|()| Shutdown::Both),
            // The connection is over or finished: the wait tells whether everything was acknowledged.
            Err(Error::Finished | Error::Lost(_)) => Ok(Shutdown::Both),
            Err(error) => Err(error),
        }
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
        let poll = connection.poll(WaitPlace::Read(id), cx, &mut waits.read, reading(id, room));
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
        connection.poll(WaitPlace::Write(id), cx, &mut waits.write, writing(id, data)).map_err(Into::into)
    }

    /// Completes at once: written data leaves without it.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Completes once the peer has acknowledged everything. Without a half-close, it closes the connection in both
    /// directions: see [`AsyncStream`].
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shutdown = match self.shutdown {
            Some(shutdown) => shutdown,
            None => self.begin_shutdown()?,
        };
        self.shutdown = Some(shutdown);
        let Self { inner: connection, waits, .. } = &mut *self;
        let (place, wait) = (WaitPlace::Change(connection.id()), &mut waits.change);
        let poll = match shutdown {
            Shutdown::Sending => connection.poll(place, cx, wait, connection.is_sent()),
            Shutdown::Both => connection.poll(place, cx, wait, connection.is_finished()),
        };
        poll.map_err(Into::into)
    }
}
