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

use super::header::ADDITIONAL;
use crate::DecodeError;
use crate::field::{micros, put_words, read_micros, read_seq, read_words};

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
    pub(super) fn decode(kind: u16, additional: u32, body: &[u8]) -> Result<Self, DecodeError> {
        let [received, latest, delay] = read_words("receipt", body, "12")?;
        let (seq, latest) = (read_seq(ADDITIONAL, additional)?, read_seq("latest packet", latest)?);
        Ok(Self { seq, received, latest, prompt: kind == ACKNOWLEDGES, delay: read_micros(delay) })
    }

    pub(super) const fn kind(&self) -> u16 {
        if self.prompt { ACKNOWLEDGES } else { COUNTS }
    }

    pub(super) fn encode_body(&self, out: &mut Vec<u8>) {
        put_words(out, [self.received, self.latest.value(), micros(self.delay)]);
    }
}
