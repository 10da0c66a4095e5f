//! What a protocol implements for its connections, beside [`Demultiplexer`](super::Demultiplexer) for its endpoint. All traits are object-safe, so
//! an endpoint serves protocols that it does not know, and a connection changes its phases behind one pointer.
//!
//! | per | calls through a pointer |
//! | --- | --- |
//! | datagram in | [`Demultiplexer::key`](super::Demultiplexer::key), [`Established::on_datagram`] |
//! | train out | [`Established::poll`], [`Established::emit`] |
//! | receive call, timer, command | one each |

mod effect;

use core::any::Any;
use core::net::SocketAddr;

use bytes::Bytes;
use farhaul_cc::Controller;
use farhaul_units::{Duration, Instant, Rate};

pub use self::effect::{Effect, Output, Setup, Step};
use super::closing::CloseKind;
use super::control_channel::Request;
use crate::channel::ChannelEnd;
use crate::config::Config;
use crate::error::ConnectionLost;
use crate::stats::Stats;
use crate::transport::{AddressPair, COPIED_BLOCK, MessageOptions, Protection, StreamError};

/// A protocol whose connections secure ones can carry: a carrier's stream is the control channel, and its unreliable
/// datagrams are the protocol's.
pub trait Carried: Send {
    /// Whether its connections use the stream.
    fn needs_channel(&self) -> bool;

    /// A connection to `peer` that this side opens. `mss` is the largest packet that the carrier takes, counted as
    /// [`Config::mss`].
    fn call(&mut self, peer: SocketAddr, mss: u32, config: &Config, now: Instant) -> Box<dyn Opening>;

    /// A connection that `peer` opens.
    fn answer(&mut self, peer: SocketAddr, mss: u32, config: &Config, now: Instant) -> Box<dyn Opening>;
}

/// A connection from its first packet until it is established.
///
/// One that opens on a control channel holds its end of the channel, and hands it to the established connection.
pub trait Opening: Any + Send {
    /// Handles a datagram of the peer, which may be decrypted in place. The datagram that completes the opening also goes to the established connection.
    fn on_datagram(&mut self, datagram: &mut [u8], setup: Setup<'_>) -> Step<Box<dyn Established>>;

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

    // ---- the control channel ----

    /// The host has opened the channel.
    fn channel_opened(&mut self, _now: Instant) {}

    /// Takes bytes of the peer, in any division. An established connection holds those that followed the opening.
    fn on_channel(&mut self, _bytes: &[u8], _setup: Setup<'_>) -> Step<Box<dyn Established>> {
        Step::Wait
    }

    /// The host takes more bytes.
    fn channel_drained(&mut self) {}

    /// The peer ended the channel, or it failed. Nothing arrives after this.
    fn channel_ended(&mut self, _now: Instant, _end: ChannelEnd) -> Effect {
        Effect::GoOn
    }

    /// The next request to the host.
    fn poll_channel(&mut self, _now: Instant) -> Option<Request> {
        None
    }

    /// The bytes of the last [`Request::Send`].
    fn channel_bytes(&self) -> &[u8] {
        &[]
    }
}

/// An established connection. It conducts the parts of its protocol.
pub trait Established: Any + Send {
    /// Whether its application may use it. Inside a carrier, a protocol has a handshake of its own.
    fn is_ready(&self) -> bool {
        true
    }

    // ---- input ----

    /// The next datagrams reached this computer at `arrived`.
    fn begin_batch(&mut self, arrived: Instant);

