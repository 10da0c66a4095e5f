//! Big-endian 32-bit words at fixed offsets, read and written in arrays of checked length.

use farhaul_units::{AckNo, SeqNo};

use crate::DecodeError;

/// A 32-bit big-endian word at a fixed offset in a header or body.
///
/// The array type proves that the length was checked. Since the offset is a constant, an access compiles to a single
/// load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Word {
    name: &'static str,
    offset: usize,
}

impl Word {
    /// Word number `index`, counted from the beginning of the header or body.
    pub(crate) const fn new(name: &'static str, index: usize) -> Self {
        Self { name, offset: index * 4 }
    }

    #[inline]
    pub(crate) const fn read<const N: usize>(self, bytes: &[u8; N]) -> u32 {
        let at = self.offset;
        u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
    }

    #[inline]
    pub(crate) fn write<const N: usize>(self, bytes: &mut [u8; N], value: u32) {
        bytes[self.offset..self.offset + 4].copy_from_slice(&value.to_be_bytes());
    }

    /// The word, whose top bit must be zero.
    #[inline]
    pub(crate) const fn read_31<const N: usize>(self, bytes: &[u8; N]) -> Result<u32, DecodeError> {
        without_top_bit(self.name, self.read(bytes))
    }

    #[inline]
    pub(crate) fn read_seq<const N: usize>(self, bytes: &[u8; N]) -> Result<SeqNo, DecodeError> {
        self.read_31(bytes).map(SeqNo::new)
    }

    #[inline]
    pub(crate) fn read_ack_number<const N: usize>(self, bytes: &[u8; N]) -> Result<AckNo, DecodeError> {
        self.read_31(bytes).map(AckNo::new)
    }
}

const fn without_top_bit(field: &'static str, value: u32) -> Result<u32, DecodeError> {
    if value >> 31 == 0 { Ok(value) } else { Err(DecodeError::TopBit { field, value }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Word = Word::new("second", 1);

    #[test]
    fn words_are_big_endian() {
        let mut bytes = [0; 8];
        SECOND.write(&mut bytes, 0x0102_0304);
        assert_eq!(bytes, [0, 0, 0, 0, 1, 2, 3, 4]);
        assert_eq!(SECOND.read(&bytes), 0x0102_0304);
    }

    #[test]
    fn a_top_bit_is_refused_and_named() {
        let bytes = [0, 0, 0, 0, 0x80, 0, 0, 1];
        assert_eq!(SECOND.read_31(&bytes), Err(DecodeError::TopBit { field: "second", value: 0x8000_0001 }));
    }
}
