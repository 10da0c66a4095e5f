//! Hosts and links in deterministic virtual time.
//!
//! The transports that run here are the shipped ones, and what lies on the links are the datagrams that a socket would
//! send. Start with [`topology::path::Pair`], which describes two hosts and what lies between them; it makes a
//! [`Simulation`], which runs, interferes and shows. The same scenario and seed give the same [`TraceHash`], always.
//!
//! | to change … | open |
//! | --- | --- |
//! | which event comes next | `scheduler.rs` |
//! | in which order a transport is asked | `host.rs` |
//! | what applications send, read and check | `traffic.rs`, `traffic/*.rs` |
//! | what is on the wire | `packet.rs` |
//! | which links there are and who reaches whom | `topology/*.rs`, `network.rs` |
//! | what is recorded, and what is computed from it | `sample.rs`, `measure/*.rs` |
//! | how a test looks at datagrams or forges them | `trace.rs` |
//! | the loop | `simulation.rs` |
#![forbid(unsafe_code)]

mod host;
pub mod measure;
mod network;
mod packet;
mod sample;
mod scheduler;
mod simulation;
pub mod topology;
mod trace;
mod traffic;

pub use host::{Application, Host};
pub use network::{LinkId, NetworkCounters, NodeId};
pub use packet::{HEADER_OVERHEAD, Pool, PooledPacket};
pub use sample::{FlowSample, Sample, Samples};
pub use scheduler::Scheduler;
pub use simulation::Simulation;
pub use trace::{Departing, Tap, TraceHash, Verdict};
pub use traffic::{Amount, Content, Flow, Integrity, Plan, Received, Traffic};
