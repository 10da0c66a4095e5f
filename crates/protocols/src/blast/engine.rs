//! The engines of a blast protocol: the two ends of one direction of data.
//!
//! An engine takes and gives the bytes of a stream, the datagrams of one direction, and control records in both. It
//! does not know its peer's address, the tag of its datagrams, the credit, or the division of the channel into frames.

use core::fmt;

use farhaul_units::{Duration, Instant};

use super::partial;
use super::receiving::ReceiverState;
use super::sending::SenderState;
pub use super::setup::{Prefix, Setup, Transmission};
use farhaul_proto::error::PeerMisbehaved;
use farhaul_proto::stats::Stats;

/// A blast protocol.
pub trait Protocol: fmt::Debug + 'static {
    /// Its settings.
    type Options: Clone + fmt::Debug + Send;
    /// The sending end of its data.
    type Sender: Sender;
    /// The receiving end.
    type Receiver: Receiver;

    /// Its name in the registry and in the hello of a channel.
    const NAME: &'static str;

    /// Bytes for the hello: options that the peer's receiver must know. Empty for most.
    fn hello(_options: &Self::Options) -> Vec<u8> {
        Vec::new()
    }

    /// A sender for the datagrams of `setup`.
    fn sender(options: &Self::Options, setup: Setup<'_>) -> Self::Sender;

    /// A receiver of the peer's datagrams. `hello` is the peer's.
    ///
    /// # Errors
    /// The peer's hello has options that this side does not support.
    fn receiver(options: &Self::Options, hello: &[u8], setup: Setup<'_>) -> Result<Self::Receiver, PeerMisbehaved>;
}

/// Counts of a peer's receiver, from a feedback frame, and what is known of the path meanwhile. Original programs send
/// none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Feedback {
    /// Datagrams that arrived there so far, duplicates included.
    pub datagrams: u64,
    /// Their bytes, without tags.
    pub bytes: u64,
    /// When the last of them reached the peer's computer, by the peer's clock.
    pub clock: Duration,
    /// The RTTs of the path.
    pub path: RoundTrips,
}

/// The RTTs of a path by recent samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoundTrips {
    /// The least one: that of an empty path.
    pub least: Duration,
    /// The smoothed one.
    pub smoothed: Duration,
    /// The mean deviation from it.
    pub variation: Duration,
}

/// The sending end of one direction. A protocol brings what differs from the others.
pub trait Sender: fmt::Debug + Send {
    /// The part that does not depend on the protocol.
    fn state_mut(&mut self) -> &mut SenderState;

    // ---- the application's side ----

    /// Bytes that [`write`](Self::write) takes now.
    fn room(&self) -> usize;

    /// Takes bytes of the stream, and returns their number.
    fn write(&mut self, now: Instant, data: &[u8]) -> usize;

    /// Nothing follows for now. All bytes written so far must reach the peer without more: a datagram or an object that
    /// is not full leaves as it is.
    fn flush(&mut self, now: Instant);

    /// Whether the peer has everything written.
    fn is_delivered(&self) -> bool;

    // ---- the channel ----

    /// Takes control bytes of the peer's receiver, in any division.
    ///
    /// # Errors
    /// No receiver sends them.
    fn handle_control(&mut self, now: Instant, bytes: &[u8]) -> Result<(), PeerMisbehaved> {
        take_records(self, now, bytes)
    }

    /// Takes one record of the peer's receiver from the front of `bytes`, and returns its length; `None` if more bytes are
    /// needed.
    ///
    /// # Errors
    /// No receiver sends it.
    fn handle_record(&mut self, now: Instant, bytes: &[u8]) -> Result<Option<usize>, PeerMisbehaved>;

    /// Appends control bytes for the peer's receiver. Called when the channel has room.
    fn poll_control(&mut self, _now: Instant, _out: &mut Vec<u8>) {}

    /// The peer has the stream up to this offset, counted from the first byte written to this engine.
    fn on_delivered(&mut self, _now: Instant, _offset: u64) {}

    /// Counts of the peer's receiver.
    fn on_feedback(&mut self, _now: Instant, _feedback: &Feedback) {}

    /// A new estimate of the RTT.
    fn set_round_trip(&mut self, round_trip: Duration) {
        self.state_mut().round_trip = round_trip;
    }

    // ---- datagrams and time ----

