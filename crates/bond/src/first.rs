//! What a stream begins as: a connection of its own, or a stream through ssh.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use delegate::delegate;
use farhaul::{Bytes, ConnectionLost, Error, Rate, Stats, Stream};

use crate::mux::MuxStream;

/// The first carrier of a stream. Clones share it.
#[derive(Clone, Debug)]
pub enum First {
    /// A connection over UDP.
    Connection(Stream),
    /// The pipes of ssh, and the address of the peer, as far as it is known.
    Ssh(MuxStream, Option<SocketAddr>),
}

/// Bytes of a block that is a copy.
const COPIED_BLOCK: usize = 64 << 10;

/// Appends a block that `recv` fills.
pub(crate) fn recv_copied(
    blocks: &mut Vec<Bytes>,
    recv: impl FnOnce(&mut [u8]) -> Result<usize, Error>,
) -> Result<usize, Error> {
    let mut block = vec![0; COPIED_BLOCK];
    let len = recv(&mut block)?;
    block.truncate(len);
    blocks.push(block.into());
    Ok(len)
}

impl From<Stream> for First {
    fn from(stream: Stream) -> Self {
        Self::Connection(stream)
    }
}

impl First {
    /// Takes as much of a block as fits, as [`Stream::send_block`].
    pub(crate) fn send_block(&self, block: Bytes) -> Result<usize, Error> {
        match self {
            Self::Connection(stream) => stream.send_block(block),
            Self::Ssh(stream, _) => stream.send(&block),
        }
    }

    /// Appends received blocks to `blocks`, as [`Stream::recv_blocks`].
    pub(crate) fn recv_blocks(&self, blocks: &mut Vec<Bytes>) -> Result<usize, Error> {
        match self {
            Self::Connection(stream) => stream.recv_blocks(blocks),
            Self::Ssh(stream, _) => recv_copied(blocks, |out| stream.recv(out)),
        }
    }

    delegate! {
        to match self { Self::Connection(stream) => stream, Self::Ssh(stream, _) => stream } {
            /// Takes as much of `data` as fits, as [`Stream::send`].
            ///
            /// # Errors
            /// As there.
            pub fn send(&self, data: &[u8]) -> Result<usize, Error>;
            /// Moves received bytes into `out`, as [`Stream::recv`].
            ///
            /// # Errors
            /// As there.
            pub fn recv(&self, out: &mut [u8]) -> Result<usize, Error>;
            /// Sets the longest wait of a receiving call.
            pub fn set_read_timeout(&self, timeout: Option<Duration>);
            /// Sets the longest wait of a sending call.
            pub fn set_write_timeout(&self, timeout: Option<Duration>);
            /// Waits until the peer has everything, and closes.
            ///
            /// # Errors
            /// The stream is lost.
            pub fn finish(&self) -> Result<(), Error>;
            /// Ends this side's direction.
            ///
            /// # Errors
            /// The stream is lost, or has ended.
            pub fn finish_sending(&self) -> Result<(), Error>;
            /// Waits until the stream has closed.
            ///
            /// # Errors
            /// It is lost.
            pub fn wait_until_closed(&self) -> Result<(), Error>;
            /// Ends the stream at once, in both directions.
            pub fn close(&self);
            /// Ends the stream at once, because this side cannot go on.
            pub fn abort(&self);
            /// Caps the sending rate from now on.
            ///
            /// # Errors
            /// A cap of zero, or the protocol cannot change it.
            pub fn set_max_rate(&self, rate: Option<Rate>) -> Result<(), Error>;
            /// Whether the calls that wait have ended.
            pub fn is_cancelled(&self) -> bool;
        }
    }

    /// The connection over UDP, if it is one.
    pub const fn connection(&self) -> Option<&Stream> {
        match self {
            Self::Connection(stream) => Some(stream),
            Self::Ssh(..) => None,
        }
    }

    /// The address of the peer. Nobody has the unspecified one, which stands for one that ssh does not tell.
    pub fn peer_addr(&self) -> SocketAddr {
        match self {
            Self::Connection(stream) => stream.peer_addr(),
            Self::Ssh(_, peer) => peer.unwrap_or_else(|| (Ipv4Addr::UNSPECIFIED, 0).into()),
        }
    }

    /// Waits until the peer uses it. Returns whether it does.
    pub fn wait_until_begun(&self) -> bool {
        match self {
            Self::Connection(_) => true,
            Self::Ssh(stream, _) => stream.wait_until_begun(),
        }
    }

    /// Closes once the peer has everything. Never waits.
    pub fn finish_in_background(&self) {
        match self {
            Self::Connection(stream) => stream.finish_in_background(),
            // What was taken arrives first.
            Self::Ssh(stream, _) => stream.close(),
        }
    }

    /// Whether each direction can end alone.
    ///
    /// # Errors
    /// The connection is gone.
    pub fn has_half_close(&self) -> Result<bool, Error> {
        self.connection().map_or(Ok(true), Stream::has_half_close)
    }

    /// Replaces the congestion controller. Ssh has that of TCP.
    pub fn set_controller(&self, name: &str) -> Result<(), Error> {
        self.connection().map_or(Ok(()), |stream| stream.set_controller(name))
    }

    /// Ends the calls that wait, now and from now on.
    pub fn cancel(&self) {
        match self {
            Self::Connection(stream) => stream.canceller().cancel(),
            Self::Ssh(stream, _) => stream.cancel(),
        }
    }

    /// Flows carry the stream from now on.
    pub fn rest(&self) {
        if let Self::Ssh(stream, _) = self {
            stream.rest();
        }
    }

    /// How the stream has ended; `None` while it goes on.
    ///
    /// # Errors
    /// The connection is gone.
    pub fn ending(&self) -> Result<Option<ConnectionLost>, Error> {
        match self {
            Self::Connection(stream) => stream.ending(),
            Self::Ssh(stream, _) => Ok(stream.ending()),
        }
    }

    /// Counters and estimates.
    ///
    /// # Errors
    /// The connection is gone.
    pub fn stats(&self) -> Result<Stats, Error> {
        match self {
            Self::Connection(stream) => stream.stats(),
            Self::Ssh(stream, _) => Ok(stream.stats()),
        }
    }
}
