//! TCP agents: a sender with the recovery of Tahoe, Reno, NewReno or SACK, and a receiver.
//!
//! State machines without bytes, clock or network: segments and instants go in, segments and deadlines come out. The
//! window is set by a controller of `farhaul-cc`, which UDT4 can use as well. Retransmission is decided here.
//!
//! | to change … | open |
//! | --- | --- |
//! | the content of a segment | `../../packet/segment.rs` |
//! | the settings of a sender | `config.rs` |
//! | acknowledgements and their timing | `receiver.rs` |
//! | the reaction to an acknowledgement or a time-out | `sender.rs` |
//! | retransmission in Tahoe, Reno, NewReno | `sender/cumulative.rs` |
//! | retransmission with SACK | `sender/selective.rs`, `scoreboard.rs` |
//! | the events that the controller receives | `adapter.rs` |
//! | the retransmission timer | `rto.rs` |
//! | sender and receiver as agents | `flow.rs` |
//! | one transfer after the other | `list.rs` |

mod adapter;
mod config;
mod flight;
mod flow;
mod list;
mod ranges;
mod receiver;
mod rto;
mod scoreboard;
mod sender;
#[cfg(test)]
mod tests;

pub use crate::packet::segment::{Block, HEADER, MAX_SACK_BLOCKS, Segment, SegmentKind};
pub use config::{Recovery, SenderConfig};
pub use flow::{TcpSink, TcpSource};
pub use list::{Remaining, TcpTransfers};
pub use receiver::{ReceiverConfig, TcpReceiver};
pub use rto::RtoConfig;
pub use sender::{SenderTotals, TcpSender};
