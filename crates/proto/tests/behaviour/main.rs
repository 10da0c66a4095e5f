//! What two UDT endpoints do with a path between them: one file per behaviour, all in virtual time.
//!
//! Where a test tries many seeds, its message on failure names the one that failed.

mod close;
mod corrupt;
mod duplicate;
mod fairness;
mod farewell;
mod forgery;
mod idle;
mod loss;
mod memory;
mod messages;
mod mux;
mod native_law;
mod rendezvous;
mod reorder;
mod scenario;
mod storm;
mod timeout;
mod transfer;
mod wrap;
