//! The UDT4 endpoint with its connections. Each connection conducts small parts.
//!
//! ```text
//!              ┌───────────────── Endpoint: the shell of one UDP port ──────────────────┐
//! datagrams ──▶│ Router ─▶ Connection ─▶ Opening ─────▶ │ Established                   │──▶ datagrams
//!              │ socket id               caller         │  ├ Receiver ─ buffer, Acks,   │
//! commands  ──▶│                         rendezvous     │  │            Naks            │──▶ events
//!              │                                        │  ├ Sender ─ buffer, loss list,│
//! time      ──▶│ Reception                              │  │          pacer, limits     │──▶ deadline
//!              │ listener                               │  ├ Congestion ─ controller    │
//!              │                                        │  ├ PathMtu                    │
//!              │                                        │  └ Vigil, Challenge, Farewell │
//!              └────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! `shell` has all that does not differ between protocols. Parts do not know one another. [`established`](self) passes
//! facts between them.

mod ack;
mod any_endpoint;
mod challenge;
mod config;
mod congestion;
mod endpoint;
mod established;
mod half_close;
mod lifetimes;
mod messages;
mod nak;
mod opening;
mod path_mtu;
mod receipts;
mod receiver;
mod router;
mod sender;

pub use config::Config;
pub use endpoint::{ConnectOptions, Endpoint};
pub(crate) use established::Established;
pub(crate) use messages::HasUdt;
pub use messages::{Message, MessageOptions};

pub use crate::shell::handshake::MIN_MSS;

/// Its name in the registry, and in the terms of secure connections.
pub(crate) const NAME: &str = "udt";

#[cfg(test)]
mod tests;
