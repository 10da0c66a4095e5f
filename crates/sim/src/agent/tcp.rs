//! TCP agents: a sender with the recovery of Tahoe, Reno, NewReno or SACK, and a receiver.
//!
//! State machines without bytes, clock or network: segments and instants go in, segments and deadlines come out. The
//! window is set by a controller of `farhaul-cc`, which UDT4 can use as well. Retransmission is decided here.
//!
//! | to change … | open |
//! | --- | --- |
//! | the content of a segment | `segment.rs` |
//! | acknowledgements and their timing | `receiver.rs` |
//! | the reaction to an acknowledgement or a time-out | `sender.rs` |
//! | retransmission in Tahoe, Reno, NewReno | `sender/cumulative.rs` |
//! | retransmission with SACK | `sender/selective.rs`, `scoreboard.rs` |
//! | the events that the controller receives | `adapter.rs` |
//! | the retransmission timer | `rto.rs` |
//! | sender and receiver as agents | `flow.rs` |
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
