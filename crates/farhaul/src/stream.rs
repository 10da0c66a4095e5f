//! A connection that carries a stream of bytes.

use std::fs::File;
use std::io::{self, Write};
use std::ops::Deref;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::Bytes;
use farhaul_proto::{ConnectionId, Endpoint, Read, StreamError, Streams};

use crate::connection::Connection;
use crate::driver::Core;
use crate::error::Error;
use crate::port::Attempt;

/// Most bytes that one call moves: a few trains, about 50 µs under the lock. A caller with more calls again.
const PER_TURN: usize = 256 << 10;

/// Most bytes of a block that one call takes: their headers take less time than [`PER_TURN`] bytes that are copied.
const PER_BLOCK: usize = 1 << 20;

/// The code sent to the peer when a file cannot be written: libudt's code for file errors (EFILE).
const FILE_ERROR: u32 = 4000;

/// Bytes that [`Stream::send_file`] and [`Stream::recv_file`] hold in memory.
const FILE_BLOCK: usize = 1 << 20;

/// A reliable stream of bytes in both directions.
///
/// Reading and writing work as with `std::net::TcpStream`. A read returns the bytes that have arrived, a write takes as
/// many as fit. They wait only if there are none, or no room. Both are implemented for `&Stream` too, and a clone is a
/// second handle of the same connection. So one thread can read while another writes.
///
/// Every write sends at once, as far as the window allows. Many small writes are faster through a `std::io::BufWriter`
/// of about 256 KiB.
///
/// **The end.** After its last write, the sender calls [`finish`](Connection::finish). That waits until the peer has
/// acknowledged everything, and then closes the connection. The peer reads to the end of the stream. Dropping the last handle without it [aborts](Connection::abort)
/// the connection at once. Unacknowledged data is lost, and the peer's calls end with
/// [`ConnectionLost::Aborted`](crate::ConnectionLost::Aborted). So a program that panics or returns early never looks
/// as if it had sent everything.
///
/// **One direction alone.** UDT4 cannot close one direction alone, but an encrypted connection of two programs of this
/// library can: see [`finish_sending`](Stream::finish_sending). Then each side sends to its own end, in its own time.
///
/// libudt has one sign for both ends. A libudt peer that closes early may look as if it had sent everything. So a
/// protocol with such peers should announce the length in advance.
///
/// ```
/// use std::io::{Read, Write};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let listener = farhaul::Listener::plain("127.0.0.1:0")?;
/// let address = listener.local_addr();
/// let sender = std::thread::spawn(move || -> std::io::Result<()> {
///     let mut stream = farhaul::Stream::connect_plain(address)?;
///     stream.write_all(b"over the hills")?;
///     stream.finish()?;
///     Ok(())
/// });
/// let (mut stream, _peer) = listener.accept()?;
/// let mut text = String::new();
/// stream.read_to_string(&mut text)?;
/// assert_eq!(text, "over the hills");
/// sender.join().expect("the sender does not panic")?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Stream {
    connection: Arc<Connection>,
}

impl Stream {
    pub(crate) fn from_connection(connection: Connection) -> Self {
        Self { connection: Arc::new(connection) }
    }

    /// Sends `len` bytes of `file` from `offset` on, regardless of the file's own position (`UDT::sendfile`).
    ///
    /// # Errors
    /// The file is shorter or cannot be read; the connection is over.
    pub fn send_file(&self, file: &File, offset: u64, len: u64) -> Result<(), Error> {
        let mut block = vec![0; block_len(len)];
        let mut sent = 0;
        while sent < len {
            let want = block_len(len - sent);
            let got = retried(|| file.read_at(&mut block[..want], offset + sent))
                .map_err(|source| Error::File { action: "read", source })?;
            if got == 0 {
                return Err(Error::FileTooShort { missing: len - sent });
            }
            self.send_all(&block[..got])?;
            sent += got as u64;
        }
        Ok(())
    }

    /// Receives `len` bytes into `file` from the file's position on (`UDT::recvfile`). If the file cannot be written,
    /// the peer is told, and its sending fails.
    ///
    /// # Errors
    /// The stream ends earlier or is lost; the file cannot be written.
    pub fn recv_file(&self, mut file: &File, len: u64) -> Result<(), Error> {
        let mut block = vec![0; block_len(len)];
        let mut received = 0;
        while received < len {
            let want = block_len(len - received);
            let got = self.recv(&mut block[..want])?;
            if got == 0 {
                return Err(Error::EndedEarly { received, expected: len });
            }
            if let Err(source) = file.write_all(&block[..got]) {
                self.connection.signal_error(FILE_ERROR);
                return Err(Error::File { action: "write", source });
            }
            received += got as u64;
        }
        Ok(())
    }

