//! Metrics of a run as pure functions of slices, for samples from any source.
//!
//! No function returns NaN for finite values. Each states its value for no flow, no sample or a capacity of zero.

pub mod convergence;
pub mod fairness;
pub mod friendliness;
pub mod interval;
pub mod quantile;
pub mod rtt_fairness;
pub mod stability;
#[cfg(any(test, feature = "testing"))]
pub mod throughput;
