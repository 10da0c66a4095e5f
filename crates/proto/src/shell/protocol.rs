//! The traits that a protocol implements: one for its endpoint, two for its connections. `channel` has those of a
//! protocol with control channels.

mod channel;

use core::net::SocketAddr;

use farhaul_units::{Duration, Instant, Rng};

pub(crate) use self::channel::{ConductsChannel, HoldsChannel, OpensOnChannel, WithChannels};
use super::connection::Connection;
use super::endpoint::Shell;
use super::farewell::Parting;
use crate::config::Config;
use crate::error::{ConnectError, ConnectionLost};
use crate::event::ConnectionId;
use crate::stats::Stats;

/// A protocol at its endpoint: it finds the connection of a datagram, and opens connections.
///
/// A value of this type holds the maps from keys to slots, and the protocol's means of meeting callers.
pub(crate) trait Protocol: Sized {
    /// The name of a connection in the datagrams of its peer.
    type Key: Copy + Eq;
    /// A connection that is not established.
    type Opening: Opening<Established = Self::Established>;
    /// A connection that is established.
    type Established: Conductor;

    /// Whether its connections have control channels, so that it is also [`WithChannels`].
    const CHANNELS: bool = false;

    // ---- finding ----

    /// The key in a datagram from this address; `None` if the datagram may name no connection.
    fn key(from: SocketAddr, datagram: &[u8]) -> Option<Self::Key>;

    /// The slot of the connection with this key.
    fn find(&self, key: Self::Key) -> Option<u32>;

    /// Handles a datagram without a key: of a caller, say. Counts it if it is invalid.
    fn on_unaddressed(shell: &mut Shell<Self>, now: Instant, from: SocketAddr, datagram: &mut [u8]);

    /// Handles a datagram whose key belongs to no connection. It is invalid.
    fn on_unknown(shell: &mut Shell<Self>, _now: Instant, _from: SocketAddr, _datagram: &mut [u8]) {
        shell.count_invalid();
    }

    // ---- opening ----

    /// Opens a connection to `peer`, whose address is well-formed.
    fn connect(shell: &mut Shell<Self>, now: Instant, peer: SocketAddr) -> Result<ConnectionId, ConnectError>;

    /// The endpoint has a new connection.
    fn on_entered(&mut self, connection: &Connection<Self>);

    /// The connection may have changed.
    fn on_changed(&mut self, connection: &Connection<Self>);

    /// The endpoint has forgotten the connection.
    fn on_forgotten(&mut self, connection: &Connection<Self>);

    /// An accepted caller spoke for the first time.
    fn on_caller_heard(&mut self, _caller: SocketAddr) {}

    // ---- answers outside connections ----

    /// Writes the next datagram that belongs to no connection into `out`. Returns its destination.
    fn poll_reply(&mut self, _out: &mut Vec<u8>) -> Option<SocketAddr> {
        None
    }

    /// Whether such a datagram waits.
    fn has_reply(&self) -> bool {
        false
    }
}

/// A connection from its first packet until it is established.
pub(crate) trait Opening {
    type Established;

    /// Handles a datagram of the peer, which may be decrypted in place. The datagram that completes the opening also goes to the established connection.
    fn on_datagram(&mut self, datagram: &mut [u8], setup: Setup<'_>) -> Step<Box<Self::Established>>;

    /// The reason to give up, if the time limit has passed.
    fn check(&self, now: Instant) -> Option<ConnectionLost>;

    /// This computer was suspended for `gap`, which does not count.
    fn on_suspended(&mut self, gap: Duration);

    /// Writes the datagram to send now into `out`. Returns false if none is due.
    fn poll(&mut self, now: Instant, out: &mut Vec<u8>) -> bool;

    /// When to call next.
    fn deadline(&self) -> Option<Instant>;

    /// The opening failed, or the application gave it up.
    fn close(&mut self) {}

    /// Whether nothing is left to do after that.
    fn is_gone(&self) -> bool {
        true
    }
}

/// An established connection. It conducts the parts of its protocol.
pub(crate) trait Conductor {
    // ---- input ----

    /// The next datagrams reached this computer at `arrived`.
    fn begin_batch(&mut self, arrived: Instant);

    /// Handles one datagram of the peer, which may be decrypted in place.
    fn on_datagram(&mut self, datagram: &mut [u8], now: Instant) -> Effect;

    /// Handles one datagram from another address than the peer's. Only a protocol whose datagrams prove their sender
    /// takes any.
    fn on_datagram_from(&mut self, _from: SocketAddr, _datagram: &mut [u8], _setup: Setup<'_>) -> Effect {
        Effect::Invalid
    }

    /// All datagrams of one receive call were handled.
    fn finish_batch(&mut self, now: Instant);

    /// Fires due timers. The caller reads the deadline anew afterwards. A connection that is over is called until it
    /// [is gone](Self::is_gone).
    fn handle_timeout(&mut self, now: Instant) -> Effect;

    /// This computer was suspended for `gap` (attack B20). All time limits start again.
    fn on_suspended(&mut self, now: Instant, gap: Duration);

    // ---- output ----

