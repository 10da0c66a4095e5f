//! The trait between a transport and its driver: a thread, the simulator or a test.

use core::net::{IpAddr, SocketAddr};

use bytes::Bytes;
use farhaul_units::{Duration, Instant};

use crate::config::Mode;
use crate::error::{ConnectError, ConnectionLost};
use crate::event::{ConnectionId, Event};
use crate::stats::Stats;

/// Most bytes of a block that is a copy: as many as a train has.
pub(crate) const COPIED_BLOCK: usize = 64 << 10;

/// An endpoint of a transport protocol, as a state machine of bytes and time.
///
/// **Contract.** Methods come in four kinds: inputs (`handle_*`), outputs (`poll_*`), commands (see [`Streams`]) and
/// getters. Time never goes back. Equal inputs give equal outputs.
///
/// After any input or command, the driver does three things:
///
/// 1. It drains [`poll_transmit`](Transport::poll_transmit), as far as the network accepts datagrams.
/// 2. It drains [`poll_event`](Transport::poll_event).
/// 3. It reads [`poll_timeout`](Transport::poll_timeout) and calls [`handle_timeout`](Transport::handle_timeout) once
///    that instant has come. Early or late calls are harmless.
pub trait Transport {
    /// Takes datagrams that arrived from one address at one in one receive call.
    ///
    /// `bytes` holds them back to back, as the kernel's receive offload delivers them. Each is `stride` bytes long, the
    /// last may be shorter. A single datagram has `stride >= bytes.len()`. The buffer is mutable so that layers that
    /// decrypt can do so in place.
    ///
    /// `arrived` is the kernel's time stamp of the first datagram, never later than `now`. Estimates from packet
    /// spacing use it. Pass `now` if it is unknown.
    fn handle_datagrams(
        &mut self,
        now: Instant,
        arrived: Instant,
        from: impl Into<AddressPair>,
        bytes: &mut [u8],
        stride: usize,
    );

    /// This host has dropped datagrams since the last such call, because its receive buffer of so many bytes was full. Call it before the
    /// next datagrams are handed in. Packets that are found missing soon after count as dropped
    /// ([`Totals::packets_dropped`](crate::Totals::packets_dropped)). Peers are told to send no more at a time than the buffer holds.
    fn note_drops(&mut self, now: Instant, buffer: u64) {
        let _ = (now, buffer);
    }

    /// Fires the timers that are due at `now`.
    fn handle_timeout(&mut self, now: Instant);

    /// The next datagrams to send, or `None` if nothing may leave now.
    ///
    /// The bytes are borrowed from the send buffer where possible and from `scratch` otherwise. Returned datagrams
    /// count as sent. A driver that cannot hand them to the network keeps a copy or treats them as lost.
    fn poll_transmit<'a>(&'a mut self, now: Instant, scratch: &'a mut Batch) -> Option<Transmit<'a>>;

    /// When to call [`handle_timeout`](Transport::handle_timeout) and [`poll_transmit`](Transport::poll_transmit) next;
    /// `None` if only input can cause output.
    fn poll_timeout(&self) -> Option<Instant>;

    /// The next event since the last call, oldest first.
    fn poll_event(&mut self) -> Option<Event>;

    /// The unreliable datagrams of the connections, if these have any. Measured streams then travel inside, and the driver
    /// takes no others.
    fn datagrams(&mut self) -> Option<&mut dyn Datagrams> {
        None
    }
}

/// The two addresses of a datagram, as this side sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AddressPair {
    /// The peer's.
    pub peer: SocketAddr,
    /// This side's. `None` if the port has one alone, or if the system chooses by its routes.
    pub local: Option<IpAddr>,
}

impl From<SocketAddr> for AddressPair {
    fn from(peer: SocketAddr) -> Self {
        Self { peer, local: None }
    }
}

