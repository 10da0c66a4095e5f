//! One stream of bytes over a connection, over several, or through ssh. Unstable: an internal crate of `farhaul-transfer`.
//!
//! Each of several connections has a port, a driver thread and keys of its own.
//!
//! ```text
//! send ─▶ queue of blocks ─▶ a writer per flow ─▶ the connections ─▶ a reader per flow ─▶ Reassembly ─▶ recv
//! ```
//!
//! A [`BondedStream`] begins as its first connection, and costs nothing more as long as it has no other flow. Once flows have
//! joined, they carry everything, and the first connection has only what it was given before.
//!
//! | part | owns |
//! | --- | --- |
//! | [`BondedStream`] | the stream: its calls |
//! | `first` | the first connection, which ssh may carry |
//! | [`mux`] | messages and a stream through the pipes of ssh |
//! | `shared`, `flow` | what the handles and the threads of a stream share |
//! | `outgoing`, `writing` | the blocks that wait for a flow; the threads that write them |
//! | `incoming`, `reading` | the order of the blocks; the threads that read them |
//! | `threads` | how busy the threads behind it are |
//! | `join` | the connecting side: further flows |
//! | [`first_request`] | the accepting side: the first request of a peer |
//! | `registry` | the accepting side: whose flow it is |
//!
//! **Back-pressure.** A flow whose block lies too far ahead of the stream waits, and its connection holds back the peer's flow.
//! The queue of blocks is short, so a block waits for a flow that has room, and not on one that has none.
//!
//! **The loss of a flow** is that of the stream: its blocks are lost with it.

mod first;
pub mod first_request;
mod flow;
mod incoming;
mod join;
pub mod mux;
mod outgoing;
mod reading;
mod registry;
mod shared;
mod stream;
#[cfg(test)]
mod tests;
mod threads;
mod writing;

pub use first::First;
pub use join::{Flows, Further};
pub use registry::Registry;
pub use stream::BondedStream;
pub use threads::Threads;
