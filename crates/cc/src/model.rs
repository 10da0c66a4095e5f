//! Controllers that govern the sending rate by a model of the path: its rate, its minimum RTT, its queue.

mod bbr;
mod c4;
mod competition;
mod union;

pub(crate) use bbr::Bbr;
pub(crate) use c4::C4;
pub(crate) use union::Union;
