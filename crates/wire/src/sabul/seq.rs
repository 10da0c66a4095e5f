//! Sequence numbers of eight decimal digits.

use core::fmt;

/// Numbers before they begin again.
const MODULUS: u32 = 100_000_000;
/// Two numbers are at most this far apart: their distance goes the shorter way round.
const HALF: u32 = MODULUS / 2;

/// A sequence number on the wire: 0 to 99 999 999, followed by 0.
///
/// The report of 2002 counts modulo 2^31. The program counts modulo 10^8, which is what its peers see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct DecimalSeq(u32);

impl DecimalSeq {
    /// The number of the first packet.
    pub const ZERO: Self = Self(0);
    /// The largest number. Zero follows it.
    pub const MAX: Self = Self(MODULUS - 1);

    /// This number; `None` beyond [`MAX`](Self::MAX).
    pub const fn new(value: u32) -> Option<Self> {
        if value < MODULUS { Some(Self(value)) } else { None }
    }

    /// The number as encoded on the wire.
    pub const fn value(self) -> u32 {
        self.0
    }

    /// The number `packets` later.
    #[must_use]
    pub const fn plus(self, packets: u32) -> Self {
        Self((self.0 + packets % MODULUS) % MODULUS)
    }

    /// The number `packets` earlier.
    #[must_use]
    pub const fn minus(self, packets: u32) -> Self {
        self.plus(MODULUS - packets % MODULUS)
    }

    /// Signed distance from `base` to this number, in -5*10^7..5*10^7. Positive if this one is later.
    pub const fn distance_from(self, base: Self) -> i32 {
        let forward = (self.0 + MODULUS - base.0) % MODULUS;
        if forward < HALF { forward as i32 } else { forward as i32 - MODULUS as i32 }
    }
}

impl fmt::Display for DecimalSeq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn seq(value: u32) -> DecimalSeq {
        DecimalSeq::new(value).expect("a valid number")
    }

    #[test]
    fn the_largest_number_is_followed_by_zero() {
        assert_eq!(DecimalSeq::MAX.plus(1), DecimalSeq::ZERO);
        assert_eq!(DecimalSeq::ZERO.minus(1), DecimalSeq::MAX);
        assert_eq!(DecimalSeq::ZERO.distance_from(DecimalSeq::MAX), 1);
        assert_eq!(DecimalSeq::MAX.distance_from(DecimalSeq::ZERO), -1);
    }

    #[test]
    fn the_direction_turns_after_half_of_the_numbers() {
        assert_eq!(seq(49_999_999).distance_from(DecimalSeq::ZERO), 49_999_999);
        assert_eq!(seq(50_000_000).distance_from(DecimalSeq::ZERO), -50_000_000);
    }

    #[test]
    fn nine_digits_are_no_number() {
        assert_eq!(DecimalSeq::new(99_999_999), Some(DecimalSeq::MAX));
        assert_eq!(DecimalSeq::new(100_000_000), None);
        assert_eq!(DecimalSeq::new(u32::MAX), None);
    }

    proptest! {
        #[test]
        fn a_step_and_its_distance_agree(base in 0..MODULUS, step in 0u32..HALF) {
            let base = seq(base);
            prop_assert_eq!(base.plus(step).distance_from(base), step as i32);
            prop_assert_eq!(base.minus(step).distance_from(base), -(step as i32));
            prop_assert_eq!(base.plus(step).minus(step), base);
        }

        #[test]
        fn steps_of_any_length_stay_within_the_numbers(base in 0..MODULUS, step in any::<u32>()) {
            let expected = (u64::from(base) + u64::from(step)) % u64::from(MODULUS);
            prop_assert_eq!(u64::from(seq(base).plus(step).value()), expected);
            prop_assert_eq!(seq(base).plus(step).minus(step), seq(base));
        }

        #[test]
        fn distances_are_opposite_except_half_way_round(a in 0..MODULUS, b in 0..MODULUS) {
            let (there, back) = (seq(a).distance_from(seq(b)), seq(b).distance_from(seq(a)));
            prop_assert!(there == -back || there == -(HALF as i32));
        }
    }
}
