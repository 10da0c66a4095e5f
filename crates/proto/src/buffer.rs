//! Payload storage of both directions.

mod packet_store;
mod recv;
mod send;
mod sized_stores;
mod spares;

pub use packet_store::{PacketStore, Run};
pub use recv::{Insert, RecvBuffer};
pub(crate) use send::{Enclose, Scratch, SendBuffer};

/// The payload of any packet whose content is not stored.
static BLANK: [u8; 1 << 16] = [0; 1 << 16];
