//! Datagrams of data.

use super::seq::DecimalSeq;
use crate::DecodeError;
use crate::field::split_payload;

/// Bytes before the payload.
pub const HEADER_LEN: usize = 4;
/// Most payload of a datagram that an original program sends. The datagram has 1472 bytes then, and its packet 1500.
pub const MAX_PAYLOAD: usize = 1_468;

/// The sequence number and the payload of a datagram.
///
/// # Errors
/// The datagram carries no payload, or its number has more than eight digits.
#[inline]
pub fn split_data(datagram: &[u8]) -> Result<(DecimalSeq, &[u8]), DecodeError> {
    let (head, payload) = split_payload(datagram)?;
    let value = u32::from_be_bytes(*head);
    let seq = DecimalSeq::new(value).ok_or(DecodeError::OutOfRange {
        field: "sequence number",
        value,
        legal: "0 to 99999999",
    })?;
    Ok((seq, payload))
}

/// The header of packet `seq`.
pub const fn encode_data_header(seq: DecimalSeq) -> [u8; HEADER_LEN] {
    seq.value().to_be_bytes()
}
