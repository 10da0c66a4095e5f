//! Hosts and links in deterministic virtual time.
//!
//! The transports that run here are the shipped ones, and what lies on the links are the datagrams that a socket would
//! send. Start with [`topology::path::Pair`], which describes two hosts and what lies between them; it makes a
//! [`Simulation`], which runs, interferes and shows. The same scenario and seed give the same [`TraceHash`], always.
//!
//! | to change … | open |
//! | --- | --- |
//! | which event comes next | `scheduler.rs` |
//! | what lives at an address, and what it may do | `agent.rs`, `agent/*.rs` |
//! | what a slow host does to packets | `machine.rs`; a slow disk: `agent/disk.rs` |
//! | in which order a transport is asked | `host.rs` |
//! | what applications send, read and check | `traffic.rs`, `traffic/*.rs` |
//! | what is on the wire, and how it lies in memory | `packet.rs`, `packet/*.rs` |
//! | which links there are and who reaches whom | `topology/*.rs`, `network.rs` |
//! | what is recorded, and what is computed from it | `sample.rs`, `measure/*.rs` |
//! | how a test looks at datagrams or forges them | `trace.rs` |
//! | the loop | `world.rs`; with transports in view: `simulation.rs` |
#![forbid(unsafe_code)]

pub mod agent;
mod first_times;
mod host;
pub mod machine;
pub mod measure;
mod network;
mod packet;
mod sample;
mod scheduler;
mod simulation;
pub mod topology;
mod trace;
mod traffic;
mod world;

pub use agent::{Agent, Outbox};
pub use first_times::FirstTimes;
pub use host::{Application, Host};
pub use network::{AgentId, Capture, FlowId, FlowTally, LinkId, NetworkCounters, NodeId, Passing};
pub use packet::{HEADER_OVERHEAD, Payload, Pool, PooledPacket, Share};
pub use sample::{FlowSample, Sample, Samples};
pub use scheduler::Scheduler;
pub use simulation::Simulation;
pub use trace::{Departing, Tap, TraceHash, Verdict};
pub use traffic::{Amount, Content, Flow, Integrity, Plan, Received, Traffic};
pub use world::World;
