//! Tsunami: datagrams at a rate, which the receiver's error rate slows down (tsunami-udp 1.1; paper:survey, Tsunami).
//!
//! ```text
//! write ─▶ Sender ──── blocks 1, 2, 3 … (O, R, X) ────────────▶ Receiver ─▶ read
//!            │ PacketStore, SendList                              │ RecvBuffer, Horizon
//!            │ Delay ◀──── error rate, every 350 ms ─────────────── │ ErrorRate
//!            └ SendList ◀── blocks to send again, every 50 blocks ──┘ Lately
//! ```
//!
//! A block that is sent in its turn has type O. One that was asked for has type R. The last one has type X, and the
//! sender repeats it until all has arrived. X makes the receiver ask for everything that is missing.
//!
//! Between Farhaul ends a stream takes the place of a file. Blocks are numbered on through the whole stream, modulo
//! 2^31. A block that ends before a pause is short instead of padded, so no length travels beside it. The sender holds
//! blocks until the receiver has them, because it cannot read them again.
//!
//! Four rules of the original are replaced, and [`Options`] brings each of them back (departures D180 to D187 list all
//! differences):
//!
//! | original | here | why |
//! | --- | --- | --- |
//! | a record per lost block, a restart at 2048 of them | a record per gap, no restart | a restart sends again what has arrived, and one restart causes the next |
//! | requests at most every 350 ms | every 10 ms, and for each block once per RTT | a repair takes an RTT, and both sides hold less |
//! | delay in whole microseconds, headers not counted | exact, headers counted | 1 Gbit/s with blocks of 1458 bytes became 1.09 Gbit/s |
//! | a rate set by the user | found, unless it is set | nobody must tune |
//!
//! The crate `farhaul-originals` speaks to programs of tsunami-udp, by the same rules.

pub mod delay;
pub mod error_rate;
pub mod horizon;
mod lately;
mod receiver;
mod sender;
mod settings;
pub mod silence;

#[cfg(test)]
mod tests;

use farhaul_units::{Duration, SeqNo};
use farhaul_wire::tsunami::Ratio;

use crate::blast::engine::{Protocol, Setup};
use crate::blast::rate::RateChoice;
use farhaul_proto::error::PeerMisbehaved;

/// The number of the first block.
pub const FIRST_BLOCK: SeqNo = SeqNo::new(1);
/// Blocks between two looks at what is missing (tsunami-udp 1.1; paper:survey, Tsunami).
pub const ROUND_BLOCKS: u32 = 50;
/// Shortest time between two reports of the error rate, and by the original's rule between requests (tsunami-udp 1.1).
pub const REPORT_SPACING: Duration = Duration::from_millis(350);
/// Most requests at once, and the number of missing blocks at which the original restarts (tsunami-udp 1.1).
pub const MAX_REQUESTS: u32 = 2_048;

/// The settings of Tsunami.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Options {
    /// The target rate. The error rate makes the sender slower, never faster.
    pub rate: RateChoice,
    /// The error rate above which the sender slows down, in thousandths of a percent. Default 7500.
    pub error_threshold: u32,
    /// The growth of the delay between datagrams when everything is lost. Default 25/24.
    pub slower: Ratio,
    /// The factor of the delay after a report below the threshold. Default 5/6.
    pub faster: Ratio,
    /// The weight of earlier reports in the error rate, percent. Default 25.
    pub history: u8,
    /// Ask for a gap by one record, and never restart. Default true. Otherwise the original's rule: a record per block,
    /// and a restart when 2048 blocks are missing.
    pub gaps: bool,
    /// Ask again after an RTT. Default true. Otherwise the original's rule: after 350 ms.
    pub prompt: bool,
    /// Count headers and fractions of a microsecond. Default true. Otherwise the original's rule: neither.
    pub exact: bool,
}

impl Options {
    /// The rules of the original in all points. The rate must be set.
    pub fn original(rate: RateChoice) -> Self {
        Self { rate, gaps: false, prompt: false, exact: false, ..Self::default() }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            rate: RateChoice::Auto,
            error_threshold: delay::DEFAULT_THRESHOLD,
            slower: delay::DEFAULT_SLOWER,
            faster: delay::DEFAULT_FASTER,
            history: error_rate::DEFAULT_HISTORY,
            gaps: true,
            prompt: true,
            exact: true,
        }
    }
}

/// Tsunami between two Farhaul ends.
#[derive(Debug)]
pub(crate) struct Tsunami;

impl Protocol for Tsunami {
    type Options = Options;
    type Sender = sender::Sender;
    type Receiver = receiver::Receiver;

    const NAME: &'static str = "tsunami";

    fn sender(options: &Options, setup: Setup<'_>) -> sender::Sender {
        sender::Sender::new(FIRST_BLOCK, options, &setup)
    }

    fn receiver(options: &Options, _hello: &[u8], setup: Setup<'_>) -> Result<receiver::Receiver, PeerMisbehaved> {
        Ok(receiver::Receiver::new(FIRST_BLOCK, options, &setup))
    }
}