    /// Whether each direction of this connection can end alone, by [`finish_sending`](Stream::finish_sending). It can if the
    /// connection is encrypted, its protocol is UDT4, and the peer's program can as well.
    ///
    /// # Errors
    /// The endpoint's driver thread is gone.
    pub fn has_half_close(&self) -> Result<bool, Error> {
        self.connection.has_half_close()
    }

    /// Ends this side's direction and returns at once, as `TcpStream::shutdown(Shutdown::Write)` does. No handle can write
    /// from now on, and reading goes on. The peer reads everything that was written, and then the end of the stream.
    ///
    /// The connection closes once both directions have ended and everything was acknowledged. [`finish`](Connection::finish)
    /// waits for that: call it after reading to the end of the stream. Called earlier, it gives up what the peer has yet to
    /// send. A second call has no effect.
    ///
    /// Dropping the last handle earlier ends the connection. If the peer has acknowledged everything, it loses only what it
    /// has yet to send. Otherwise that is an [`abort`](Connection::abort).
    ///
    /// ```no_run
    /// use std::io::{Read, Write};
    /// # fn ask(mut stream: farhaul::Stream) -> std::io::Result<Vec<u8>> {
    /// stream.write_all(b"a question")?;
    /// stream.finish_sending()?;
    /// let mut answer = Vec::new();
    /// stream.read_to_end(&mut answer)?;
    /// stream.finish()?;
    /// # Ok(answer)
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::NoHalfClose`] if the connection cannot do this, such as a plain one: see
    /// [`has_half_close`](Stream::has_half_close). The connection is over, or was finished.
    pub fn finish_sending(&self) -> Result<(), Error> {
        self.connection.finish_sending()
    }

    /// Moves received bytes into `out` and returns their number. Zero is the end of the stream, as far as the protocol
    /// shows it: see [`Stream`]. The typed form of [`io::Read::read`].
    ///
    /// # Errors
    /// The connection was lost, aborted by the peer, or closed while data was known to be missing. The time-out passed,
    /// or a canceller ended the call.
    pub fn recv(&self, out: &mut [u8]) -> Result<usize, Error> {
        if out.is_empty() {
            return Ok(0);
        }
        self.connection.when_readable(reading(self.connection.id(), out))
    }

    /// Takes as much of `data` as fits and returns the number of bytes. The typed form of [`io::Write::write`].
    ///
    /// # Errors
    /// The connection is over or finished, the time-out passed, or a canceller ended the call.
    pub fn send(&self, data: &[u8]) -> Result<usize, Error> {
        if data.is_empty() {
            return Ok(0);
        }
        self.connection.when_writable(writing(self.connection.id(), data))
    }

    /// Takes as much of `block` as fits and returns the number of bytes. The send buffer keeps the block itself where it can, not a copy,
    /// until the peer has acknowledged it. Give the rest as a block again:
    ///
    /// ```no_run
    /// # fn send_all(stream: &farhaul::Stream, mut block: farhaul::Bytes) -> Result<(), farhaul::Error> {
    /// while !block.is_empty() {
    ///     let taken = stream.send_block(block.clone())?;
    ///     block = block.slice(taken..);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// It is faster than [`send`](Stream::send) for blocks of a few packets and more, most of all where those are in the cache of the processor.
    ///
    /// # Errors
    /// As [`send`](Stream::send).
    pub fn send_block(&self, block: Bytes) -> Result<usize, Error> {
        if block.is_empty() {
            return Ok(0);
        }
        self.connection.when_writable(writing_block(self.connection.id(), &block))
    }

    /// Appends what has arrived to `blocks`, and returns the number of bytes: about 256 KiB at most. Zero is the end of the stream. Most blocks are
    /// the memory into which the data was received, not a copy. It is used again once the application has dropped them.
    ///
    /// # Errors
    /// As [`recv`](Stream::recv).
    pub fn recv_blocks(&self, blocks: &mut Vec<Bytes>) -> Result<usize, Error> {
        self.connection.when_readable(reading_blocks(self.connection.id(), blocks))
    }

