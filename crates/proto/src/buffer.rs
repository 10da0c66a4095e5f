//! Payload storage of both directions.

mod message;
mod recv;
mod send;

pub(crate) use recv::{Insert, RecvBuffer};
pub(crate) use send::{Run, SendBuffer};