    /// Datagrams that may leave now.
    fn plan(&mut self, now: Instant) -> Option<Transmission>;

    /// The datagrams of a plan, back to back, and the length of each but the last. They count as sent. The bytes are
    /// borrowed from the buffer where possible and from `scratch` otherwise.
    fn emit<'a>(&'a mut self, now: Instant, plan: Transmission, scratch: &'a mut Vec<u8>) -> Option<(usize, &'a [u8])>;

    /// Fires the timers that are due.
    fn handle_timeout(&mut self, _now: Instant) {}

    /// When to call [`plan`](Self::plan) or [`handle_timeout`](Self::handle_timeout) next; `None` if only input can
    /// cause output.
    fn deadline(&self) -> Option<Instant>;

    /// The driver called `gap` late, so this computer was suspended. Time limits begin again.
    fn on_suspended(&mut self, _now: Instant, _gap: Duration) {}

    /// Fills in the figures of this direction.
    fn fill_stats(&self, now: Instant, stats: &mut Stats);
}

/// Takes control bytes of the peer's receiver as records of `sender`.
///
/// # Errors
/// No receiver sends them.
pub(crate) fn take_records<S: Sender + ?Sized>(
    sender: &mut S,
    now: Instant,
    bytes: &[u8],
) -> Result<(), PeerMisbehaved> {
    partial::feed(sender, |own| &mut own.state_mut().partial, bytes, |own, bytes| own.handle_record(now, bytes))
}

/// The receiving end of one direction. A protocol brings what differs from the others.
pub trait Receiver: fmt::Debug + Send {
    /// The part that does not depend on the protocol.
    fn state(&self) -> &ReceiverState;

    /// The same, mutable.
    fn state_mut(&mut self) -> &mut ReceiverState;

    // ---- datagrams and time ----

    /// Takes one datagram without its prefix. Returns false if no sender of this protocol sends it. [`end_batch`] ends
    /// the datagrams of one receive call.
    ///
    /// [`end_batch`]: Self::end_batch
    fn handle_datagram(&mut self, now: Instant, datagram: &[u8]) -> bool;

    /// All datagrams of one receive call were handled.
    fn end_batch(&mut self, now: Instant);

    /// Fires the timers that are due.
    fn handle_timeout(&mut self, _now: Instant) {}

    /// When to call [`handle_timeout`](Self::handle_timeout) next; `None` if only input can cause output.
    fn deadline(&self) -> Option<Instant> {
        None
    }

    /// The driver called `gap` late, so this computer was suspended. Time limits begin again.
    fn on_suspended(&mut self, _now: Instant, _gap: Duration) {}

    // ---- the channel ----

    /// Takes control bytes of the peer's sender, in any division.
    ///
    /// # Errors
    /// No sender sends them.
    fn handle_control(&mut self, now: Instant, bytes: &[u8]) -> Result<(), PeerMisbehaved> {
        partial::feed(self, |own| &mut own.state_mut().partial, bytes, |own, bytes| own.handle_record(now, bytes))
    }

    /// Takes one record of the peer's sender from the front of `bytes`, and returns its length; `None` if more bytes are
    /// needed. Senders of some protocols say nothing.
    ///
    /// # Errors
    /// No sender sends it.
    fn handle_record(&mut self, _now: Instant, bytes: &[u8]) -> Result<Option<usize>, PeerMisbehaved> {
        if bytes.is_empty() { Ok(None) } else { Err(PeerMisbehaved::out_of_turn("a record of the sender")) }
    }

    /// Appends control bytes for the peer's sender. Called when the channel has room.
    fn poll_control(&mut self, now: Instant, out: &mut Vec<u8>);

    /// A new estimate of the RTT.
    fn set_round_trip(&mut self, round_trip: Duration) {
        self.state_mut().round_trip = round_trip;
    }

    // ---- the application's side ----

    /// Bytes in order that [`read`](Self::read) would return.
    fn available(&self) -> usize {
        usize::try_from(self.state().buffer.available()).unwrap_or(usize::MAX)
    }

    /// Moves bytes in order into `out`, and returns their number.
    fn read(&mut self, out: &mut [u8]) -> usize {
        self.state_mut().read(out)
    }

    /// Fills in the figures of this direction.
    fn fill_stats(&self, _now: Instant, stats: &mut Stats) {
        self.state().fill_stats(stats);
    }
}
