//! Sans-IO models of links, queues and impairments: packets and instants go in, packets come out when they are due.
//!
//! A simulator drives these models with virtual time and moves handles through them; a user-space relay drives the
//! same models with real time and moves buffers. Neither bytes nor clocks are looked at here: a packet is anything
//! that knows its length ([`WireLen`]), and every call is told what time it is.
//!
//! Start with [`PathSpec`], which describes one direction of a path and builds it:
//!
//! ```
//! use farhaul_netem::{Element, PathSpec};
//! use farhaul_units::{Duration, Instant, Rate};
//!
//! let spec = PathSpec {
//!     rate: Some(Rate::from_megabits_per_second(1_000)),
//!     delay: Duration::from_millis(50),
//!     ..PathSpec::default()
//! };
//! let mut path = spec.build::<Vec<u8>>();
//! path.push(Instant::ZERO, vec![0; 1_500]);
//! let due = path.next_event().expect("a packet is on its way");
//! assert_eq!(due - Instant::ZERO, Duration::from_micros(50_012)); // 12 µs to send, 50 ms to travel
//! assert!(path.pop(due).is_some());
//! ```
//!
//! | to change … | open |
//! | --- | --- |
//! | what every model can do | `element.rs` |
//! | what a packet must be able to do | `packet.rs` |
//! | rate, propagation delay, exact time of sending | `link.rs`, `link/transmitter.rs` |
//! | which packet a full queue refuses | `queue.rs`, `queue/drop_tail.rs` |
//! | which packets get lost | `loss.rs`, `loss/*.rs` |
//! | other impairments, one file each | `jitter.rs`, `reorder.rs`, `duplicate.rs`, `corrupt.rs` |
//! | how an impairment becomes an element | `impair.rs` |
//! | how elements are joined | `pipe.rs` |
//! | what is counted | `counters.rs` |
//! | the description of a whole path | `path.rs` |
//!
//! Equal inputs give equal outputs: each impairment owns a seeded generator, and nothing depends on how promptly the
//! host calls. In steady state nothing is allocated per packet: buffers grow to the largest load and stay.
#![forbid(unsafe_code)]

mod corrupt;
mod counters;
mod delay_line;
mod duplicate;
mod element;
mod impair;
mod jitter;
mod link;
mod loss;
mod packet;
mod path;
mod pipe;
mod queue;
mod reorder;
#[cfg(test)]
mod testing;

pub use corrupt::{Corrupt, flip_random_bit};
pub use counters::{Counters, QueueDepth, Tally};
pub use duplicate::Duplicate;
pub use element::Element;
pub use impair::{Impair, Impairment, Outlet};
pub use jitter::{Jitter, JitterSpec};
pub use link::Link;
pub use loss::{Bernoulli, LossSpec, ParsePatternError, Pattern};
pub use packet::{Packet, WireLen};
pub use path::PathSpec;
pub use pipe::Pipe;
pub use queue::{DropTail, FULL_PACKET, MIN_BDP_QUEUE, Queue, QueueSize};
pub use reorder::{Reorder, ReorderSpec};