    /// [`recv`](Stream::recv) without waiting: `None` if nothing has arrived.
    ///
    /// # Errors
    /// As [`recv`](Stream::recv), without time-out and canceller.
    pub fn try_read(&self, out: &mut [u8]) -> Result<Option<usize>, Error> {
        if out.is_empty() {
            return Ok(Some(0));
        }
        self.connection.attempt(reading(self.connection.id(), out))
    }

    /// [`send`](Stream::send) without waiting: `None` if there is no room, or the connection is not established yet.
    ///
    /// # Errors
    /// As [`send`](Stream::send), without time-out and canceller.
    pub fn try_write(&self, data: &[u8]) -> Result<Option<usize>, Error> {
        if data.is_empty() {
            return Ok(Some(0));
        }
        self.connection.attempt(writing(self.connection.id(), data))
    }

    /// Takes all of `data`. The typed form of [`io::Write::write_all`].
    ///
    /// # Errors
    /// As [`send`](Stream::send). Part of the data may have been taken then.
    pub fn send_all(&self, mut data: &[u8]) -> Result<(), Error> {
        while !data.is_empty() {
            data = &data[self.send(data)?..];
        }
        Ok(())
    }
}

/// An attempt to read into `out`; nothing yet while the connection is empty.
pub(crate) fn reading(id: ConnectionId, out: &mut [u8]) -> impl Attempt<usize> {
    let len = out.len().min(PER_TURN);
    move |core: &mut Core<_>, now| {
        Ok(match core.transport.read(now, id, &mut out[..len])? {
            Read::Data(len) => Some(len),
            Read::Pending => None,
            Read::End => Some(0),
        })
    }
}

/// An attempt to write `data`; nothing yet while there is no room, or before the connection is established.
pub(crate) fn writing(id: ConnectionId, data: &[u8]) -> impl Attempt<usize> {
    move |core: &mut Core<_>, now| match core.transport.write(now, id, &data[..turn(core, id, data.len(), PER_TURN)]) {
        Ok(0) | Err(StreamError::NotConnected) => Ok(None),
        taken => Ok(Some(taken?)),
    }
}

/// An attempt to read blocks, which are appended to `blocks`; nothing yet while the connection is empty.
fn reading_blocks(id: ConnectionId, blocks: &mut Vec<Bytes>) -> impl Attempt<usize> {
    move |core: &mut Core<_>, now| {
        let mut total = 0;
        while total < PER_TURN {
            let mut block = Bytes::new();
            match core.transport.read_block(now, id, &mut block) {
                Ok(Read::Data(len)) => total += len,
                // What came before is handed over first.
                _ if total > 0 => break,
                Ok(Read::Pending) => return Ok(None),
                Ok(Read::End) => return Ok(Some(0)),
                Err(error) => return Err(error.into()),
            }
            blocks.push(block);
        }
        Ok(Some(total))
    }
}

/// An attempt to write a block; nothing yet while there is no room, or before the connection is established.
fn writing_block(id: ConnectionId, block: &Bytes) -> impl Attempt<usize> {
    move |core: &mut Core<_>, now| {
        let part = block.slice(..turn(core, id, block.len(), PER_BLOCK));
        match core.transport.write_block(now, id, part) {
            Ok(0) | Err(StreamError::NotConnected) => Ok(None),
            taken => Ok(Some(taken?)),
        }
    }
}

/// How much of so many bytes is written in a turn of at most `most`.
fn turn(core: &Core<Endpoint>, id: ConnectionId, bytes: usize, most: usize) -> usize {
    if bytes <= most { bytes } else { core.transport.whole_trains(id, most) }
}

fn block_len(left: u64) -> usize {
    usize::try_from(left).unwrap_or(FILE_BLOCK).min(FILE_BLOCK)
}

/// Retries a call that a signal interrupted.
fn retried<R>(mut call: impl FnMut() -> io::Result<R>) -> io::Result<R> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

impl Deref for Stream {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}

impl io::Read for &Stream {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        Ok(self.recv(out)?)
    }
}

impl io::Write for &Stream {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        Ok(self.send(data)?)
    }

    /// Does nothing, because written data leaves without it. To know that it arrived, see
    /// [`finish`](Connection::finish).
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl io::Read for Stream {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        Ok(self.recv(out)?)
    }
}

impl io::Write for Stream {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        Ok(self.send(data)?)
    }

    /// Does nothing, because written data leaves without it. To know that it arrived, see
    /// [`finish`](Connection::finish).
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
