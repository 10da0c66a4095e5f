//! The attacks of the security design on the UDT4 endpoint. Each has at least one test, named by its number.
//!
//! | rows | file |
//! | --- | --- |
//! | A1–A5, A7, A11: before there is a connection | `handshake.rs` |
//! | A8–A10, B16: strangers, other protocols, damaged calls | `strangers.rs` |
//! | A6: callers in great numbers | `admission.rs` |
//! | B1–B4, B9, B10, B13: acknowledgements and claims of a peer | `acks.rs`, `claims.rs` |
//! | B8: acknowledgements of packets that were withheld | `optimistic.rs` |
//! | B5–B7, B11: loss reports, drop requests, gaps | `ranges.rs` |
//! | B10: peers that make almost no progress | `progress.rs` |
//! | B12: everything that wraps | `wraps.rs` |
//! | B1: forged ends of connections | `endings.rs` |
//! | B1, B6, B15, B20: during a transfer | `transfer.rs`, `clocks.rs` |
//!
//! Without a test here:
//!
//! | row | reason |
//! | --- | --- |
//! | B14 alone | custom packets come with the warnings of B10, in `b10_b14_…` |
//! | B17 | ICMP messages never reach the core: `b17_…` of the library. Forged probes of the packet size: `udt/path_mtu/tests.rs` |
//! | B18 | sizes and times are not hidden |
//! | B19 | plain peers have no keys; the cap of all plain clients of a daemon is tested there |

mod acks;
mod admission;
mod bench;
mod claims;
mod clocks;
mod endings;
mod handshake;
mod optimistic;
mod progress;
mod ranges;
mod strangers;
mod transfer;
mod wraps;
mod wraps_forged;