/// Unreliable datagrams of connections, for measured streams.
pub trait Datagrams {
    /// Keeps datagrams of a kind from now on, until the host [takes](Self::take_datagrams) them; or no more. With questions
    /// wanted, the endpoint also serves callers that want datagrams alone, while it listens for streams.
    fn want_datagrams(&mut self, kind: DatagramKind, wanted: bool);

    /// Opens a connection for datagrams alone to a peer of any protocol that [wants questions](Self::want_datagrams).
    ///
    /// # Errors
    /// As for [`Streams::connect`].
    fn connect_for_datagrams(&mut self, now: Instant, peer: SocketAddr) -> Result<ConnectionId, ConnectError>;

    /// Appends the packets of datagrams to `out`: of `size` bytes each, the last may be shorter. Returns their addresses and
    /// the length of a packet. `None` if the datagrams are lost: the connection is over, or no key may be used now.
    fn send_datagrams(
        &mut self,
        now: Instant,
        id: ConnectionId,
        datagrams: (&[u8], usize),
        out: &mut Vec<u8>,
    ) -> Option<(AddressPair, usize)>;

    /// Passes on the datagrams of a kind that arrived since the last call.
    fn take_datagrams(&mut self, kind: DatagramKind, to: &mut dyn FnMut(&ReceivedDatagrams<'_>));
}

/// The kind of a datagram of a measured stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatagramKind {
    /// It asks for an answer.
    Question,
    /// It answers a question.
    Answer,
}

/// Datagrams of a measured stream that came through one connection in one receive call.
#[derive(Clone, Copy, Debug)]
pub struct ReceivedDatagrams<'a> {
    /// When they arrived.
    pub arrived: Instant,
    /// Their connection.
    pub connection: ConnectionId,
    /// The address from which their packets came.
    pub peer: SocketAddr,
    /// The datagrams back to back.
    pub bytes: &'a [u8],
    /// Bytes of each; the last may be shorter.
    pub stride: usize,
}

impl<'a> ReceivedDatagrams<'a> {
    /// The datagrams one by one.
    pub fn datagrams(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.bytes.chunks(self.stride.max(1))
    }
}

/// Byte streams over a transport: the interface of benchmarks, file sessions, simulator traffic and drivers.
pub trait Streams: Transport {
    /// Starts to connect to `peer`. [`Event::Connected`] or [`Event::Closed`] follows.
    ///
    /// # Errors
    /// The endpoint is at its limit of connections, or the address is not reachable by its form.
    fn connect(&mut self, now: Instant, peer: SocketAddr) -> Result<ConnectionId, ConnectError>;

    /// Takes `data` into the send buffer as far as there is room. Returns the number of bytes taken. If that is less
    /// than all, [`Event::Writable`] follows.
    ///
    /// # Errors
    /// The connection is over, or [`finish`](Streams::finish) was called.
    fn write(&mut self, now: Instant, id: ConnectionId, data: &[u8]) -> Result<usize, StreamError>;

    /// The same for a block. The send buffer keeps the block itself if it can, not a copy, until the peer has acknowledged it.
    ///
    /// # Errors
    /// As for [`write`](Streams::write).
    fn write_block(&mut self, now: Instant, id: ConnectionId, block: Bytes) -> Result<usize, StreamError> {
        self.write(now, id, &block)
    }

    /// Bytes that [`write`](Streams::write) would take now.
    fn writable(&self, id: ConnectionId) -> usize;

    /// Of so many bytes to write, those up to the end of the last train for the kernel that they fill; all if they fill none. A writer that has
    /// more at once need not end its turn with a short train.
    fn whole_trains(&self, _id: ConnectionId, bytes: usize) -> usize {
        bytes
    }

    /// Moves received bytes into `out`.
    ///
    /// # Errors
    /// The connection was lost, or closed while data was known to be missing. [`Read::End`] explains the limits of that
    /// knowledge.
    fn read(&mut self, now: Instant, id: ConnectionId, out: &mut [u8]) -> Result<Read, StreamError>;

