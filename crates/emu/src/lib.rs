//! Path models driven by the real clock.
//!
//! Two emulators share the models of `farhaul-netem`, the measurement of their own delays and the check of a run. A
//! *relay* forwards the UDP datagrams of ordinary programs and needs no rights. A *network* has its own hosts,
//! namespaces with one TUN device each, and carries any IP traffic, including the kernel's TCP.
//!
//! | to change … | open |
//! | --- | --- |
//! | the relay | `relay.rs`, `relay/` |
//! | the description of a network, addresses | `network.rs` |
//! | start and end of a network, programs on its hosts | `emulation.rs` |
//! | the emulator's loop | `run.rs` |
//! | the state and the results of a network | `report.rs` |
//! | how often it polls | `pace.rs` |
//! | how packets are read | `packet_reader.rs` |
//! | the last known state of each host | `polls.rs`; the wait for a processor: `run_queue.rs` |
//! | estimated arrival times | `inbox.rs` |
//! | packets on their links | `engine.rs` |
//! | segmentation and coalescing of packets | `packet.rs`, `packet/` |
//! | namespaces and their removal | `namespace.rs` |
//! | networks without root | `rootless.rs` |
//! | the device of a host | `tun.rs`; its addresses: `netlink.rs`; system calls: `sys.rs` |
//! | statistics of the kernel's TCP | `tcp.rs` |
//! | capture files | `capture.rs` |
//! | processor sleep | `awake.rs` |
//! | how late packets leave | `lateness.rs` |
//! | processor load | `busy.rs` |
//! | when a run is invalid | `flaw.rs` |
//! | the capacity of this machine | `capacity.rs` |
//! | memory of packets in flight | `pool.rs` |

mod awake;
mod busy;
mod capacity;
pub mod capture;
mod emulation;
mod engine;
mod error;
mod flaw;
mod inbox;
mod lateness;
mod namespace;
mod netlink;
mod network;
mod pace;
mod packet;
mod packet_reader;
mod polls;
mod pool;
mod relay;
mod report;
mod rootless;
mod run;
mod run_queue;
mod sys;
mod tcp;
mod tun;

pub use capacity::capacity;
pub use emulation::Emulation;
pub use error::EmulateError;
pub use flaw::{Flaw, MAX_BUSY, MAX_LATENESS, MAX_STALL};
pub use lateness::LatenessReport;
pub use network::{DEFAULT_MTU, HostId, LinkId, MAX_HOSTS, NetworkSpec, NodeId};
pub use relay::{DirectionReport, PAUSE, Relay, RelayReport};
pub use report::{EmulationReport, Snapshot};
pub use rootless::{acquire_rights, check_rights};
pub use tcp::{TcpInfo, limit_tcp_window, tcp_info};
