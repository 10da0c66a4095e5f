//! RBUDP: blasts of packets at a rate, each followed by a bitmap of those that arrived.
//!
//! ```text
//! sender                                     receiver
//!   length of the blast          ── TCP ──▶
//!   packets, at the rate         ── UDP ──▶  tally
//!   end of the blast             ── TCP ──▶
//!                                ◀── TCP ──  bitmap: missing 7, 8, 90
//!   packets 7, 8, 90             ── UDP ──▶
//!   end of the blast             ── TCP ──▶
//!                                ◀── TCP ──  bitmap: complete
//! ```
//!
//! | part | owns |
//! | --- | --- |
//! | [`Options`] | blast, rate, payload and spacing |
//! | [`Model`] | the goodput that follows from rate, RTT and blast |
//! | [`sender`], [`receiver`] | the engines: stream mode of the QUANTA programs (`paper:survey` §2.1) |
//!
//! Between Farhaul ends the numbers of packets run on from blast to blast. So a late packet of one blast is never taken
//! for data of the next, as it is in the original. Files may be larger than memory because blasts follow one another.
//! Departures D170 to D179 list all differences.

mod model;
mod options;
pub mod receiver;
pub mod sender;
mod settings;

pub use model::Model;
pub use options::{BlastSize, MIN_PAYLOAD, Options, Spacing};

use farhaul_units::SeqNo;
use farhaul_wire::blast::TAG_LEN;
use farhaul_wire::rbudp::HEADER_LEN;

use crate::blast::engine::{self, Prefix, Setup};
use farhaul_proto::error::PeerMisbehaved;

/// Bytes of a packet in memory before its payload: room for the tag, and the index.
const HEADER: usize = TAG_LEN + HEADER_LEN;
/// Most packets of a blast, and so eight times the bytes of a bitmap: 4 MiB. A file of 2 GiB in the smallest packets has
/// as many.
const MAX_BLAST_PACKETS: u32 = 1 << 25;

/// The number of the first packet.
const FIRST_NUMBER: SeqNo = SeqNo::new(0);

/// The protocol.
#[derive(Debug)]
pub(crate) struct Rbudp;

impl engine::Protocol for Rbudp {
    type Options = Options;
    type Sender = sender::Sender;
    type Receiver = receiver::Receiver;

    const NAME: &'static str = "rbudp";

    fn hello(options: &Options) -> Vec<u8> {
        options.hello()
    }

    fn sender(options: &Options, setup: Setup<'_>) -> sender::Sender {
        let payload = options.payload(setup.payload_size(HEADER_LEN));
        sender::Sender::new(options, payload, Division::Stream, setup)
    }

    fn receiver(_options: &Options, hello: &[u8], setup: Setup<'_>) -> Result<receiver::Receiver, PeerMisbehaved> {
        let payload = Options::payload_of_peer(hello, setup.payload_size(HEADER_LEN))?;
        Ok(receiver::Receiver::new(payload, Division::Stream, setup))
    }
}

/// How a stream is divided into blasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Division {
    /// The sender announces the length of each blast, and a length of zero ends the stream.
    Stream,
    /// Both sides know the size. Blasts of at most `most` bytes follow without announcement until none are left.
    File {
        /// Bytes that are left of the file.
        left: u64,
        /// Most bytes of a blast.
        most: u64,
    },
}

impl Division {
    /// The length of the next blast of a file, which is then no longer left.
    fn next_of_file(&mut self) -> Option<u64> {
        match self {
            Self::File { left, most } if *left > 0 => {
                let length = (*left).min(*most);
                *left -= length;
                Some(length)
            }
            _ => None,
        }
    }
}

/// How packets are numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Numbering {
    /// On from blast to blast, between Farhaul programs.
    Running,
    /// From zero in each blast, as the original programs do.
    PerBlast,
}

impl From<Prefix> for Numbering {
    fn from(prefix: Prefix) -> Self {
        match prefix {
            Prefix::Tag(_) => Self::Running,
            Prefix::None => Self::PerBlast,
        }
    }
}

/// The number of the first packet. Both ends count from the same one, which only tests change.
fn first_number(setup: &Setup<'_>) -> SeqNo {
    match setup.prefix {
        Prefix::Tag(_) => setup.config.initial_seq.unwrap_or(FIRST_NUMBER),
        Prefix::None => FIRST_NUMBER,
    }
}

#[cfg(test)]
mod tests;
