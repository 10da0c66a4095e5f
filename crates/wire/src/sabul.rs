//! The formats of SABUL 2.1, as 32-bit builds of the original program send them.
//!
//! ```text
//! options   40 bytes: receiver's UDP port | … | receive window | …     channel, from the receiver, then echoed
//! data      sequence number | 1 to 1468 bytes                          datagram, to the receiver
//! record    type | attribute | losses                                  channel, to the sender
//! ```
//!
//! Every field is a word of 32 bits, big-endian. The original declares its words as `long`. So builds with a `long` of
//! 64 bits send longer ones, which are no fixed format. [`OptionsError::WordsOf64Bits`] names them.
//!
//! Sequence numbers are [`DecimalSeq`]. A receiver must place data by running length, because short datagrams occur in
//! the middle of a stream.
//!
//! [`Record::More`] is ours: only two Farhaul programs exchange it (departure D303 in docs/papers/departures.md).

mod data;
mod options;
mod record;
mod seq;

pub use data::{HEADER_LEN, MAX_PAYLOAD, encode_data_header, split_data};
pub use options::{OPTIONS_LEN, Options, OptionsError};
pub use record::{Losses, MAX_LOSSES, MAX_RECORD, Record, RecordError, encode_losses};
pub use seq::DecimalSeq;

#[cfg(test)]
mod tests;
