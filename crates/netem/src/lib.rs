//! Sans-IO models of links, queues and impairments. Packets and instants go in; packets come out when they are due.
//!
//! A simulator drives these models with virtual time and passes handles through them. A user-space relay drives the
//! same models with real time and passes buffers. The models read neither bytes nor clocks: a packet is any type that
//! knows its length ([`WireLen`]), and every call carries the current time.
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
//! let due = path.next_event().expect("a packet is in flight");
//! assert_eq!(due - Instant::ZERO, Duration::from_micros(50_012)); // 12 µs to send, 50 ms to travel
//! assert!(path.pop(due).is_some());
//! ```
//!
//! | to change … | open |
//! | --- | --- |
//! | the interface of every model | `element.rs` |
//! | the interface of a packet | `packet.rs` |
//! | rate, propagation delay, exact transmission times | `link.rs`, `link/transmitter.rs` |
//! | rates and delays that change, recorded links | `schedule.rs`, `trace.rs` |
//! | which packets a queue drops | `queue.rs`, `queue/*.rs` |
//! | which packets the link loses | `loss.rs`, `loss/*.rs` |
//! | other impairments, one file each | `policer.rs`, `mtu.rs`, `jitter.rs`, `reorder.rs`, `duplicate.rs`, `corrupt.rs` |
//! | how an impairment becomes an element | `impair.rs` |
//! | how elements are joined | `pipe.rs` |
//! | counters | `counters.rs` |
//! | the description of a whole path | `path.rs` |
//! | which link leads to which host | `routes.rs` |
//!
//! Equal inputs give equal outputs: each impairment owns a seeded generator, and no result depends on how promptly the
//! driver calls. In steady state the models do not allocate: buffers grow to the largest load and keep their capacity.
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
mod mtu;
mod packet;
mod path;
mod pipe;
mod policer;
mod queue;
mod reorder;
mod routes;
mod schedule;
#[cfg(test)]
mod testing;
mod trace;

pub use corrupt::Corrupt;
pub use counters::{Counters, QueueDepth, Tally};
pub use duplicate::Duplicate;
pub use element::Element;
pub use impair::{Impair, Impairment, Outlet};
pub use jitter::{Jitter, JitterShape, JitterSpec};
pub use link::{Link, Variation};
pub use loss::{
    Bernoulli, BitErrors, GilbertElliott, GilbertElliottSpec, LossModel, LossSpec, LossTrace, MAX_RECORDED_PACKETS,
    ParseLossTraceError, ParsePatternError, Pattern, Periodic, RecordedLoss, Sparing,
};
pub use mtu::Mtu;
pub use packet::{Packet, WireLen, flip_random_bit};
pub use path::PathSpec;
pub use pipe::Pipe;
pub use policer::{Policer, PolicerSpec};
pub use queue::{
    CoDel, CoDelSpec, Discipline, DropHead, DropTail, FULL_PACKET, Limit, MIN_BDP_QUEUE, Queue, QueueSize,
    QueueTallies, Red, RedSpec,
};
pub use reorder::{Reorder, ReorderSpec};
pub use routes::Routes;
pub use schedule::{MAX_STEPS, Schedule, ScheduleError, Step};
pub use trace::{DeliveryTrace, MAX_OPPORTUNITIES, OPPORTUNITY_BYTES, ParseTraceError, TUNNEL_HEADER};
