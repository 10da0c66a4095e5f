//! Why a session with an original program failed.

use farhaul_units::Duration;
use farhaul_wire::rbudp::NameError;

use farhaul_proto::error::PeerMisbehaved;

/// The end of a session. It is of no more use, and the host resets the channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// A payload of fewer than 64 bytes was set on this side.
    #[error("a payload of {0} bytes is too small for RBUDP, which needs 64")]
    SmallPayload(u16),
    /// The name of a file does not fit, or the peer's block does not end it.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The peer announced a negative size.
    #[error("the peer announced a size of {0} bytes")]
    NegativeSize(i64),
    /// The file is larger than this side or the dialogue permits.
    #[error("the file has {size} bytes, and {largest} are the most")]
    TooLarge {
        /// Its size in bytes.
        size: u64,
        /// The largest size in bytes.
        largest: u64,
    },
    /// The peer ended the channel instead of answering the name. It probably cannot open the file.
    #[error("the peer ended the connection without a size: it may have no such file")]
    NoAnswer,
    /// The channel broke or ended while data was missing.
    #[error("the connection to the peer broke before everything was transferred")]
    ChannelBroke,
    /// The peer had to answer and did not for this long.
    #[error("the peer was silent for {0:?}")]
    Silent(Duration),
    /// Not one datagram of the peer arrived in this time although the channel works.
    #[error("no datagram arrived within {0:?}: a firewall blocks UDP, or the ports differ")]
    UdpBlocked(Duration),
    /// The peer says that not one of this many datagrams arrived.
    #[error("none of {0} datagrams arrived: a firewall blocks UDP, or the ports or payload sizes differ")]
    NothingArrived(u32),
    /// The peer reported no new packet in this many rounds.
    #[error("no new packet arrived in {0} rounds")]
    NoProgress(u32),
    /// Most datagrams have other lengths than this side's payload makes.
    #[error("the payload sizes differ: the peer sends {peers} bytes in a datagram, and this side was told {own}")]
    OtherPayload {
        /// Payload bytes that this side was told.
        own: u16,
        /// Payload bytes of the peer's datagrams.
        peers: usize,
    },
    /// The receiver's bitmap has the length that another payload size makes.
    #[error("the payload sizes probably differ: this side sends {own} bytes in a datagram, and {} fits the receiver's report", range(*least, *most))]
    PayloadsDiffer {
        /// Payload bytes of this side.
        own: u16,
        /// The smallest payload that makes such a bitmap.
        least: u64,
        /// The largest one.
        most: u64,
    },
    /// The receiver ended the channel before its first bitmap.
    #[error(
        "the receiver ended the connection before its first report: it was stopped, or it was started with another \
         payload size than the {0} bytes of this side, which crashes it"
    )]
    LeftUnanswered(u16),
    /// The receiver ended the channel before it asked for anything.
    #[error("the receiver ended the connection before it asked for a file")]
    NothingAsked,
    /// The peer wants a file, and this side has a stream.
    #[error("the peer asks for a file, and not for a stream")]
    WantsFile,
    /// A call that does not fit the state of the session.
    #[error("{0} is out of turn")]
    OutOfTurn(&'static str),
    /// A record that no peer sends.
    #[error(transparent)]
    PeerMisbehaved(#[from] PeerMisbehaved),
}

fn range(least: u64, most: u64) -> String {
    if least == most { least.to_string() } else { format!("a size of {least} to {most}") }
}
