//! The body of an acknowledgement: progress of the data, and the receiver's measurements.

use core::time::Duration;

use super::seq::SeqNo30;
use crate::DecodeError;
use crate::field::{micros, put_words, read_micros, read_words};

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
        let [seq, rtt, arrival_speed, capacity] = read_words("ACK", body, "16")?;
        let seq = SeqNo30::from_word("acknowledged sequence number", seq)?;
        Ok(Self { id, seq, rtt: read_micros(rtt), arrival_speed, capacity })
    }

    pub(super) fn encode_body(&self, out: &mut Vec<u8>) {
        put_words(out, [self.seq.value(), micros(self.rtt), self.arrival_speed, self.capacity]);
    }
}
