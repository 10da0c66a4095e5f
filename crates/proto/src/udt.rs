//! The UDT4 entity.

mod ack;
pub(crate) mod consts;
mod handshake;
mod lifetimes;
mod limit;
mod nak;
mod sender;
