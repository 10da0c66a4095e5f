//! The attacks of the security design on secure connections. Each test is named by the number of its attack.
//!
//! An attacker has no keys. He forges source addresses, repeats and damages what he sees on the path, and knows what is
//! inside the packets, which is more than a real one knows. Nothing of it may change a connection. A hostile *peer* has
//! keys; his attacks are in `peers.rs`.
//!
//! | rows | file |
//! | --- | --- |
//! | A1–A3, A7, A8, A11: before there is a connection | `handshake.rs` |
//! | A6, A10: floods and bad paths | `floods.rs` |
//! | A9: another version, another ClientHello, plain packets | `downgrade.rs` |
//! | A4, A5, B2, B3, B5–B8, B10, B11: peers with keys | `peers.rs` |
//! | B1–B14: forged packets during a transfer | `forged.rs` |
//! | B9: repeated packets; B12: everything that wraps, and new keys | `repeated.rs` |
//! | B15, B20: outages and suspended computers | `clocks.rs` |
//! | B16: copied packets from other addresses | `moves.rs` |
//! | B21: peers whose end of a direction contradicts their data | `half_close.rs` |
//!
//! Without a test here:
//!
//! | row | reason |
//! | --- | --- |
//! | A1, as it stands | no cookies; `a1_…` tries the tokens in their place |
//! | A3, as it stands | no minutes; `a3_…` crosses the lifetime of a token |
//! | A8 of a rendezvous | roles and forged calls: `a8_…` in `proto/src/secure/tests/rendezvous.rs` |
//! | B8, as in plain mode | whoever has keys is known, so no packet is withheld; `b8_…` shows that the cap of the port holds |
//! | B17 | ICMP messages never reach the core: `b17_…` of the library |
//! | B18 | sizes and times are not hidden |
//! | B19 | the limits of a key are those of the commands: `b19_…` there |
#![expect(clippy::unwrap_used, reason = "in tests a failure is a panic")]

mod bench;
mod clocks;
mod downgrade;
mod floods;
mod forged;
mod half_close;
mod handshake;
mod moves;
mod peers;
mod repeated;
mod server;
