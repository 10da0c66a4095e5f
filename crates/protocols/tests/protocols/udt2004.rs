//! Behaviour of two endpoints of the 2004 protocol with a path between them, in virtual time, with real datagrams.
//!
//! Where a test tries many seeds, its failure message names the seed.

mod ccc;
mod claims;
mod close;
mod congestion;
mod hostile;
mod orderly_close;
mod packets;
mod scenario;
mod transfer;
