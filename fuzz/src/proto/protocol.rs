//! The differences between the protocols for the fuzz targets.

use farhaul_proto::{Config, ConnectOptions, Endpoint, Entropy, Mode};
use farhaul_units::{Rng, SeqNo};

use super::script::Script;

/// The first sequence number in both directions of every connection for which datagrams are generated.
pub(super) const FIRST: SeqNo = SeqNo::new(0x0101_0101);

/// A protocol under test, with knowledge of its packet format.
pub(super) trait Protocol: Sized {
    const MODES: &'static [Mode];
    /// The largest sequence number, which the first header word of a data packet holds.
    const MAX_SEQ: u32;

    /// The default settings.
    fn config() -> Config;

    /// An endpoint without connections.
    fn endpoint(config: Config, entropy: Entropy) -> Endpoint;

    /// An endpoint that accepts callers.
    fn listening(config: Config, entropy: Entropy, mode: Mode) -> Endpoint {
        let mut end = Self::endpoint(config, entropy);
        end.listen(mode).expect("the mode is one of the protocol");
        end
    }

    /// Options of a call that the protocol has.
    fn options(mode: Mode, rendezvous: bool) -> ConnectOptions;

    // ---- who knows the format ----

    /// The connection id in a datagram, if it has one.
    fn id_in(datagram: &[u8]) -> Option<[u8; 4]>;

    /// The connection id announced by a listener's answer.
    fn id_announced(answer: &[u8]) -> Option<[u8; 4]> {
        Self::id_in(answer)
    }

    /// Sets the connection id of a datagram, if its type has one.
    fn claim_id(datagram: &mut [u8], id: [u8; 4]);

    /// Whether the datagram addresses no particular connection.
    fn is_unaddressed(datagram: &[u8]) -> bool;

    /// The handshake of caller number `host`: the first one, or the second one in response to `answer`.
    fn introduction(host: u8, mode: Mode, answer: Option<&[u8]>) -> Vec<u8>;

    /// A datagram of any type for the connection with this id, with numbers from `near` or the script.
    fn forge(kind: u8, id: [u8; 4], near: &Near<'_>, script: &mut Script<'_>) -> Vec<u8>;

    /// A datagram of any type with numbers near [`FIRST`].
    fn plausible(rng: &mut Rng) -> Vec<u8>;
}

/// Returns a number close to those in use.
pub(super) type Near<'a> = dyn Fn(&mut Script<'_>) -> u32 + 'a;

/// A number near [`FIRST`], or occasionally any other.
pub(super) fn some_number(rng: &mut Rng) -> u32 {
    if rng.below(8) == 0 { rng.next_u32() } else { FIRST.plus(rng.below(40) as u32).value() }
}
