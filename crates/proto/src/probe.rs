//! Measured streams over UDP alone: the stable control stream and the throughput profile (paper:ornl).
//!
//! | part | owns |
//! | --- | --- |
//! | [`Responder`] | the far end of both: counts what arrives and acknowledges it |
//! | [`StableStream`] | a stream whose goodput settles at a target |
//! | [`Blaster`] | a stream of W_c datagrams every T_s, whose goodput, loss and delay are measured |
//! | [`Profile`] | many such points: their shape, and the best rate |
//! | [`Search`], [`grid`] | the capacity of an unknown path, and the points of its profile |
//! | `outstanding` | datagrams that are not acknowledged yet |
//! | `robbins_monro` | the law of the stable stream |
//! | `delays` | mean, deviation and quantiles of round trips |

use core::net::SocketAddr;

use farhaul_units::Instant;
pub use farhaul_wire::probe::{ANSWER_LEN, is_probe, is_question, payload};
use farhaul_wire::secure::inner::DATAGRAM_OVERHEAD;

use crate::transport::{Batch, Transmit};

/// The sending end of a measured stream, for any host: a program with a socket, or the simulator.
///
/// **Contract.** After each input the host drains [`poll_transmit`](Probing::poll_transmit), then reads
/// [`poll_timeout`](Probing::poll_timeout) and drains again once that instant has come.
pub trait Probing {
    /// Takes a datagram that came from `from`. Returns false if it is no answer to this stream.
    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, datagram: &[u8]) -> bool;

    /// The next datagrams, if they are due.
    fn poll_transmit<'a>(&mut self, now: Instant, scratch: &'a mut Batch) -> Option<Transmit<'a>>;

    /// When to call [`poll_transmit`](Probing::poll_transmit) next; `None` when nothing more is sent.
    fn poll_timeout(&self) -> Option<Instant>;

    /// Data datagrams that have left so far. Questions for the counts are none.
    fn sent(&self) -> u64;
}

/// Bytes that packet protection adds to each datagram of a measured stream.
pub const PROTECTION_OVERHEAD: usize = DATAGRAM_OVERHEAD;

/// Longest train, bytes: the largest payload that UDP over IPv4 has, which the kernel takes as a whole.
const LONGEST_TRAIN: usize = 65_507;

/// The datagrams of `size` bytes that fit into a train, at least one. Protection has room in it.
fn most_of(size: usize) -> usize {
    (LONGEST_TRAIN / (size + PROTECTION_OVERHEAD)).max(1)
}

mod blaster;
mod delays;
mod grid;
mod outstanding;
mod profile;
mod responder;
mod robbins_monro;
mod stable;

pub use blaster::{Blaster, BlasterConfig, BlasterFigures};
pub use delays::Delays;
pub use grid::{Search, grid};
pub use profile::{Advice, Point, Profile, Shape, Spread};
pub use responder::Responder;
pub use robbins_monro::RobbinsMonro;
pub use stable::{StableConfig, StableFigures, StableStream};

#[cfg(test)]
mod tests;
