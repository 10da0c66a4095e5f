//! Sessions with programs of tsunami-udp 1.1: a [`Server`] for their `tsunami`, a [`Client`] for their `tsunamid`.
//!
//! ```text
//!                ┌──────────── Server or Client ───────────┐
//! channel bytes ▶│ inbox ─▶ dialogue (revision, proof,      │──▶ channel bytes
//!                │          names, lists, sizes)            │──▶ events
//! calls ────────▶│    └──▶ Sending: Delay, Pacer, Silence   │──▶ trains, whose bytes the host reads
//! datagrams ────▶│    └──▶ Receiving: Horizon, ErrorRate    │──▶ blocks, which the host writes
//!                └──────────────────────────────────────────┘
//! ```
//!
//! A session is bound to one TCP connection, and any number of files follow one another on it. The host provides the
//! connection, a UDP socket and the files, follows [`OriginalSession`](crate::session::OriginalSession), and drains
//! `poll_event` in each turn, also after a fault.
//!
//! **Files.** Blocks are read and written anywhere in the file, as in the original. So a session holds no data. The
//! server asks its host for the bytes of each train. The client hands each block over with its offset, and the host writes
//! it at once.
//!
//! **Ports.** The server listens on TCP [`PORT`](farhaul_wire::tsunami::PORT). The client names its UDP port for each
//! file. It should be a new one, because datagrams carry no mark of their file, and the last ones of a file may be late.
//!
//! **Security (attack C1).** The secret is for compatibility and protects little. See
//! [`Proof`](farhaul_wire::tsunami::Proof). The originals cannot run without one. Here the default is no secret, and their
//! `kitten` must be set.
//! Anybody can forge datagrams to the client. Our server differs from the original in four points. It serves no name
//! that leads out of its folder. It runs no command. It can bound the rate. It stops at once when the client is gone.

mod client;
mod inbox;
mod name_rules;
mod server;

#[cfg(test)]
mod tests;

pub use client::{Client, ClientEvent, ClientOptions, Losses, NameRefused};
pub use server::{Server, ServerEvent, ServerOptions, TransferCounts};

use farhaul_units::Duration;
use farhaul_wire::tsunami::{MessageError, UnknownRequest};

/// How long a peer may take for a step of the dialogue, and how long it may be silent during a transfer. The original
/// waits so long for its client (`hbtimeout`).
pub const DEFAULT_PATIENCE: Duration = Duration::from_secs(15);

/// A file of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its name, as the other side wrote it. It may hold anything but a zero.
    pub name: Vec<u8>,
    /// Its bytes.
    pub size: u64,
}

/// Why a session is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The peer sent a message that no Tsunami program sends.
    #[error("protocol violation by the peer: {0}")]
    Message(#[from] MessageError),
    /// The client sent a record that no client sends.
    #[error("protocol violation by the peer: {0}")]
    Request(#[from] UnknownRequest),
    /// Bytes came while the peer had nothing to say.
    #[error("protocol violation by the peer: it spoke out of turn")]
    OutOfTurn,
    /// The proof of the client is wrong: the two sides have different secrets.
    #[error(
        "the secrets differ: both sides must have the same, and that of the original programs is `kitten` by default"
    )]
    WrongSecret,
    /// The server divides the file into blocks of another size than this side asked for.
    #[error("the server answered with blocks of {answered} bytes, asked were {asked}")]
    BlockSize {
        /// Bytes of a block that the client asked for.
        asked: u32,
        /// Bytes of a block in the answer.
        answered: u32,
    },
    /// The file is larger than this side accepts.
    #[error("the file has {size} bytes, and at most {most} are accepted")]
    TooLarge {
        /// Bytes of the file.
        size: u64,
        /// Most bytes that this side accepts.
        most: u64,
    },
    /// The file has more than 2^32 - 1 blocks.
    #[error("a file of {size} bytes has too many blocks of {block} bytes; the client must ask for larger ones")]
    TooManyBlocks {
        /// Bytes of the file.
        size: u64,
        /// Bytes of a block.
        block: u32,
    },
    /// The control connection ended before the server had admitted the client.
    #[error("the peer ended the control connection in the opening, before it compared the secrets")]
    EndedInOpening,
    /// The control connection ended while a request for a file or a list was not answered as a whole.
    #[error("the peer ended the control connection before the answer to a request was complete")]
    EndedUnanswered,
    /// The control connection ended in the middle of a transfer.
    #[error("the peer ended the control connection in the middle of a transfer")]
    ChannelEnded,
    /// The peer did not go on with the dialogue.
    #[error("no answer for {0:?}")]
    NoAnswer(Duration),
    /// The control connection works, but no datagram came.
    #[error("no datagram within {0:?}, but the control connection works: a firewall blocks UDP to this side")]
    NoDatagrams(Duration),
    /// Nothing came from the peer during a transfer.
    #[error("nothing came from the peer for {0:?}")]
    Silent(Duration),
}
