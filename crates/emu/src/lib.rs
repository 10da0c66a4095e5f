//! Path models driven by the real clock.
//!
//! Two emulators share the models of `farhaul-netem`, the way they measure themselves and the verdict: a *relay* passes on the UDP
//! datagrams of ordinary programs and needs no rights; a *network* has hosts of its own, namespaces with a TUN device each, and
//! carries any IP traffic, the kernel's TCP included.
//!
//! | to change … | open |
//! | --- | --- |
//! | the relay | `relay.rs`, `relay/` |
//! | what a network is made of, who has which address | `network.rs` |
//! | how a network begins and ends, what runs on its hosts | `emulation.rs` |
//! | its loop: whom it asks, what it passes on | `run.rs` |
//! | how often it looks | `pace.rs` |
//! | how packets are read | `intake.rs` |
//! | since when a host may have had what it hands over | `looks.rs`; the wait for a processor: `run_queue.rs` |
//! | when packets came that one look found | `inbox.rs` |
//! | packets on their links between two looks at the clock | `engine.rs` |
//! | packets as hosts hand them over: large ones cut, small ones put together | `packet.rs`, `packet/` |
//! | namespaces, and why nothing is left behind | `namespace.rs` |
//! | networks without root | `rootless.rs` |
//! | the device of a host | `tun.rs`; system calls: `sys.rs` |
//! | what is asked of the kernel's TCP | `tcp.rs` |
//! | packets in files | `capture.rs` |
//! | why processors do not fall asleep meanwhile | `awake.rs` |
//! | how late packets leave | `lateness.rs` |
//! | how much of a processor it needs | `busy.rs` |
//! | when a run is invalid | `flaw.rs` |
//! | what this machine can carry | `capacity.rs` |
//! | memory of packets under way | `pool.rs` |

mod awake;
mod busy;
mod capacity;
pub mod capture;
mod emulation;
mod engine;
mod error;
mod flaw;
mod inbox;
mod intake;
mod lateness;
mod looks;
mod namespace;
mod network;
mod pace;
mod packet;
mod pool;
mod relay;
mod rootless;
mod run;
mod run_queue;
mod sys;
mod tcp;
mod tun;

pub use capacity::capacity;
pub use emulation::{Emulation, EmulationReport, Snapshot};
pub use error::EmulateError;
pub use flaw::{Flaw, MAX_BUSY, MAX_LATENESS, MAX_STALL};
pub use lateness::LatenessReport;
pub use network::{DEFAULT_MTU, HostId, LinkId, MAX_HOSTS, NetworkSpec, NodeId};
pub use relay::{DirectionReport, NAP, Relay, RelayReport};
pub use rootless::acquire_rights;
pub use tcp::{TcpInfo, limit_tcp_window, tcp_info};
