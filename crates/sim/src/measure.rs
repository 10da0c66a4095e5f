//! Figures computed from the samples of a run: pure functions of slices, so that any source of numbers will do.
//!
//! Nothing here gives NaN for finite values: what an index is for no flow, no sample or a capacity of zero stands with it.

pub mod convergence;
pub mod fairness;
pub mod friendliness;
pub mod interval;
pub mod quantile;
pub mod rtt_fairness;
pub mod stability;
pub mod tcp_response;
pub mod throughput;