    /// Handles one datagram of the peer, which may be decrypted in place.
    fn on_datagram(&mut self, datagram: &mut [u8], setup: Setup<'_>) -> Effect;

    /// Handles one datagram from another address than the peer's. Only a protocol whose datagrams prove their sender
    /// takes any.
    fn on_datagram_from(&mut self, _from: AddressPair, _datagram: &mut [u8], _setup: Setup<'_>) -> Effect {
        Effect::Invalid
    }

    /// All datagrams of one receive call were handled.
    fn finish_batch(&mut self, setup: Setup<'_>) -> Effect;

    /// The socket's receive buffer of so many bytes has overflowed.
    fn note_drops(&mut self, _now: Instant, _buffer: u64) {}

    /// Fires due timers. The caller reads the deadline anew afterwards. A closed connection is called until it
    /// [is gone](Self::is_gone).
    fn handle_timeout(&mut self, now: Instant) -> Effect;

    /// This computer was suspended for `gap` (attack B20). All time limits start again.
    fn on_suspended(&mut self, now: Instant, gap: Duration);

    // ---- output ----

    /// The next datagrams to send. A side that is closing sends no data, only its close packets and what goes before it.
    fn poll(&mut self, now: Instant, scratch: &mut Vec<u8>) -> Option<Output>;

    /// The datagrams that the last [`poll`](Self::poll) found by [`Output::Data`], back to back, and the length of each but
    /// the last. They count as sent. They lie in the send buffer, or in `scratch`, which is empty.
    fn emit<'a>(&'a mut self, now: Instant, scratch: &'a mut Vec<u8>) -> Option<(usize, &'a [u8])>;

    /// When to call next.
    fn deadline(&self, now: Instant) -> Option<Instant>;

    // ---- commands ----

    /// Takes `data` into the send buffer as far as there is room. Returns the number of bytes taken.
    fn write(&mut self, now: Instant, data: &[u8]) -> usize;

    /// The same for a block, which may be kept in place of a copy.
    fn write_block(&mut self, now: Instant, block: Bytes) -> usize {
        self.write(now, &block)
    }

    /// Bytes that [`write`](Self::write) takes now.
    fn room(&self) -> u64;

    /// See [`Streams::whole_trains`](crate::Streams::whole_trains).
    fn whole_trains(&self, bytes: usize) -> usize {
        bytes
    }

    /// Whether to wake a writer that found no room.
    fn has_room_again(&mut self) -> bool;

    /// Moves received bytes into `out`. Returns their number.
    fn read(&mut self, now: Instant, out: &mut [u8]) -> usize;

    /// The same as a block of its own, empty if there is nothing. It is part of what has arrived, as much as costs no copy if possible.
    fn read_block(&mut self, now: Instant) -> Bytes {
        let mut block = vec![0; usize::try_from(self.readable()).unwrap_or(usize::MAX).min(COPIED_BLOCK)];
        let read = self.read(now, &mut block);
        block.truncate(read);
        block.into()
    }

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

    /// This side closes, and begins to tell the peer how.
    fn begin_close(&mut self, now: Instant, kind: CloseKind);

    /// Whether the last close packet was sent.
    fn is_close_sent(&self) -> bool;

    /// The connection is closed for its application.
    fn close(&mut self);

    /// Whether nothing is left to do for the peer after that.
    fn is_gone(&self) -> bool {
        true
    }

    /// Caps the sending rate from now on, headers and retransmissions included; `None` for no cap. Returns false if the
    /// protocol cannot change its cap.
    fn set_max_rate(&mut self, _now: Instant, _rate: Option<Rate>) -> bool {
        false
    }

    /// Replaces the congestion controller in mid-transfer. Returns false if the protocol has none that can be replaced.
    fn set_controller(&mut self, _now: Instant, _controller: Box<dyn Controller>) -> bool {
        false
    }

    // ---- unreliable datagrams ----

    /// Appends packets with datagrams, each of `size` bytes and the last maybe shorter, to `out`. Returns the bytes that it
    /// took, fewer than all if a train has no room for more, and the length of a packet. `None` if nothing can be sent now,
    /// or the protocol has no such datagrams.
    fn send_datagrams(
        &mut self,
        now: Instant,
        (datagrams, size): (&[u8], usize),
        out: &mut Vec<u8>,
    ) -> Option<(usize, usize)> {
        let _ = (now, datagrams, size, out);
        None
    }

    /// Whether the connection has unreliable datagrams alone, and no stream for its application.
    fn has_datagrams_alone(&self) -> bool {
        false
    }

    // ---- messages, signals ----

    /// Takes one message for sending. Returns false if there is no room now.
    ///
    /// # Errors
    /// The protocol has no messages, or this one is longer than the peer's window.
    fn write_message(&mut self, now: Instant, message: &[u8], options: MessageOptions) -> Result<bool, StreamError> {
        let _ = (now, message, options);
        Err(StreamError::WrongMode)
    }

    /// Copies the next message into `out`, as far as there is room. Returns its length; `None` if none is complete.
    fn read_message(&mut self, _out: &mut [u8]) -> Option<usize> {
        None
    }

    /// Tells the peer that this side cannot store the data.
    fn signal_error(&mut self, _code: u32) {}

    /// Sends a user-defined control packet to the peer's controller. Not reliable.
    fn send_custom(&mut self, _kind: u16, _body: &[u8]) {}

    // ---- the control channel ----

    /// Takes bytes of the peer, in any division, behind those that the opening left.
    fn on_channel(&mut self, _bytes: &[u8], _now: Instant) -> Effect {
        Effect::GoOn
    }

    /// The host takes more bytes.
    fn channel_drained(&mut self) {}

    /// The peer ended the channel, or it failed. Nothing arrives after this.
    fn channel_ended(&mut self, _now: Instant, _end: ChannelEnd) -> Effect {
        Effect::GoOn
    }

    /// The next request to the host.
    fn poll_channel(&mut self, _now: Instant) -> Option<Request> {
        None
    }

    /// The bytes of the last [`Request::Send`].
    fn channel_bytes(&self) -> &[u8] {
        &[]
    }

    // ---- facts ----

    /// The protection of its packets; `None` if they have none.
    fn protection(&self) -> Option<&Protection> {
        None
    }

    /// Whether the peer has acknowledged everything written, so that this side may close.
    fn is_flushed(&self) -> bool;

    /// Whether this side may close now after [`finish`](crate::Streams::finish): the peer has acknowledged everything, and
    /// knows what this side has acknowledged.
    fn may_close(&self) -> bool {
        self.is_flushed()
    }

    /// Whether both directions have ended one by one, and this side may close.
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

    /// How a side closes that does so now. Only a peer that has all data may see the end of the stream.
    fn close_kind(&self) -> CloseKind {
        if self.is_flushed() { CloseKind::Closed } else { CloseKind::Aborted }
    }

    /// The reason of the end, with the peer's reported error taken into account.
    fn explain(&self, reason: ConnectionLost) -> ConnectionLost {
        reason
    }

    /// Fills in the values that the protocol has.
    fn fill_stats(&self, now: Instant, stats: &mut Stats);
}
