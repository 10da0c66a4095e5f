//! The dialogues of the QUANTA programs, for peers that are not Farhaul.
//!
//! | | [`SendingSession`] (`sendfile`, `sendstream`) | [`ReceivingSession`] (`recvfile`, `recvstream`) |
//! | --- | --- | --- |
//! | TCP | listens on port p | connects to port p of the sender, until it answers |
//! | UDP | sends from port p | receives on port p + 1, from port p of the sender |
//! | UDP if a connected TCP socket was handed over | port p | port p |
//! | rate | set by hand | |
//! | payload of a datagram | set by hand, the same on both sides | |
//!
//! The usual p is [`PORT`]. Datagrams have no tag, so [`OriginalSession`](crate::session::OriginalSession) says which
//! ones a host hands in, and when (attack C2).
//!
//! The original holds a file in memory as a whole, and so does a sender here: any packet may be asked for until the end.
//! A receiver's buffer is bounded. Packets without room count as missing, and the bitmap waits for the reader.
//!
//! A datagram names neither transfer nor blast. One that is late counts for the next blast on the same socket if it has
//! the right length. Between two blasts it is dropped. Only the original's own formats could fix this.

mod bitmap_mismatch;
mod fault;
mod receiving;
mod sending;

pub use fault::Fault;
pub use receiving::ReceivingSession;
pub use sending::SendingSession;

use farhaul_units::{Duration, Instant, Rate};
use farhaul_wire::rbudp::HEADER_LEN;

use farhaul_proto::config::Config;
use farhaul_protocols::RateChoice;
use farhaul_protocols::blast::engine::{Prefix, Setup};
use farhaul_protocols::rbudp::{Division, receiver, sender};
use farhaul_protocols::rbudp::{MIN_PAYLOAD, Options, Spacing};

/// The port of the original programs.
pub const PORT: u16 = 38_000;
/// The usual payload bytes of a datagram, for packets of 1500 bytes.
pub const PAYLOAD: u16 = 1_460;
/// Largest file of the original, which counts bytes in a signed number of 32 bits.
const LARGEST_WHOLE: u64 = i32::MAX as u64;
/// Largest transfer of iRODS. Larger files are several.
const LARGEST_OF_IRODS: u64 = 1_610_612_736;
/// Time after which UDP counts as blocked, as between Farhaul ends.
const UDP_PATIENCE: Duration = Duration::from_secs(3);

/// The settings of a session. The peer was started with the same payload by hand.
#[derive(Clone, Debug)]
pub struct Terms {
    /// The sender's port p. Default [`PORT`].
    pub port: u16,
    /// Payload bytes of a full datagram, without the index. At least 64. Default [`PAYLOAD`].
    pub payload: u16,
    /// How files above 1.5 GiB travel. Default [`LargeFiles::Whole`].
    pub large_files: LargeFiles,
    /// The rate of a sender, headers of IP and UDP included. The original counts payload only. Default 600 Mbit/s, the
    /// default of iRODS.
    pub rate: Rate,
    /// Distances between a sender's packets.
    pub spacing: Spacing,
    /// Bytes of a receiver's buffer, and of a stream's buffer at a sender. Default 512 MiB.
    pub buffer: u64,
    /// Largest file that a session takes or gives, bytes. Default 2 GiB − 1.
    pub largest: u64,
    /// Silence of a peer that has to answer. The original waits for ever. Default 30 s.
    pub patience: Duration,
    /// The RTT, from the opening of the channel. Default 100 ms.
    pub round_trip: Duration,
}

/// How files above 1.5 GiB travel. The two programs differ, and nothing on the wire says which one it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LargeFiles {
    /// In one transfer, as QUANTA does. A file has at most 2 GiB − 1.
    #[default]
    Whole,
    /// In transfers of at most 1 610 612 736 bytes after one size, as iRODS does.
    Irods,
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            port: PORT,
            payload: PAYLOAD,
            large_files: LargeFiles::default(),
            rate: Rate::from_megabits_per_second(600),
            spacing: Spacing::default(),
            buffer: 512 << 20,
            largest: LARGEST_WHOLE,
            patience: Duration::from_secs(30),
            round_trip: Duration::from_millis(100),
        }
    }
}

impl Terms {
    /// # Errors
    /// The payload is too small.
    fn check(&self) -> Result<(), Fault> {
        if self.payload < MIN_PAYLOAD { Err(Fault::SmallPayload(self.payload)) } else { Ok(()) }
    }

    /// The division of a file into transfers.
    ///
    /// # Errors
    /// The file is too large.
    fn division(&self, size: u64) -> Result<Division, Fault> {
        let (most, largest) = match self.large_files {
            LargeFiles::Whole => (LARGEST_WHOLE, self.largest.min(LARGEST_WHOLE)),
            LargeFiles::Irods => (LARGEST_OF_IRODS, self.largest),
        };
        if size > largest { Err(Fault::TooLarge { size, largest }) } else { Ok(Division::File { left: size, most }) }
    }

    fn config(&self) -> Config {
        Config { send_buffer: self.buffer, recv_buffer: self.buffer, ..Config::default() }
    }

    fn setup<'a>(&self, config: &'a Config, now: Instant) -> Setup<'a> {
        Setup {
            config,
            datagram: usize::from(self.payload) + HEADER_LEN,
            prefix: Prefix::None,
            round_trip: self.round_trip,
            now,
        }
    }

    fn sender(&self, division: Division, now: Instant) -> sender::Sender {
        let options = Options { rate: RateChoice::Fixed(self.rate), spacing: self.spacing, ..Options::default() };
        sender::Sender::new(&options, usize::from(self.payload), division, self.setup(&self.config(), now))
    }

    fn receiver(&self, division: Division, now: Instant) -> receiver::Receiver {
        receiver::Receiver::new(usize::from(self.payload), division, self.setup(&self.config(), now))
    }
}

/// No file yet.
const NO_FILE: Division = Division::File { left: 0, most: 0 };

#[cfg(test)]
mod tests;