    /// Received bytes as a block of its own, which replaces `block`. It is the memory into which they were received if possible, not a copy.
    ///
    /// # Errors
    /// As for [`read`](Streams::read).
    fn read_block(&mut self, now: Instant, id: ConnectionId, block: &mut Bytes) -> Result<Read, StreamError> {
        let mut bytes = vec![0; self.readable(id).clamp(1, COPIED_BLOCK)];
        let read = self.read(now, id, &mut bytes)?;
        if let Read::Data(len) = read {
            bytes.truncate(len);
            *block = bytes.into();
        }
        Ok(read)
    }

    /// Bytes that [`read`](Streams::read) would return now. Zero for connections that it cannot read, such as those in
    /// message mode.
    fn readable(&self, id: ConnectionId) -> usize;

    /// Whether each direction of the connection can end alone, by [`finish_sending`](Streams::finish_sending). Both sides
    /// know it from the handshake. False before it is established.
    fn has_half_close(&self, _id: ConnectionId) -> bool {
        false
    }

    /// Ends the writing side alone. The peer reads [`Read::End`] after the last data, and this side reads on. Once the peer
    /// has acknowledged everything, [`Event::SendingFinished`] follows. Once the peer has ended its own direction as well,
    /// the connection closes, and [`Event::Finished`] reports it. A connection that is [released](Streams::release) before
    /// [closes](Streams::close). A second call has no effect.
    ///
    /// # Errors
    /// The connection has [no half-close](StreamError::NoHalfClose), or is over, or was [finished](Streams::finish).
    fn finish_sending(&mut self, now: Instant, id: ConnectionId) -> Result<(), StreamError> {
        let _ = (now, id);
        Err(StreamError::NoHalfClose)
    }

    /// Ends the writing side. Once everything is acknowledged the connection closes, and [`Event::Finished`] reports
    /// it. Data that arrives until then can be read. The end of the stream follows it.
    fn finish(&mut self, now: Instant, id: ConnectionId);

    /// Ends the connection at once, and unsent data is lost. If the peer has acknowledged everything written, it reads
    /// to the end of the stream. Otherwise this [aborts](Streams::abort). Harmless on a connection that is over.
    fn close(&mut self, now: Instant, id: ConnectionId);

    /// Ends the connection at once because this side's data is incomplete. The peer reads the received data and then an
    /// error, not [`Read::End`]. Harmless on a connection that is over.
    fn abort(&mut self, now: Instant, id: ConnectionId);

    /// Forgets a connection. A live one is [aborted](Streams::abort). Its memory is freed once the peer has been told,
    /// at most [`LONGEST_CLOSE`](crate::LONGEST_CLOSE) later.
    fn release(&mut self, now: Instant, id: ConnectionId);

    /// Whether this side has closed the connection and still repeats its shutdown.
    fn is_closing(&self, id: ConnectionId) -> bool;

    /// The address of the peer; `None` for a connection that was released.
    fn peer(&self, id: ConnectionId) -> Option<SocketAddr>;

    /// A snapshot of counters and estimates; `None` for a connection that was released.
    fn stats(&self, now: Instant, id: ConnectionId) -> Option<Stats>;
}

/// The result of [`Streams::read`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// This many bytes, never zero unless the output has no room.
    Data(usize),
    /// Nothing now; [`Event::Readable`] will follow.
    Pending,
    /// End of stream: the peer ended its direction, or closed and no data is known to be missing, or this side
    /// [finished](Streams::finish).
    ///
    /// An end by [`finish_sending`](Streams::finish_sending) is certain. Any other is not:
    ///
    /// UDT4's shutdown does not tell how much was sent. A libudt peer that closes before its last packets were
    /// delivered looks the same. After this side finished, data that the peer had yet to send never arrives. An
    /// application that must detect missing data transmits its length in-band.
    End,
}

/// Options for opening a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectOptions {
    /// Stream or messages.
    pub mode: Mode,
    /// Meet a peer that calls at the same time, in place of calling a listener (`UDT_RENDEZVOUS`).
    pub rendezvous: bool,
}

