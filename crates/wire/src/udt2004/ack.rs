//! The body of an acknowledgement: progress of the data, and the receiver's measurements.

use core::time::Duration;

use super::seq::SeqNo30;
use crate::DecodeError;
use crate::field::Word;

const SEQ: Word = Word::new("acknowledged sequence number", 0);
const RTT: Word = Word::new("round-trip time", 1);
const ARRIVAL_SPEED: Word = Word::new("packet arrival speed", 2);
const CAPACITY: Word = Word::new("estimated bandwidth", 3);

/// An acknowledgement (type 2). The units are ours (departure D121). Zero means "not known" in all three measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// Its own number, which the ACK2 repeats.
    pub id: u16,
    /// Everything before this packet has arrived.
    pub seq: SeqNo30,
    /// Smoothed RTT, whole microseconds, at most 2^32 - 1.
    pub rtt: Duration,
    /// Arrival rate, packets per second.
    pub arrival_speed: u32,
    /// Capacity estimate from packet pairs, packets per second.
    pub capacity: u32,
}

impl Ack {
    /// Bytes of the body.
    pub const LEN: usize = 16;

    pub(super) fn decode(id: u16, body: &[u8]) -> Result<Self, DecodeError> {
        let words: &[u8; Self::LEN] =
            body.try_into().map_err(|_| DecodeError::BodyLength { packet: "ACK", length: body.len(), legal: "16" })?;
        Ok(Self {
            id,
            seq: SeqNo30::from_word("acknowledged sequence number", SEQ.read(words))?,
            rtt: Duration::from_micros(u64::from(RTT.read(words))),
            arrival_speed: ARRIVAL_SPEED.read(words),
            capacity: CAPACITY.read(words),
        })
    }

    pub(super) fn encode_body(&self, out: &mut Vec<u8>) {
        let mut words = [0; Self::LEN];
        SEQ.write(&mut words, self.seq.value());
        RTT.write(&mut words, u32::try_from(self.rtt.as_micros()).unwrap_or(u32::MAX));
        ARRIVAL_SPEED.write(&mut words, self.arrival_speed);
        CAPACITY.write(&mut words, self.capacity);
        out.extend_from_slice(&words);
    }
}
