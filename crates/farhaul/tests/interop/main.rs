//! Farhaul against the reference implementation: the real libudt at the other end, compared by digest.
//!
//! | file | what it owns |
//! | --- | --- |
//! | `requirement.rs` | what the machine must have, and the line that says why a test is skipped |
//! | `libudt.rs` | running the reference peer and reading its reports |
//! | `content.rs` | the bytes that both sides can make from a seed, and their digests |
//! | `here.rs` | our side, whose waits always end |
//! | `tap.rs` | a way between both that notes which packets pass, loses some and slips in others |
//! | `long_path.rs` | a way between both like a long and bad path |
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
