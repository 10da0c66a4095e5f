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
mod challenge;
mod congestion;
mod endpoint;
mod established;
mod lifetimes;
mod messages;
mod nak;
mod opening;
mod receiver;
mod router;
mod sender;

pub use endpoint::{ConnectOptions, Endpoint};
pub use messages::{Message, MessageOptions};

pub use crate::shell::handshake::MIN_MSS;

#[cfg(test)]
mod tests;
