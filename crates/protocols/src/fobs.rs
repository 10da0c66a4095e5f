//! FOBS: objects of up to 100 MB, sent in segments, each answered by a bitmap of what arrived.
//!
//! ```text
//! stream    object │ object │ …                each is repaired once all of it has been sent
//! object    10 000 packets ─▶ bitmap │ 10 000 packets ─▶ bitmap │ …     then what is missing, in the same way
//! ```
//!
//! Neither the program nor a complete description of it is available. So the table says where each rule comes from. A
//! *study* is the net100 study of the program at ORNL. An *abstract* is that of its authors at IPDPS or HPDC 2002. A
//! *recollection* is knowledge of the program without a text at hand.
//!
//! | rule | source |
//! | --- | --- |
//! | An object has at most 100 MB | study |
//! | It is usable when complete | study, by option |
//! | Segments of 10 000 packets or fewer, loss information after each | study |
//! | A loss of 1 % is tolerated | study |
//! | The window is unlimited, and acknowledgements are selective over the whole object | abstract |
//! | The frequency of acknowledgements, the batch and the next packet are the user's choice | abstract |
//! | A packet is sent again only after all others, in circular order | recollection |
//! | Above the tolerated loss the delay between packets grows, below it for some time it shrinks | recollection |
//! | By how much (`adaptation.rs`), and not while the rate is found | ours (departure D333) |
//! | Greedy version: batches of 2, an acknowledgement after some packets, a fixed rate | recollection |
//! | Greedy version: at most one round of repetitions per RTT | ours (departure D202) |
//! | An object ends when nothing is written for an RTT | ours |
//! | The next object begins while the last packets of the previous one are under way | ours, by option (departure D201) |
//! | Bytes in order are usable at once | ours (departure D342) |
//! | An object larger than the receiver's buffer is usable in order | ours |
//!
//! The original's packets carry 1466 bytes of payload. Ours carry whatever the path's packets hold.

use farhaul_wire::fobs::Terms;

use crate::blast::engine::{Protocol, Setup};
use crate::blast::partial::unreadable;
use crate::blast::rate::RateChoice;
use farhaul_proto::error::PeerMisbehaved;

mod adaptation;
mod circle;
mod objects;
mod receiver;
mod repair;
mod segments;
mod sender;
mod settings;

#[cfg(test)]
mod tests;

pub(crate) use farhaul_wire::fobs::Version;
pub(crate) use receiver::Receiver;
pub(crate) use sender::Sender;

/// Bytes of an object (study).
const OBJECT: u32 = 100_000_000;
/// Packets of a segment (study).
const SEGMENT: u32 = 10_000;
/// Share of lost packets that changes nothing (study).
const TOLERANCE: f64 = 0.01;
/// Greedy: packets that leave together (recollection).
const GREEDY_BATCH: u32 = 2;
/// Greedy: new packets per acknowledgement. The original's number is not known. One bitmap of an object per this many
/// packets costs less than 1 % of the data.
const GREEDY_ACK: u32 = 1_000;

/// Settings of FOBS.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Options {
    /// The rules to follow.
    pub version: Version,
    /// The first and fastest rate, headers of IP and UDP included. The adaptation only goes below it. A rate that is
    /// found is not adapted after segments.
    pub rate: RateChoice,
    /// Bytes of an object, 1 to 2^30. Default 100 MB.
    pub object: u32,
    /// Packets of a segment. In the greedy version, new packets per acknowledgement, where the sender's value applies
    /// unless the receiver sets its own. `None` means 10 000, and 1000 in the greedy version.
    pub segment: Option<u32>,
    /// Packets that leave together, at most one train. `None` means 2 in the greedy version, and those of one
    /// [`burst_time`](farhaul_proto::Config::burst_time) otherwise.
    pub batch: Option<u32>,
    /// Share of lost packets of a segment that changes nothing, 0 to 1. Default 1 %.
    pub tolerance: f64,
    /// Which packet is next.
    pub pick: Pick,
    /// Gives bytes in order to the reader before their object is complete. One side's wish is enough. Default true,
    /// because the reader of a stream waits for no object (departure D342).
    pub ordered: bool,
    /// Begins the next object while the last packets of the previous one are under way. Otherwise the path idles for an
    /// RTT or more per object. Default true.
    pub overlap: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            version: Version::Segments,
            rate: RateChoice::Auto,
            object: OBJECT,
            segment: None,
            batch: None,
            tolerance: TOLERANCE,
            pick: Pick::Circular,
            ordered: true,
            overlap: true,
        }
    }
}

/// Which packet is next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Pick {
    /// Those of the object that were not sent yet, then the missing ones in circular order.
    #[default]
    Circular,
    /// Missing ones first. With [`Options::ordered`], the reader then waits for an RTT and not for an object.
    MissingFirst,
}

/// The protocol.
#[derive(Debug)]
pub(crate) struct Fobs;

impl Protocol for Fobs {
    type Options = Options;
    type Sender = Sender;
    type Receiver = Receiver;

    const NAME: &'static str = "fobs";

    fn hello(options: &Options) -> Vec<u8> {
        let packets = options.segment.unwrap_or(0);
        Terms { version: options.version, ordered: options.ordered, packets }.encode().to_vec()
    }

    fn sender(options: &Options, setup: Setup<'_>) -> Sender {
        Sender::new(options, &setup)
    }

    fn receiver(options: &Options, hello: &[u8], setup: Setup<'_>) -> Result<Receiver, PeerMisbehaved> {
        Ok(Receiver::new(options, Terms::decode(hello).map_err(unreadable)?, &setup))
    }
}
