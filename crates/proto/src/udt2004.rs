//! The protocol of the 2004 paper (paper:udt-2004 §3), from which UDT grew: four bytes of header, four timers, delay warnings.
//!
//! ```text
//!              ┌──────────────────────── Endpoint (one UDP port) ────────────────────────┐
//! datagrams ──▶│ by address ─▶ Connection ─▶ handshake │ Established                     │──▶ datagrams
//!              │                                       │  ├ Sender ─ buffer, loss list,  │
//! commands  ──▶│                                       │  │          pacer               │──▶ events
//!              │                                       │  ├ Receiver ─ buffer, Acks,     │
//! time      ──▶│ deadlines (heap)                      │  │   Naks, speed, pairs, trend  │──▶ deadline
//!              │ ready queue                           │  └ Congestion ─ controller      │
//!              └─────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! | timer of the paper | period | where |
//! | --- | --- | --- |
//! | ACK | SYN, 10 ms | `ack.rs` |
//! | NAK | the larger of RTT and mean arrival interval | `nak.rs` |
//! | SYN | 10 ms | `established.rs` |
//! | EXP | 2·RTT + SYN | `exp.rs` |
//!
//! All of them rest while there is nothing for them to do. The law of its rate is the controller `udt-2004`
//! (`cc/src/rate/udt_2004.rs`); any other controller runs as well.
//!
//! A packet does not say to which connection it belongs: two addresses have one connection at a time. Whoever can send in
//! the name of an address and guesses a number in the window can put bytes into the stream; nothing here is authenticated.
//!
//! Departures (docs/papers/departures.md): D120 to D123 what the paper leaves open of the format, D130 to D139 what a hostile or
//! busy network asks for.

mod ack;
mod arrival_speed;
mod congestion;
mod connection;
mod delay_trend;
mod endpoint;
mod established;
mod exp;
mod handshake;
mod loss_list;
mod nak;
mod packet_pair;
mod receiver;
mod send_buffer;
mod sender;

pub use endpoint::Endpoint;

use crate::config::{Config, controller_factory};

/// The default settings with the controller of the paper: `udt-2004`, its estimates as they are and its warnings obeyed.
pub fn default_config() -> Config {
    let spec = "udt-2004".parse().expect("the registry has it");
    Config { controller: controller_factory(spec), ..Config::default() }
}
