//! What an engine begins with, and what leaves it.

use farhaul_proto::config::Config;
use farhaul_units::{Duration, Instant};
use farhaul_wire::blast::{TAG_LEN, Tag};

/// The facts that an engine begins with.
pub struct Setup<'a> {
    /// The settings that all protocols share.
    pub config: &'a Config,
    /// Most bytes of a datagram, tag included: both sides agreed on it.
    pub datagram: usize,
    /// The prefix of each datagram.
    pub prefix: Prefix,
    /// The RTT of the channel's opening.
    pub round_trip: Duration,
    /// The time at which it begins.
    pub now: Instant,
}

impl Setup<'_> {
    /// Most payload bytes of a datagram with `header` bytes between prefix and payload.
    pub fn payload_size(&self, header: usize) -> usize {
        self.datagram.saturating_sub(self.prefix.length() + header).max(1)
    }
}

/// The prefix of each datagram of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefix {
    /// The tag that the peer named.
    Tag(Tag),
    /// Nothing: the peer is an original program.
    None,
}

impl Prefix {
    /// Its bytes on the wire.
    pub const fn length(self) -> usize {
        match self {
            Self::Tag(_) => TAG_LEN,
            Self::None => 0,
        }
    }

    /// The room that a stored packet has for it, filled in if it is a tag. Packets in memory always begin with room for
    /// a tag, so that both kinds of peers share one layout.
    pub const fn bytes(self) -> [u8; TAG_LEN] {
        match self {
            Self::Tag(tag) => tag.bytes(),
            Self::None => [0; TAG_LEN],
        }
    }
}

/// Datagrams that an engine wants to send now. [`emit`](super::engine::Sender::emit) gives their bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmission {
    /// The number of the first packet, in the protocol's own numbering.
    pub first: u64,
    /// How many packets, at least one.
    pub packets: u32,
    /// Whether they were sent before.
    pub again: bool,
}
