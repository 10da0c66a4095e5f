//! Controllers that govern the sending rate by a model of the path: its rate, its minimum RTT, its queue.

mod bbr;
mod competition;
mod union;

pub(crate) use bbr::Bbr;
pub(crate) use union::Union;
