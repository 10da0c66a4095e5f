//! The value types of all Farhaul crates: instants, rates, sizes, sequence numbers and seeded randomness.
//!
//! | type | unit | file |
//! | --- | --- | --- |
//! | [`Instant`] | nanoseconds since an arbitrary zero | `instant.rs` |
//! | [`Rate`] | bits per second | `rate.rs` |
//! | [`PacketRate`] | packets per second | `packet_rate.rs` |
//! | [`SendPeriod`] | time from one packet to the next | `packet_rate.rs` |
//! | [`ByteSize`] | bytes | `byte_size.rs` |
//! | [`Network`] | addresses with a common prefix | `network.rs` |
//! | [`SeqNo`], [`MsgNo`], [`AckNo`] | serial numbers that wrap | `seq.rs` |
//! | [`Rng`] | the only randomness in the pure zone | `rng.rs` |
//!
//! The crate reads no clock: an [`Instant`] always comes from the driver, a thread with a real clock or a simulator.
#![forbid(unsafe_code)]

mod byte_size;
mod instant;
mod network;
mod packet_rate;
mod quantity;
mod rate;
mod rng;
mod seq;

pub use byte_size::ByteSize;
pub use core::time::Duration;
pub use instant::Instant;
pub use network::{Network, ParseNetworkError};
pub use packet_rate::{PacketRate, SendPeriod};
pub use quantity::{ParseQuantityError, parse_duration, parse_ratio};
pub use rate::Rate;
pub use rng::Rng;
pub use seq::{AckNo, MsgNo, SeqNo, SeqRange};
