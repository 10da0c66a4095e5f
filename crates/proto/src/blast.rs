//! The blast protocols: data by UDP, control by TCP, a rate instead of a window.
//!
//! ```text
//!                ┌──────────────── Endpoint<P> (one port of UDP and TCP) ────────────────┐
//! datagrams ────▶│ by tag ─▶ Connection ─▶ receiving engine ─▶ Incoming ─▶ read          │
//! channel bytes ▶│ frames ─▶ inline bytes, control records, credit                       │──▶ events, deadline
//! commands ─────▶│ write ─▶ Outgoing ─▶ inline frame, or sending engine                  │──▶ datagrams, channel bytes
//!                └────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! A protocol brings two [engines](engine), one for each end of one direction of data. The rest is common: a stream in
//! each direction, credit, proof that UDP gets through, the end. So every blast protocol carries the same copies and
//! measurements as UDT. Small writes travel on the control channel, and bulk by datagrams (departures D150 to D154).
//!
//! Programs that only speak an original protocol have no such shell. For them each protocol has a module `original`,
//! which uses the same engines.

mod any_endpoint;
mod connection;
mod endpoint;
pub(crate) mod engine;
mod established;
mod frames;
#[cfg(test)]
pub(crate) mod hostile;
mod incoming;
mod line;
pub(crate) mod numbered;
mod outgoing;
pub(crate) mod partial;
mod path;
mod pulse;
pub(crate) mod rate;
pub(crate) mod settings;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
pub(crate) mod tests;
#[cfg(test)]
mod walk;
#[cfg(test)]
mod walks;

pub(crate) use endpoint::Endpoint;
