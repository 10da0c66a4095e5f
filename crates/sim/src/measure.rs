//! Figures computed from the samples of a run.

pub mod throughput;