/// How a message is to be delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageOptions {
    /// Give up the message after this long without delivery; `None` for never.
    pub ttl: Option<Duration>,
    /// Deliver it after all messages before it. Otherwise it may overtake incomplete ones.
    pub in_order: bool,
}

/// The result of [`Endpoint::recv_message`](crate::Endpoint::recv_message).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// A message. Its bytes are in the output.
    Received {
        /// Bytes copied.
        len: usize,
        /// The output was too small. The rest of the message is lost, as in UDT.
        truncated: bool,
    },
    /// Nothing now. [`Event::Readable`] will follow.
    Pending,
    /// The end, as far as UDT4 shows it. See [`Read::End`].
    End,
}

/// The protection of a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Protection {
    /// Version of TLS, key exchange and cipher, such as `TLS1.3 X25519MLKEM768 AES128-GCM`.
    pub suite: String,
    /// The public key of the peer: its SubjectPublicKeyInfo in DER. Empty if it has none.
    pub peer_key: Vec<u8>,
}

/// What a connection permits without waiting: [`Endpoint::readiness`](crate::Endpoint::readiness).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Readiness {
    /// The handshake has succeeded. It stays true after the end.
    pub connected: bool,
    /// A read gives data, the end or an error at once.
    pub readable: bool,
    /// A write takes data or gives an error at once.
    pub writable: bool,
    /// The connection has ended for its application. Received data may still be readable.
    pub ended: bool,
}

/// Why a stream cannot be read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// The id does not name a connection of this endpoint, or the connection was released.
    #[error("no such connection")]
    NoSuchConnection,
    /// The handshake is not complete.
    #[error("not connected yet")]
    NotConnected,
    /// This side called [`Streams::finish`] before.
    #[error("the stream was finished by this side")]
    Finished,
    /// One direction cannot end alone: the connection is not encrypted, has another protocol inside than UDT, or its peer is
    /// an older program.
    #[error("this connection cannot end one direction alone")]
    NoHalfClose,
    /// A byte-stream call on a connection in message mode, or the reverse.
    #[error("stream calls need a stream connection, and message calls a message connection")]
    WrongMode,
    /// The message exceeds this many bytes, the peer's largest window. A receiver must hold a message as a whole.
    #[error("a message of more than {0} bytes does not fit the peer's window")]
    MessageTooLong(u64),
    /// The connection is over.
    #[error(transparent)]
    Lost(#[from] ConnectionLost),
}

/// Datagrams to send to one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit<'a> {
    /// Destination address.
    pub to: SocketAddr,
    /// The address of this side that they leave from; `None` if the system chooses.
    pub source: Option<IpAddr>,
    /// Length of each datagram in `bytes`. The last may be shorter.
    pub segment_size: usize,
    /// The datagrams, back to back.
    pub bytes: &'a [u8],
    /// They must not travel in fragments, because they probe the path. If they are too large, they are lost.
    pub whole: bool,
}

impl<'a> Transmit<'a> {
    /// Datagrams that leave from one address to another, and may travel in fragments.
    pub const fn between(AddressPair { peer, local }: AddressPair, segment_size: usize, bytes: &'a [u8]) -> Self {
        Self { to: peer, source: local, segment_size, bytes, whole: false }
    }

    /// The datagrams one by one.
    pub fn datagrams(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.bytes.chunks(self.segment_size.max(1))
    }
}

/// Reusable memory for datagrams that cannot be borrowed from the send buffer.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    bytes: Vec<u8>,
}

impl Batch {
    /// Has room for one full train of datagrams, so that the hot path never grows it.
    pub fn new() -> Self {
        Self { bytes: Vec::with_capacity(usize::from(u16::MAX)) }
    }

    /// The memory, emptied, for the transport to fill.
    pub fn cleared(&mut self) -> &mut Vec<u8> {
        self.bytes.clear();
        &mut self.bytes
    }

    /// The bytes that the transport wrote.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// The earliest of two optional deadlines.
pub fn earliest(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
