//! Sessions with programs of SABUL 2.1, in both roles. They need builds with 32-bit words.
//!
//! ```text
//! receiver                                          sender (TCP 7000, UDP from the same number)
//!    │── connects ─────────────────────────────────────▶│
//!    │── options, 40 bytes ────────────────────────────▶│
//!    │◀──────────────────────── the same 40 bytes ──────│   the receiver's RTT
//!    │◀──────────────────────── datagrams ──────────────│
//!    │── ACK, ERR, SYN ────────────────────────────────▶│
//!    │◀──────────────────────── end, all acknowledged ──│   the end of the stream
//!    │── SYN, while it writes what it holds, then end ─▶│
//! ```
//!
//! Neither a name nor a size travels. The end of the channel is the end of the stream. So a sender that dies between two
//! packets looks like one that has finished. [`StreamEnd`] says what is known.
//!
//! The host owns the channel and the socket, and follows [`OriginalSession`](crate::session::OriginalSession).

mod receiver;
mod sender;

pub use self::receiver::{Receiver, StreamEnd};
pub use self::sender::Sender;

use farhaul_units::{Duration, Instant};
use farhaul_wire::sabul::{HEADER_LEN, MAX_PAYLOAD, OptionsError};

use farhaul_proto::Config;
use farhaul_proto::channel::ChannelEnd;
use farhaul_proto::error::PeerMisbehaved;
use farhaul_protocols::blast::engine::{Prefix, Setup};

/// The port of the channel and of the sender's datagrams, unless both ends agree on another one.
pub const PORT: u16 = 7_000;
/// RTT before it is measured. Nobody measures it at the sender.
const UNKNOWN_ROUND_TRIP: Duration = Duration::from_millis(100);

/// Why a session with an original program failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SabulError {
    /// The receiver's options make no sense.
    #[error("not a receiver of SABUL 2.1: {0}")]
    Options(OptionsError),
    /// The peer was built with words of 64 bits.
    #[error("the peer sends words of 64 bits: it is a 64-bit build of SABUL, and only 32-bit builds have a format")]
    WordsOf64Bits,
    /// The receiver sent no options in this time.
    #[error("the receiver sent {bytes} of 40 bytes of options within {time:?}")]
    NoOptions {
        /// Bytes that came.
        bytes: usize,
        /// The time.
        time: Duration,
    },
    /// The sender did not return the options in this time. A sender with words of 64 bits waits for more of them.
    #[error(
        "the sender did not return the options within {0:?}: it may be a 64-bit build of SABUL, which waits for more"
    )]
    NoEcho(Duration),
    /// The sender returned other bytes.
    #[error("the sender returned other options than it got: it is no sender of SABUL 2.1")]
    EchoDiffers,
    /// The sender said something after the echo.
    #[error("the sender sent {0} bytes on the channel, where none are due")]
    SenderSpeaks(usize),
    /// The receiver's record makes no sense.
    #[error("the receiver sent a record that no receiver sends: {0}")]
    Misbehaved(PeerMisbehaved),
    /// The channel works, but no datagram arrives.
    #[error("no datagram arrives at the receiver: a firewall blocks UDP, or the port is not open there")]
    DatagramsBlocked,
    /// The peer said nothing for this long: a sender that has no data, or one that is gone.
    #[error("the other side has said nothing for {0:?}")]
    PeerSilent(Duration),
    /// The channel ended before everything was acknowledged.
    #[error("the receiver ended the channel with {0} bytes unacknowledged")]
    ReceiverLeft(u64),
    /// The channel broke after everything was acknowledged. A receiver acknowledges what it has not written yet.
    #[error("the receiver broke the channel after it had acknowledged everything: it may not have written the end")]
    ReceiverBroke,
    /// The receiver acknowledged everything, then said nothing for this long, and did not end the channel.
    #[error("the receiver acknowledged everything, then said nothing for {0:?}: it may not have written the end")]
    ReceiverStays(Duration),
    /// The channel ended while packets were missing.
    #[error("the sender ended the channel while {0} packets were missing")]
    SenderLeft(u64),
    /// The channel broke before everything that arrived was acknowledged.
    #[error("the channel broke before everything was acknowledged: the end of the stream may be missing")]
    ChannelBroke,
    /// The channel could not be opened, or broke in the opening.
    #[error("the channel ended in the opening ({0:?})")]
    Opening(ChannelEnd),
}

/// The facts that the engine of a session begins with.
fn setup(config: &Config, now: Instant) -> Setup<'_> {
    Setup { config, datagram: HEADER_LEN + MAX_PAYLOAD, prefix: Prefix::None, round_trip: UNKNOWN_ROUND_TRIP, now }
}

#[cfg(test)]
mod tests;
