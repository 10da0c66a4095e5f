//! Acknowledgements in their three lengths.

use core::time::Duration;

use farhaul_units::{AckNo, SeqNo};

use super::header::ADDITIONAL;
use crate::DecodeError;
use crate::field::{micros, put_words, read_ack_number, read_micros, read_seq, read_words};

/// The name of the first word in errors.
const SEQ: &str = "acknowledged sequence number";

/// An acknowledgement. RTT values have whole microseconds on the wire, at most 2^32 - 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ack {
    /// Every 64 packets. Opens the window, but neither frees buffers nor counts as delivery (body of 4 bytes).
    Light {
        /// The first packet not received.
        seq: SeqNo,
    },
    /// Sent if a full one left less than 10 ms ago (body of 16 bytes).
    Medium {
        /// The number that an ACK2 repeats.
        number: AckNo,
        /// The first packet not received.
        seq: SeqNo,
        /// The receiver's smoothed RTT.
        rtt: Duration,
        /// Mean deviation of the RTT.
        rtt_var: Duration,
        /// Room in the receive buffer, in packets.
        free_buffer: u32,
    },
    /// Every 10 ms while data arrives (body of 24 bytes).
    Full {
        /// The number that an ACK2 repeats.
        number: AckNo,
        /// The first packet not received.
        seq: SeqNo,
        /// The receiver's smoothed RTT.
        rtt: Duration,
        /// Mean deviation of the RTT.
        rtt_var: Duration,
        /// Room in the receive buffer, in packets.
        free_buffer: u32,
        /// Arrival rate, packets per second; 0 means "not known".
        arrival_rate: u32,
        /// Capacity estimate from packet pairs, packets per second; 0 means "not known".
        capacity: u32,
    },
}

impl Ack {
    /// The first packet not received.
    pub const fn seq(&self) -> SeqNo {
        match *self {
            Self::Light { seq } | Self::Medium { seq, .. } | Self::Full { seq, .. } => seq,
        }
    }

    /// The number that an ACK2 must repeat. `None` for a light one, which is never confirmed.
    pub const fn number(&self) -> Option<AckNo> {
        match *self {
            Self::Light { .. } => None,
            Self::Medium { number, .. } | Self::Full { number, .. } => Some(number),
        }
    }

    /// The length of the body determines the variant.
    pub(super) fn decode(additional: u32, body: &[u8]) -> Result<Self, DecodeError> {
        const LEGAL: &str = "4, 16 or 24";
        let ([seq, rtt, rtt_var, free_buffer], rates) = match body.len() {
            4 => {
                let [seq] = read_words("ACK", body, LEGAL)?;
                return Ok(Self::Light { seq: read_seq(SEQ, seq)? });
            }
            16 => (read_words("ACK", body, LEGAL)?, None),
            _ => {
                let [seq, rtt, rtt_var, free_buffer, rates @ ..] = read_words::<6>("ACK", body, LEGAL)?;
                ([seq, rtt, rtt_var, free_buffer], Some(rates))
            }
        };
        let number = read_ack_number(ADDITIONAL, additional)?;
        let seq = read_seq(SEQ, seq)?;
        let (rtt, rtt_var) = (read_micros(rtt), read_micros(rtt_var));
        Ok(match rates {
            None => Self::Medium { number, seq, rtt, rtt_var, free_buffer },
            Some([arrival_rate, capacity]) => {
                Self::Full { number, seq, rtt, rtt_var, free_buffer, arrival_rate, capacity }
            }
        })
    }

    pub(super) fn encode_body(&self, out: &mut Vec<u8>) {
        put_words(out, [self.seq().value()]);
        if let Self::Medium { rtt, rtt_var, free_buffer, .. } | Self::Full { rtt, rtt_var, free_buffer, .. } = *self {
            put_words(out, [micros(rtt), micros(rtt_var), free_buffer]);
        }
        if let Self::Full { arrival_rate, capacity, .. } = *self {
            put_words(out, [arrival_rate, capacity]);
        }
    }
}