    /// The next datagrams to send. A side that is leaving sends no data, only its farewell and what goes before it.
    fn poll(&mut self, now: Instant, scratch: &mut Vec<u8>) -> Option<Output>;

    /// The datagrams that the last [`poll`](Self::poll) found by [`Output::Data`], back to back, and the length of each but
    /// the last. They count as sent. They lie in the send buffer, or in `scratch`, which is empty.
    fn emit<'a>(&'a mut self, now: Instant, scratch: &'a mut Vec<u8>) -> Option<(usize, &'a [u8])>;

    /// When to call next.
    fn deadline(&self, now: Instant) -> Option<Instant>;

    // ---- commands ----

    /// Takes `data` into the send buffer as far as there is room. Returns the number of bytes taken.
    fn write(&mut self, now: Instant, data: &[u8]) -> usize;

    /// Bytes that [`write`](Self::write) takes now.
    fn room(&self) -> u64;

    /// Whether to wake a writer that found no room.
    fn has_room_again(&mut self) -> bool;

    /// Moves received bytes into `out`. Returns their number.
    fn read(&mut self, now: Instant, out: &mut [u8]) -> usize;

    /// Bytes that [`read`](Self::read) returns now.
    fn readable(&self) -> u64;

    /// Whether to wake a reader.
    fn can_read(&mut self) -> bool {
        self.readable() > 0
    }

    /// Whether each direction of the stream can end alone.
    fn has_half_close(&self) -> bool {
        false
    }

    /// Ends this side's direction of the stream, in a connection [that can](Self::has_half_close).
    fn finish_sending(&mut self, _now: Instant) {}

    /// From now on, `linger` without progress ends the connection.
    fn begin_linger(&mut self, now: Instant, linger: Duration);

    /// This side leaves, and begins to tell the peer how.
    fn leave(&mut self, now: Instant, parting: Parting);

    /// Whether the peer was told as far as this side can.
    fn has_left(&self) -> bool;

    /// The connection is over for its application.
    fn close(&mut self);

    /// Whether nothing is left to do for the peer after that.
    fn is_gone(&self) -> bool {
        true
    }

    // ---- facts ----

    /// Whether the peer has acknowledged everything written, so that this side may leave.
    fn is_flushed(&self) -> bool;

    /// Whether this side may leave now after [`finish`](crate::Streams::finish): the peer has acknowledged everything, and
    /// knows what this side has acknowledged.
    fn may_leave(&self) -> bool {
        self.is_flushed()
    }

    /// Whether both directions have ended one by one, and this side may leave.
    fn has_ended_both(&self) -> bool {
        false
    }

    /// Whether the peer has ended its direction, and everything before the end was read.
    fn is_read_to_end(&self) -> bool {
        false
    }

    /// Whether no data of the peer is known to be missing.
    fn is_complete(&self) -> bool;

    /// The peer has sent a valid packet after the handshake.
    fn was_heard(&self) -> bool;

    /// The farewell of a side that closes now. Only a peer that has all data may see the end of the stream.
    fn parting(&self) -> Parting {
        if self.is_flushed() { Parting::Closed } else { Parting::Aborted }
    }

    /// The reason of the end, with the peer's reported error taken into account.
    fn explain(&self, reason: ConnectionLost) -> ConnectionLost {
        reason
    }

    /// Fills in the values that the protocol has.
    fn fill_stats(&self, now: Instant, stats: &mut Stats);
}

/// The endpoint's contribution to a connection that becomes established.
pub(crate) struct Setup<'a> {
    pub(crate) config: &'a Config,
    pub(crate) rng: &'a mut Rng,
    pub(crate) now: Instant,
}

/// The result of a packet for a connection that is being opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step<T> {
    /// No change, or more packets are needed.
    Wait,
    /// No legitimate peer sends this datagram.
    Invalid,
    /// The connection is established. A last packet may be due.
    Done(T),
    Failed(ConnectionLost),
}

impl<T> Step<T> {
    /// The same, with another result of success.
    pub(crate) fn map<U>(self, done: impl FnOnce(T) -> U) -> Step<U> {
        match self {
            Self::Wait => Step::Wait,
            Self::Invalid => Step::Invalid,
            Self::Done(value) => Step::Done(done(value)),
            Self::Failed(reason) => Step::Failed(reason),
        }
    }
}

/// The meaning of a packet or a timer for the connection as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    GoOn,
    /// No legitimate peer sends this datagram.
    Invalid,
    /// The peer left.
    PeerLeft {
        /// All its data has arrived.
        complete: bool,
        /// It has all of this side's data.
        delivered: bool,
    },
    /// The peer, or a forger, reported an error.
    Complained(u32),
    /// The peer has proved that it is at this address now.
    Moved(SocketAddr),
    Lost(ConnectionLost),
}

/// The source of a connection's next datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// One datagram was written into the scratch buffer.
    Scratch,
    /// The same for another address than the peer's.
    Detour(SocketAddr),
    /// The same, and it must not travel in fragments.
    Probe,
    /// [`Conductor::emit`] gives a train of data packets.
    Data,
}
