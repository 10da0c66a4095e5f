//! Hosts and links in deterministic virtual time.
//!
//! The transports are the shipped ones, and the links carry the datagrams that a socket would send. Start with
//! [`topology::path::Pair`], which describes two hosts and the path between them. It makes a [`Simulation`], which
//! runs, interferes and reports. The same scenario and seed always give the same [`TraceHash`].
//!
//! | to change … | open |
//! | --- | --- |
//! | the order of events | `scheduler.rs` |
//! | agents at addresses, and their interface | `agent.rs`, `agent/*.rs` |
//! | a host whose program is not scheduled at times | `agent/late.rs` |
//! | the cost of packets on a slow host | `host_cost.rs`; a slow disk: `agent/disk.rs` |
//! | the order in which a transport is driven | `agent/transport.rs` |
//! | the control channels of transports | `agent/channel.rs` |
//! | the data that applications send, read and check | `traffic.rs`, `traffic/*.rs` |
//! | packets and their storage | `packet.rs`, `packet/*.rs` |
//! | links and routes | `topology/*.rs`, `network.rs` |
//! | samples, and the figures computed from them | `sample.rs`, `measure/*.rs` |
//! | how a test inspects or forges datagrams | `trace.rs`; how a host changes its address: `nat.rs` |
//! | requirements on controllers | `conformance.rs` (a table first) |
//! | the event loop | `world.rs`; with access to transports: `simulation.rs` |
#![forbid(unsafe_code)]

pub mod agent;
pub mod conformance;
mod first_times;
pub mod host_cost;
pub mod measure;
mod nat;
mod network;
mod packet;
mod sample;
mod scheduler;
mod simulation;
pub mod topology;
mod trace;
mod traffic;
mod world;

pub use agent::transport::{Application, TransportAgent};
pub use agent::{Agent, Outbox};
pub use nat::Nat;
pub use network::{AgentId, Capture, FlowId, FlowTally, LinkId, NetworkCounters, NodeId, Passing};
pub use packet::{HEADER_OVERHEAD, Payload, Pool, PooledPacket, Share};
pub use sample::{FlowSample, Sample, Samples};
pub use scheduler::Scheduler;
pub use simulation::Simulation;
pub use trace::{Departing, Tap, TapAction, TraceHash};
pub use traffic::{Amount, Content, Flow, Integrity, Received, Traffic, Workload};
pub use world::World;
