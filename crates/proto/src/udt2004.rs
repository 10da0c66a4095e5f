//! UDT's predecessor, the protocol of the 2004 paper (paper:udt-2004 §3): four bytes of header, four timers, delay
//! warnings.
//!
//! ```text
//!              ┌──────────────── Endpoint: the shell of one UDP port ─────────────────┐
//! datagrams ──▶│ Router ─▶ Connection ─▶ Opening ─▶ │ Established                     │──▶ datagrams
//!              │ address                 caller     │  ├ Sender ─ buffer, loss list,  │
//! commands  ──▶│                                    │  │          pacer               │──▶ events
//!              │                                    │  ├ Receiver ─ buffer, Acks,     │
//! time      ──▶│ Reception                          │  │   Naks, speed, pairs, trend  │──▶ deadline
//!              │ listener                           │  ├ Congestion ─ controller      │
//!              │                                    │  └ Liveness, Farewell              │
//!              └──────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! | timer of the paper | period | where |
//! | --- | --- | --- |
//! | ACK | SYN, 10 ms | `ack.rs` |
//! | NAK | the larger of RTT and mean arrival interval | `nak.rs` |
//! | SYN | 10 ms | `established/conduct.rs` |
//! | EXP | 2·RTT + SYN | `exp.rs` |
//!
//! All of them stop while they have nothing to do. The rate law is the controller `udt-2004`
//! (`cc/src/rate/udt_2004.rs`). Any other controller works as well.
//!
//! A packet does not name its connection, so two addresses have one connection at a time. Nothing is authenticated. An
//! attacker that forges an address and guesses a number in the window can put bytes into the stream.
//!
//! Departures (docs/papers/departures.md): D120 to D123 fill gaps in the paper's format. D130 to D139 serve hostile or
//! busy networks.

mod ack;
mod arrival_speed;
mod called;
mod config;
mod congestion;
mod delay_trend;
mod established;
mod exp;
mod handshake;
mod nak;
mod opening;
mod packet_pair;
mod receiver;
mod router;
mod send_buffer;
mod sender;

pub use config::Config;

use crate::config::{Entropy, controller_factory};
use crate::shell::endpoint::Endpoint;
use crate::shell::protocol::Carried;

/// The endpoint of the 2004 protocol on one UDP port: one connection per address, at most one listener.
///
/// [`connect`](crate::Streams::connect) also fails with [`AlreadyConnected`](crate::ConnectError::AlreadyConnected),
/// because two addresses have one connection at a time. [`default_config`] has the settings with the paper's controller.
/// Settings without use in this protocol (messages, rendezvous, acknowledgement numbers) are ignored.
pub fn endpoint(config: crate::Config, entropy: Entropy) -> Endpoint {
    Endpoint::new(config, entropy.seed, router::Router::new(entropy.cookie_key))
}

/// The protocol inside secure connections, which may have several of its connections between two ports.
pub(crate) fn carried(_config: &crate::Config, entropy: Entropy) -> Box<dyn Carried> {
    Box::new(router::Router::new(entropy.cookie_key))
}

/// The default settings with the paper's controller `udt-2004`, which uses raw estimates and obeys warnings.
pub fn default_config() -> crate::Config {
    let spec = "udt-2004".parse().expect("the registry has it");
    crate::Config { controller: controller_factory(spec), ..crate::Config::default() }
}
