//! 30-bit sequence numbers, and their mapping to the 31-bit ones used elsewhere.

use core::fmt;

use farhaul_units::SeqNo;

use crate::DecodeError;

/// A sequence number on the wire: 0..=2^30 - 1, wrapping to 0. Source: paper:udt-2004 §3.2 and its footnote 1.
///
/// The protocol counts in [`SeqNo`], whose range of 2^31 is a multiple of 2^30. The wire carries the lower 30 bits, and
/// [`near`](SeqNo30::near) restores the full number. No window reaches half of 2^30 packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SeqNo30(u32);

impl SeqNo30 {
    /// The largest number. Zero follows it.
    pub const MAX: Self = Self((1 << 30) - 1);

    /// The lower 30 bits of `value`.
    pub const fn new(value: u32) -> Self {
        Self(value & Self::MAX.0)
    }

    /// The number as encoded on the wire.
    pub const fn value(self) -> u32 {
        self.0
    }

    /// The number `packets` later.
    #[must_use]
    pub const fn plus(self, packets: u32) -> Self {
        Self::new(self.0.wrapping_add(packets))
    }

    /// Signed distance from `base` to this number, in -2^29..2^29. Positive if this one is later.
    pub const fn distance_from(self, base: Self) -> i32 {
        (self.0.wrapping_sub(base.0) << 2) as i32 >> 2
    }

    /// The full number closest to `reference` with these lower 30 bits.
    pub const fn near(self, reference: SeqNo) -> SeqNo {
        let distance = self.distance_from(Self::new(reference.value()));
        if distance < 0 { reference.minus(distance.unsigned_abs()) } else { reference.plus(distance.unsigned_abs()) }
    }

    /// Reads a word whose upper two bits must be zero.
    pub(super) const fn from_word(field: &'static str, word: u32) -> Result<Self, DecodeError> {
        if word <= Self::MAX.0 {
            Ok(Self(word))
        } else {
            Err(DecodeError::OutOfRange { field, value: word, legal: "0 to 2^30 - 1" })
        }
    }
}

impl From<SeqNo> for SeqNo30 {
    fn from(seq: SeqNo) -> Self {
        Self::new(seq.value())
    }
}

impl fmt::Display for SeqNo30 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_largest_number_is_followed_by_zero() {
        assert_eq!(SeqNo30::MAX.plus(1), SeqNo30::new(0));
        assert_eq!(SeqNo30::new(0).distance_from(SeqNo30::MAX), 1);
        assert_eq!(SeqNo30::new(3).near(SeqNo::new(0x3FFF_FFFF)), SeqNo::new(0x4000_0003));
        assert_eq!(SeqNo30::MAX.near(SeqNo::new(0x4000_0000)), SeqNo::new(0x3FFF_FFFF));
        assert_eq!(SeqNo30::new(0).near(SeqNo::new(0x7FFF_FFFF)), SeqNo::new(0));
    }

    proptest! {
        #[test]
        fn a_number_within_any_window_of_the_reference_is_restored(
            reference in 0u32..0x8000_0000,
            offset in -(1i32 << 29) + 1..1 << 29,
        ) {
            let reference = SeqNo::new(reference);
            let meant = if offset < 0 { reference.minus(offset.unsigned_abs()) } else { reference.plus(offset as u32) };
            prop_assert_eq!(SeqNo30::from(meant).near(reference), meant);
        }
    }
}
