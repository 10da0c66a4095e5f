//! The UDT4 endpoint with its connections. Each connection conducts small parts.
//!
//! ```text
//!              ┌───────────────── Endpoint of one UDP port ─────────────────────────────┐
//! datagrams ──▶│ Router ─▶ Connection ─▶ Opening ─────▶ │ Established                   │──▶ datagrams
//!              │ socket id               caller         │  ├ Receiver ─ buffer, Acks,   │
//! commands  ──▶│                         rendezvous     │  │            Naks            │──▶ events
//!              │                                        │  ├ Sender ─ buffer, loss list,│
//! time      ──▶│ Reception                              │  │          pacer, limits     │──▶ deadline
//!              │ listener                               │  ├ Congestion ─ controller    │
//!              │                                        │  ├ PathMtu, Challenge         │
//!              │                                        │  └ Liveness, Closing          │
//!              └────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! `endpoint` has all that does not differ between protocols. Parts do not know one another. `established` passes
//! facts between them.

mod ack;
mod challenge;
mod congestion;
mod established;
mod half_close;
mod lifetimes;
mod nak;
mod opening;
mod path_mtu;
mod receipts;
mod receiver;
mod router;
mod sender;

pub use crate::config::UdtConfig as Config;
pub(crate) use established::UdtConnection;
pub(crate) use router::Router;

use crate::config::Config as EndpointConfig;
use crate::endpoint::Endpoint;
pub use crate::endpoint::handshake::MIN_MSS;
use crate::entropy::Entropy;
pub use crate::transport::{ConnectOptions, Message, MessageOptions};

/// Its name in the registry, and in the terms of secure connections.
pub const NAME: &str = "udt";

/// The UDT4 endpoint of one UDP port (UDT's multiplexer), without connections.
///
/// ```text
/// datagrams ─▶ by socket id ─▶ Connection ─▶ events
///              id 0 ─▶ Listener, or the rendezvous with that address
/// Connection ─▶ ready queue ─▶ one train each in turn ─▶ datagrams
/// ```
pub fn endpoint(config: EndpointConfig, entropy: Entropy) -> Endpoint {
    Endpoint::new(config, entropy.seed, Router::new(entropy.cookie_key, None))
}

#[cfg(test)]
mod tests;
