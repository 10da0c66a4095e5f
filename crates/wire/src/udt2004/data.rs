//! The header of all packets, and data packets.

use super::seq::SeqNo30;
use crate::DecodeError;

/// Bytes before the payload of a data packet or the body of a control packet.
pub const HEADER_LEN: usize = 4;

/// Whether `datagram` has the control bit. Does not check its validity. `false` if it is empty.
#[inline]
pub fn is_control(datagram: &[u8]) -> bool {
    datagram.first().is_some_and(|byte| byte >> 7 == 1)
}

/// The sequence number and payload of a data packet.
///
/// # Errors
/// The datagram is shorter than a header, a control packet, or has a number of more than 30 bits.
#[inline]
pub fn split_data(datagram: &[u8]) -> Result<(SeqNo30, &[u8]), DecodeError> {
    let (word, payload) = split(datagram)?;
    if is_control(datagram) {
        return Err(DecodeError::NotData);
    }
    Ok((SeqNo30::from_word("sequence number", word)?, payload))
}

/// The header of data packet `seq`.
pub const fn encode_data_header(seq: SeqNo30) -> [u8; HEADER_LEN] {
    seq.value().to_be_bytes()
}

/// The header word and the rest.
#[inline]
pub(super) fn split(datagram: &[u8]) -> Result<(u32, &[u8]), DecodeError> {
    let (head, rest) = datagram
        .split_first_chunk::<HEADER_LEN>()
        .ok_or(DecodeError::TooShort { length: datagram.len(), header: HEADER_LEN })?;
    Ok((u32::from_be_bytes(*head), rest))
}
