//! The UDT4 endpoint with its connections. Each connection conducts small parts.
//!
//! ```text
//!              ┌───────────────────────── Endpoint (one UDP port) ─────────────────────────┐
//! datagrams ──▶│ by socket id ─▶ Connection ─▶ handshake │ Established                     │──▶ datagrams
//!              │                    life.rs      roles   │  ├ Receiver ─ buffer, Acks, Naks │
//! commands  ──▶│                                         │  ├ Sender ─ buffer, loss list,   │──▶ events
//!              │                                         │  │          pacer, limits        │
//! time      ──▶│ deadlines (heap)                        │  ├ Congestion ─ controller       │──▶ deadline
//!              │ ready queue                             │  └ Expiry, Progress, Challenge,  │
//!              │                                         │    Farewell                      │
//!              └────────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! Parts do not know one another. [`established`](self) passes facts between them.

mod ack;
mod any_endpoint;
mod challenge;
mod config;
mod congestion;
mod connection;
pub(crate) mod consts;
mod endpoint;
mod established;
pub(crate) mod handshake;
mod lifetimes;
mod messages;
mod nak;
mod receiver;
mod sender;

pub use config::Config;
pub use endpoint::{ConnectOptions, Endpoint};
pub use handshake::MIN_MSS;
pub use messages::{Message, MessageOptions};

#[cfg(test)]
mod tests;
