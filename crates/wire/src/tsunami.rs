//! Every message of Tsunami, as the programs of tsunami-udp 1.1 send them.
//!
//! ```text
//! both     Revision              4 bytes, must be equal
//! server   challenge             64 random bytes
//! client   Proof                 16 bytes, MD5 of the challenge and the secret
//! server   Answer                1 byte
//! client   name                  a line, then for each file:
//! server   Answer                1 byte
//! client   Parameters            20 bytes
//! server   Sizes                 20 bytes
//! client   port                  2 bytes
//! server   datagrams             Header, then always as many bytes as the block size
//! client   Request               12 bytes each, the last one Stop
//! ```
//!
//! All numbers are big-endian. The channel has no frames: the state of the dialogue tells the length of what follows.
//! The formats were taken from the bytes of the original programs.
//!
//! | module | content |
//! | --- | --- |
//! | `opening` | revision, challenge, proof, answers |
//! | `transfer` | name, parameters, sizes |
//! | `request` | records of the client during a transfer |
//! | `datagram` | the header of a block |
//! | `listing` | both lists of files |

mod datagram;
mod listing;
mod opening;
mod request;
mod transfer;

pub use datagram::{HEADER_LEN, Header, Kind};
pub use listing::{
    COUNT_LEN, GOT_LIST, GOT_SIZE, LIST_ALL, LIST_FILES, ListingEntry, MAX_ENTRIES, MAX_LISTING, Totals, encode_count,
    read_count, read_text,
};
pub use opening::{Answer, CHALLENGE_LEN, Challenge, PROOF_LEN, Proof, REVISION, check_revision};
pub use request::{Request, UnknownRequest};
pub use transfer::{MAX_BLOCK, MAX_NAME, Parameters, Ratio, Sizes, encode_name, read_name};

/// The TCP port of a server, and the UDP port of a client (tsunami-udp builds 42 and 44). One fork uses 51038.
pub const PORT: u16 = 46224;

/// Why a message was refused. The peer or the line is at fault, and the channel is of no more use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MessageError {
    /// The peer speaks another revision of the protocol, or is another program.
    #[error("the peer speaks revision {0:#010x} of Tsunami, this side {REVISION:#010x}")]
    Revision(u32),
    /// A byte that answers nothing.
    #[error("{0} is no answer of a Tsunami server")]
    Answer(u8),
    /// A name or another text without an end within its longest length.
    #[error("{field} is longer than {most} bytes")]
    TooLong {
        /// The item that was read.
        field: &'static str,
        /// Its most bytes.
        most: usize,
    },
    /// A text that should be a decimal number.
    #[error("{0} is no decimal number")]
    NoNumber(&'static str),
    /// A number outside its range.
    #[error("{field} is {value}, valid is {valid}")]
    OutOfRange {
        /// The name of the field.
        field: &'static str,
        /// The value on the wire.
        value: u64,
        /// The valid values, in words.
        valid: &'static str,
    },
}

#[cfg(test)]
mod tests;
