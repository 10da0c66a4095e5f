//! Controllers that govern the sending rate by a model of the path: its rate, its minimum RTT, its queue.

mod two;

pub(crate) use two::Two;
