//! The attacks of the security design on the UDT4 endpoint, one test or more for each, named by its number.
//!
//! | rows | file |
//! | --- | --- |
//! | A1–A5, A7, A11: before there is a connection | `handshake.rs` |
//! | A6: callers in great numbers | `admission.rs` |
//! | B1–B4, B9, B10, B13: what a peer acknowledges and claims | `acks.rs`, `claims.rs` |
//! | B5–B7, B11: loss reports, drop requests, gaps | `ranges.rs` |
//! | B10: peers that take next to nothing | `progress.rs` |
//! | B12: everything that wraps | `wraps.rs` |
//! | B1: ends that nobody meant | `endings.rs` |
//! | B1, B6, B15, B20: while a transfer goes on | `transfer.rs`, `clocks.rs` |
//!
//! B17 has no test: ICMP messages never reach the core, which knows datagrams and time alone. What a refused port means
//! is the driver's business.

mod acks;
mod admission;
mod bench;
mod claims;
mod clocks;
mod endings;
mod handshake;
mod progress;
mod ranges;
mod transfer;
mod wraps;
