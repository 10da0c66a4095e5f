//! The message drop request: the sender has given up on a message, so the receiver must not wait for it.

use farhaul_units::{MsgNo, SeqRange};

use crate::DecodeError;
use crate::field::{put_words, read_seq, read_words};

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
    pub(super) fn decode(additional: u32, body: &[u8]) -> Result<Self, DecodeError> {
        const PACKET: &str = "message drop request";
        let [first, last] = read_words(PACKET, body, "8")?;
        let first = read_seq("first dropped sequence number", first)?;
        let range = SeqRange::new(first, read_seq("last dropped sequence number", last)?);
        if range.is_empty() {
            return Err(DecodeError::ReversedRange { packet: PACKET, first: range.first, last: range.last });
        }
        Ok(Self { message: MsgNo::new(additional), range })
    }

    pub(super) fn encode_body(&self, out: &mut Vec<u8>) {
        put_words(out, [self.range.first.value(), self.range.last.value()]);
    }
}
