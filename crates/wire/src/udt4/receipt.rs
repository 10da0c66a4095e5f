//! What a receiver has received, between two Farhaul ends: an acknowledgement that also counts packets beyond the first gap.
//!
//! UDT's acknowledgements are cumulative. A lost packet holds them back until its repair, and those sent by timer wait up to 10 ms.
//! A receipt shows at once how many packets have arrived, and how long the newest of them has waited. So the sender has samples of the
//! RTT and of the delivery rate while repairs are under way.
//!
//! | | |
//! | --- | --- |
//! | reserved half of word 0 | 1 if it is a light acknowledgement as well, otherwise 2 |
//! | word 1 | the first packet not received |
//! | body | packets received, repeated ones excluded (32 bits); the packet that arrived last; µs since then |

use core::time::Duration;

use farhaul_units::SeqNo;

use super::header::{HEADER_LEN, WORD_1};
use crate::DecodeError;
use crate::field::Word;

const RECEIVED: Word = Word::new("received packets", 0);
const LATEST: Word = Word::new("latest packet", 1);
const DELAY: Word = Word::new("delay of a receipt", 2);

const LEN: usize = 12;
/// Kinds in the reserved half of word 0.
const ACKNOWLEDGES: u16 = 1;
const COUNTS: u16 = 2;

/// The state of a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The first packet not received, as in a light acknowledgement.
    pub seq: SeqNo,
    /// Distinct packets received since the connection began, modulo 2^32.
    pub received: u32,
    /// The packet that arrived last.
    pub latest: SeqNo,
    /// Whether it is a light acknowledgement as well.
    pub prompt: bool,
    /// Time since its arrival; whole microseconds on the wire, at most 2^32 - 1.
    pub delay: Duration,
}

impl Receipt {
    pub(super) fn decode(kind: u16, head: &[u8; HEADER_LEN], body: &[u8]) -> Result<Self, DecodeError> {
        let words: &[u8; LEN] = body.try_into().map_err(|_| DecodeError::BodyLength {
            packet: "receipt",
            length: body.len(),
            legal: "12",
        })?;
        Ok(Self {
            seq: WORD_1.read_seq(head)?,
            received: RECEIVED.read(words),
            latest: LATEST.read_seq(words)?,
            prompt: kind == ACKNOWLEDGES,
            delay: Duration::from_micros(DELAY.read(words).into()),
        })
    }

    pub(super) const fn kind(&self) -> u16 {
        if self.prompt { ACKNOWLEDGES } else { COUNTS }
    }

    pub(super) fn encode_body(&self, out: &mut Vec<u8>) {
        let mut words = [0; LEN];
        RECEIVED.write(&mut words, self.received);
        LATEST.write(&mut words, self.latest.value());
        DELAY.write(&mut words, u32::try_from(self.delay.as_micros()).unwrap_or(u32::MAX));
        out.extend_from_slice(&words);
    }
}
