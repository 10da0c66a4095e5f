//! Behaviour of two UDT endpoints with a path between them, in virtual time, one file per behaviour.
//!
//! Where a test tries many seeds, its failure message names the seed.

mod clock_steps;
mod close;
mod controllers;
mod corrupt;
mod duplicate;
mod fairness;
mod forgery;
mod half_close;
mod idle;
mod law_of_udt4;
mod loss;
mod memory;
mod messages;
mod mux;
mod orderly_close;
mod partition;
mod recalled_path;
mod rendezvous;
mod reorder;
mod scenario;
mod slow_link;
mod start_up;
mod storm;
mod timeout;
mod transfer;
mod wrap;
