//! Farhaul against the reference implementation: the real libudt is the other end, and digests are compared.
//!
//! | file | content |
//! | --- | --- |
//! | `requirement.rs` | requirements of the machine, and the reason for skipping a test |
//! | `libudt.rs` | the reference peer's process and reports |
//! | `content.rs` | the bytes that both sides derive from a seed, and their digests |
//! | `here.rs` | this side, with bounded waits |
//! | `tap.rs` | a relay that records packets, drops some and injects others |
//! | `long_path.rs` | a relay that resembles a long or bad path |
//! | the others | one topic each |
#![expect(clippy::unwrap_used, reason = "in tests a failure is a panic")]

mod bad_path;
mod capture;
mod content;
mod file;
mod forged;
mod here;
mod libudt;
mod long_path;
mod lossy_messages;
mod measure;
mod message;
mod packet_types;
mod rendezvous;
mod requirement;
mod several;
mod stream;
mod tap;
