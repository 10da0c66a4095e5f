//! What the protocols do differently, as far as the targets are concerned.

use std::net::SocketAddr;

use farhaul_proto::udt::MessageOptions;
use farhaul_proto::{Config, ConnectionId, Entropy, Mode, Streams};
use farhaul_units::{Instant, Rng, SeqNo};

use super::script::Script;

/// The first packet of both sides of every connection that strangers make up datagrams for.
pub(super) const FIRST: SeqNo = SeqNo::new(0x0101_0101);

/// One of the transports under test, and those who know its format.
pub(super) trait Protocol: Streams + Sized {
    const MODES: &'static [Mode];
    /// The largest number of a data packet, which the first word of its header holds.
    const MAX_SEQ: u32;

    /// The default settings.
    fn config() -> Config;

    /// An endpoint that accepts callers.
    fn listening(config: Config, entropy: Entropy, mode: Mode) -> Self;

    /// Opens a connection, if that can be.
    fn call(&mut self, now: Instant, peer: SocketAddr, mode: Mode, rendezvous: bool) -> Option<ConnectionId>;

    /// Connections held.
    fn connections(&self) -> usize;

    /// Hands in a message; whether it was taken.
    fn send_message(&mut self, _now: Instant, _id: ConnectionId, _message: &[u8], _options: MessageOptions) -> bool {
        false
    }

    /// The next message, if there is one.
    fn recv_message(&mut self, _now: Instant, _id: ConnectionId, _out: &mut [u8]) -> Option<Received> {
        None
    }

    /// A word of the application to its peer beside the data: about an error, or its own.
    fn say(&mut self, _id: ConnectionId, _error: bool, _argument: u8) {}

    // ---- who knows the format ----

    /// The id of a connection that a datagram gives away.
    fn id_in(datagram: &[u8]) -> Option<[u8; 4]>;

    /// The id under which the connection is reached that this answer of a listener announces.
    fn id_announced(answer: &[u8]) -> Option<[u8; 4]> {
        Self::id_in(answer)
    }

    /// Makes a datagram one of the connection with this id, where it has a place for that.
    fn claim_id(datagram: &mut [u8], id: [u8; 4]);

    /// Whether it is for no connection in particular.
    fn is_unaddressed(datagram: &[u8]) -> bool;

    /// What a caller with number `host` says after it heard `answer`: first of all, and once more.
    fn introduction(host: u8, mode: Mode, answer: Option<&[u8]>) -> Vec<u8>;

    /// A datagram of any type for the connection with this id, with numbers that `near` gives or that the script has.
    fn forge(kind: u8, id: [u8; 4], near: &Near<'_>, script: &mut Script<'_>) -> Vec<u8>;

    /// A datagram of any type with numbers near [`FIRST`].
    fn plausible(rng: &mut Rng) -> Vec<u8>;
}

/// A number close to those in use.
pub(super) type Near<'a> = dyn Fn(&mut Script<'_>) -> u32 + 'a;

/// A message that came.
pub(super) struct Received {
    pub(super) len: usize,
    pub(super) truncated: bool,
}

/// A number near [`FIRST`], or now and then any other.
pub(super) fn some_number(rng: &mut Rng) -> u32 {
    if rng.below(8) == 0 { rng.next_u32() } else { FIRST.plus(rng.below(40) as u32).value() }
}
