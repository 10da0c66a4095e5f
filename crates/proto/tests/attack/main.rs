//! The attacks of the security design on the UDT4 endpoint. Each has at least one test, named by its number.
//!
//! | rows | file |
//! | --- | --- |
//! | A1–A5, A7, A11: before there is a connection | `handshake.rs` |
//! | A6: callers in great numbers | `admission.rs` |
//! | B1–B4, B9, B10, B13: acknowledgements and claims of a peer | `acks.rs`, `claims.rs` |
//! | B5–B7, B11: loss reports, drop requests, gaps | `ranges.rs` |
//! | B10: peers that make almost no progress | `progress.rs` |
//! | B12: everything that wraps | `wraps.rs` |
//! | B1: forged ends of connections | `endings.rs` |
//! | B1, B6, B15, B20: during a transfer | `transfer.rs`, `clocks.rs` |
//!
//! B17 has no test here, because ICMP messages never reach the core. The driver handles refused ports. Forged and lost probes of the
//! packet size are tested in `udt/path_mtu/tests.rs` and `udt/tests/packet_size.rs`.

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
mod wraps_forged;
