//! Acknowledgements in their three lengths.

use core::time::Duration;

use farhaul_units::{AckNo, SeqNo};

use super::header::{HEADER_LEN, WORD_1};
use crate::DecodeError;
use crate::field::Word;

const SEQ: Word = Word::new("acknowledged sequence number", 0);
const RTT: Word = Word::new("round-trip time", 1);
const RTT_VAR: Word = Word::new("round-trip time variance", 2);
const FREE_BUFFER: Word = Word::new("free buffer", 3);
/// Counted from the end of a medium body, because only a full one has it.
const ARRIVAL_RATE: Word = Word::new("arrival rate", 0);
const CAPACITY: Word = Word::new("link capacity", 1);

const LIGHT_LEN: usize = 4;
const MEDIUM_LEN: usize = 16;
/// Bytes of a full body beyond a medium one.
const RATES_LEN: usize = 8;

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
    pub(super) fn decode(head: &[u8; HEADER_LEN], body: &[u8]) -> Result<Self, DecodeError> {
        if let Ok(words) = <&[u8; LIGHT_LEN]>::try_from(body) {
            return Ok(Self::Light { seq: SEQ.read_seq(words)? });
        }
        let illegal = DecodeError::BodyLength { packet: "ACK", length: body.len(), legal: "4, 16 or 24" };
        let (words, rates) = body.split_first_chunk::<MEDIUM_LEN>().ok_or(illegal)?;
        if !matches!(rates.len(), 0 | RATES_LEN) {
            return Err(illegal);
        }
        let number = WORD_1.read_ack_number(head)?;
        let seq = SEQ.read_seq(words)?;
        let (rtt, rtt_var) = (read_micros(RTT, words), read_micros(RTT_VAR, words));
        let free_buffer = FREE_BUFFER.read(words);
        Ok(match rates.first_chunk::<RATES_LEN>() {
            None => Self::Medium { number, seq, rtt, rtt_var, free_buffer },
            Some(rates) => {
                let (arrival_rate, capacity) = (ARRIVAL_RATE.read(rates), CAPACITY.read(rates));
                Self::Full { number, seq, rtt, rtt_var, free_buffer, arrival_rate, capacity }
            }
        })
    }

    pub(super) fn encode_body(&self, out: &mut Vec<u8>) {
        let mut words = [0; MEDIUM_LEN];
        SEQ.write(&mut words, self.seq().value());
        match *self {
            Self::Light { .. } => return out.extend_from_slice(&words[..LIGHT_LEN]),
            Self::Medium { rtt, rtt_var, free_buffer, .. } | Self::Full { rtt, rtt_var, free_buffer, .. } => {
                RTT.write(&mut words, micros(rtt));
                RTT_VAR.write(&mut words, micros(rtt_var));
                FREE_BUFFER.write(&mut words, free_buffer);
            }
        }
        out.extend_from_slice(&words);
        if let Self::Full { arrival_rate, capacity, .. } = *self {
            let mut rates = [0; RATES_LEN];
            ARRIVAL_RATE.write(&mut rates, arrival_rate);
            CAPACITY.write(&mut rates, capacity);
            out.extend_from_slice(&rates);
        }
    }
}

fn read_micros<const N: usize>(field: Word, words: &[u8; N]) -> Duration {
    Duration::from_micros(field.read(words).into())
}

fn micros(time: Duration) -> u32 {
    u32::try_from(time.as_micros()).unwrap_or(u32::MAX)
}
