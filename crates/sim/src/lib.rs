//! Hosts and links in deterministic virtual time. Unstable: the interface follows the needs of the lab and of tests.
//!
//! The transports are the shipped ones, and the links carry the datagrams that a socket would send. Start with
//! [`topology::graph::Graph`], which describes nodes, links and agents. It makes a [`World`], which runs, interferes and
//! reports. The same scenario and seed always give the same [`TraceHash`].
//!
//! Tests of transports and controllers enable the feature `testing`. It adds two hosts and the path between them
//! (`topology::path::Pair`), applications that check every byte, and `conformance`.
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
//! | the event loop | `world.rs`; with access to transports, for tests: `simulation.rs` |
#![forbid(unsafe_code)]

pub mod agent;
#[cfg(any(test, feature = "testing"))]
pub mod conformance;
mod first_times;
pub mod host_cost;
pub mod measure;
#[cfg(any(test, feature = "testing"))]
mod nat;
mod network;
mod packet;
mod sample;
mod scheduler;
#[cfg(any(test, feature = "testing"))]
mod simulation;
pub mod topology;
mod trace;
#[cfg(any(test, feature = "testing"))]
mod traffic;
mod world;

pub use agent::transport::{Application, TransportAgent};
pub use agent::{Agent, Outbox};
#[cfg(any(test, feature = "testing"))]
pub use nat::Nat;
pub use network::{Capture, FlowTally, LinkId, NetworkCounters, NodeId, Passing};
pub use packet::content::{AgentId, FlowId};
pub use packet::{HEADER_OVERHEAD, Payload, Pool, PooledPacket, Share};
pub use sample::{FlowSample, Sample, Samples};
pub use scheduler::Scheduler;
#[cfg(any(test, feature = "testing"))]
pub use simulation::Simulation;
pub use trace::{OutgoingDatagram, Tap, TapAction, TraceHash};
#[cfg(any(test, feature = "testing"))]
pub use traffic::{Amount, Content, Flow, Integrity, Received, Traffic, Workload};
pub use world::World;
