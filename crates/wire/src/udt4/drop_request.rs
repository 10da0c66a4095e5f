//! The message drop request: the sender has given up on a message, so the receiver must not wait for it.

use farhaul_units::{MsgNo, SeqRange};

use super::header::{HEADER_LEN, WORD_1};
use crate::DecodeError;
use crate::field::Word;

const FIRST: Word = Word::new("first dropped sequence number", 0);
const LAST: Word = Word::new("last dropped sequence number", 1);

/// Packets of a message that will not be sent, or not be retransmitted.
///
/// libudt names as the last packet one past the message's end. From stale entries it names message zero with any range.
/// Drop by the message number, within the window, and never loop over the range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DropRequest {
    /// The message number, 29 bits.
    pub message: MsgNo,
    /// The packets. A range from the wire never runs backwards.
    pub range: SeqRange,
}

impl DropRequest {
    const LEN: usize = 8;

    pub(super) fn decode(head: &[u8; HEADER_LEN], body: &[u8]) -> Result<Self, DecodeError> {
        const PACKET: &str = "message drop request";
        let words: &[u8; Self::LEN] =
            body.try_into().map_err(|_| DecodeError::BodyLength { packet: PACKET, length: body.len(), legal: "8" })?;
        let range = SeqRange::new(FIRST.read_seq(words)?, LAST.read_seq(words)?);
        if range.is_empty() {
            return Err(DecodeError::ReversedRange { packet: PACKET, first: range.first, last: range.last });
        }
        Ok(Self { message: MsgNo::new(WORD_1.read(head)), range })
    }

    pub(super) fn encode_body(&self, out: &mut Vec<u8>) {
        let mut words = [0; Self::LEN];
        FIRST.write(&mut words, self.range.first.value());
        LAST.write(&mut words, self.range.last.value());
        out.extend_from_slice(&words);
    }
}
