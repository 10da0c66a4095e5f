//! TCP agents: a sender with the recovery of Tahoe, Reno, NewReno or SACK, and a receiver.
//!
//! State machines without bytes, clock or network: segments and instants go in, segments and deadlines come out. What the
//! window does is a controller of `farhaul-cc`, the same that UDT4 may use; what is sent again and when is here.
//!
//! | to change … | open |
//! | --- | --- |
//! | what a segment is | `segment.rs` |
//! | what a receiver answers, and when | `receiver.rs` |
//! | what happens on an acknowledgement or a time-out | `sender.rs` |
//! | what is sent again: Tahoe, Reno, NewReno | `sender/cumulative.rs` |
//! | what is sent again: SACK | `sender/selective.rs`, `scoreboard.rs` |
//! | what the controller is told | `adapter.rs` |
//! | the retransmission timer | `rto.rs` |
//! | how both live in a simulation | `flow.rs` |
//! | one transfer after the other | `list.rs` |

mod adapter;
mod flow;
mod list;
mod ranges;
mod receiver;
mod rto;
mod scoreboard;
mod segment;
mod sender;
#[cfg(test)]
mod tests;

pub use flow::{TcpSink, TcpSource};
pub use list::{Remaining, TcpTransfers};
pub use receiver::{ReceiverConfig, TcpReceiver};
pub use rto::RtoConfig;
pub use segment::{Block, MAX_SACK_BLOCKS, Segment, SegmentKind};
pub use sender::{Recovery, SenderConfig, SenderTotals, TcpSender};

/// Bytes of IPv4 and TCP header without options.
pub const HEADER: u32 = 40;
