//! Packet protection: a transport's connections over authenticated and encrypted datagrams.
//!
//! ```text
//!             ┌──────────────────────── Sealed ───────────────────────────┐
//! datagrams ─▶│ KeySchedule: open in place ─▶ packets ─▶ an established   │
//!           ◀─│ KeySchedule: seal ◀──────────────────  connection of UDT  │
//!             └────────▲──────────────────────────────────────────────────┘
//!                      │ first keys, transport parameters
//! datagrams ◀▶ Opening: Exchange (TLS messages over lossy packets) ◀▶ Handshake (TLS 1.3)
//! ```
//!
//! | part | owns |
//! | --- | --- |
//! | `protector` | the traits of keys and handshakes, which `farhaul-secure` and `Null` of tests implement |
//! | `router` | the connections of an endpoint, and its callers: address validation, close packets |
//! | `callers` | who of the callers must make room for another one |
//! | `stateless_replies` | answers to callers for whom nothing is kept |
//! | `close_cache` | the last words to clients whose handshakes failed here |
//! | `opening`, `exchange`, `crypto_stream` | the handshake: one round trip to the first data |
//! | `rendezvous` | both sides call: which of two calls becomes the connection |
//! | `transport_parameters` | what the handshake agrees on for the protocol inside |
//! | `sealed`, `key_schedule`, `replay` | an established connection: sealing, opening, new keys |
//! | `paths` | the peer's address, and the proof of another one |
//! | `encapsulated`, `carrier` | a connection of another protocol inside: its channel as the stream, its datagrams beside it |
//! | `token`, `client_id` | address validation, the name of a handshake |
//!
//! The state machine is the same with every provider of keys. A packet that does not open has not arrived: it changes no
//! state and starts no timer.

use farhaul_units::Network;

mod callers;
mod carrier;
mod client_id;
mod close_cache;
mod crypto_stream;
mod encapsulated;
mod exchange;
mod key_schedule;
#[cfg(any(test, feature = "testing"))]
mod null;
mod opening;
mod paths;
mod protector;
mod rendezvous;
mod replay;
mod router;
mod sealed;
mod stateless_replies;
#[cfg(test)]
mod tests;
mod token;
mod transport_parameters;
mod unvalidated;

pub use crypto_stream::{CryptoStream, TooMuch};
pub use encapsulated::Encapsulated;
#[cfg(any(test, feature = "testing"))]
pub use null::Null;
pub use protector::{Failure, Generations, Handshake, KeyChange, Keys, PacketKey, Provider, Side};
pub use replay::Replay;

pub use crate::transport::Protection;

use self::router::Router;
use crate::config::Config;
use crate::endpoint::Endpoint;
use crate::endpoint::protocol::Carried;
use crate::entropy::Entropy;
use crate::udt;

/// An endpoint whose connections are all under packet protection: any number of UDT connections, at most one listener.
/// `provider` makes keys and handshakes.
pub fn endpoint(config: Config, entropy: Entropy, provider: Box<dyn Provider>) -> Endpoint {
    Endpoint::new(config, entropy.seed, Router::new(provider, entropy.cookie_key))
}

/// The same, whose connections carry those of another protocol. `name` is that of the protocol, and `carried` makes it from
/// randomness of its own.
pub fn endpoint_around(
    (name, carried): (&'static str, impl FnOnce(Entropy) -> Box<dyn Carried>),
    config: Config,
    entropy: Entropy,
    provider: Box<dyn Provider>,
) -> Endpoint {
    // Both draw secrets, which must not be the same.
    let mut entropy = entropy.divided();
    let Entropy { cookie_key, seed } = entropy();
    let router = Router::new(provider, cookie_key).carrying(name, carried(entropy()));
    Endpoint::new(config, seed, router)
}

/// An endpoint that serves secure connections of anybody, and plain UDT4 connections from the networks `admitted` alone.
/// `config` is that of secure connections, `plain` that of plain ones. Connections that this side opens are secure.
pub fn endpoint_with_plain_callers(
    [config, plain]: [Config; 2],
    admitted: Vec<Network>,
    entropy: Entropy,
    provider: Box<dyn Provider>,
) -> Endpoint {
    let mut entropy = entropy.divided();
    let secure = endpoint(config, entropy(), provider);
    let Entropy { cookie_key, seed } = entropy();
    secure.with_callers_of(plain, seed, udt::Router::new(cookie_key, Some(admitted)))
}
