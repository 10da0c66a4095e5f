//! Loss of chosen packets by a bit mask, for readable tests.

use core::str::FromStr;

use farhaul_units::Instant;

use super::model::LossModel;

/// The longest pattern: one bit per packet in a `u64`.
const MAX_LENGTH: usize = 64;

/// Loses the packets whose bit is set. Bit 0 stands for the first packet, bit 1 for the second.
///
/// The text form has one character per packet: `"..x."` loses the third packet only, and
/// `"..x.".parse::<Pattern>()?.repeated()` the third of every four.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    mask: u64,
    length: u8,
    repeats: bool,
    /// The bit for the next packet; `length` after the end of the pattern.
    position: u8,
}

impl Pattern {
    /// Loses packets among the first 64 by `mask`, and none after them.
    pub const fn once(mask: u64) -> Self {
        Self { mask, length: MAX_LENGTH as u8, repeats: false, position: 0 }
    }

    /// The same pattern, repeated for ever.
    #[must_use]
    pub const fn repeated(mut self) -> Self {
        self.repeats = true;
        self
    }
}

/// The error of reading a [`Pattern`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParsePatternError {
    /// A character other than `.` and `x`.
    #[error("'{0}' is not allowed: write '.' for a packet that passes and 'x' for a lost one")]
    UnknownCharacter(char),
    /// An empty text, or one with more than 64 characters.
    #[error("a pattern has 1 to {MAX_LENGTH} packets, not {0}")]
    Length(usize),
}

impl FromStr for Pattern {
    type Err = ParsePatternError;

    /// Reads `.` as a packet that passes and `x` as a lost one. The pattern applies once.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let count = text.chars().count();
        let length = u8::try_from(count).ok().filter(|length| (1..=MAX_LENGTH).contains(&usize::from(*length)));
        let length = length.ok_or(ParsePatternError::Length(count))?;
        let mut mask = 0;
        for (position, fate) in text.chars().enumerate() {
            match fate {
                '.' => {}
                'x' => mask |= 1 << position,
                other => return Err(ParsePatternError::UnknownCharacter(other)),
            }
        }
        Ok(Self { mask, length, repeats: false, position: 0 })
    }
}

impl LossModel for Pattern {
    fn loses(&mut self, _: Instant, _: u32) -> bool {
        if self.position == self.length {
            return false;
        }
        let lost = self.mask >> self.position & 1 == 1;
        self.position += 1;
        if self.repeats && self.position == self.length {
            self.position = 0;
        }
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Impair;
    use crate::testing::{numbers, play};

    fn survivors(pattern: Pattern, packets: u32) -> Vec<u32> {
        numbers(&play(&mut Impair::new(pattern), packets, 1))
    }

    #[test]
    fn the_marked_packets_are_lost_once() {
        assert_eq!(survivors("x..x".parse().unwrap(), 8), [1, 2, 4, 5, 6, 7]);
        assert_eq!(survivors(Pattern::once(0b1001), 8), [1, 2, 4, 5, 6, 7]);
        assert_eq!(survivors(Pattern::once(u64::MAX), 66), [64, 65]);
    }

    #[test]
    fn a_repeated_pattern_starts_over() {
        assert_eq!(survivors("..x.".parse::<Pattern>().unwrap().repeated(), 9), [0, 1, 3, 4, 5, 7, 8]);
        assert_eq!(
            survivors(Pattern::once(1).repeated(), 130),
            (1..64).chain(65..128).chain([129]).collect::<Vec<_>>()
        );
    }

    #[test]
    fn invalid_patterns_are_refused() {
        assert_eq!("..o".parse::<Pattern>(), Err(ParsePatternError::UnknownCharacter('o')));
        assert_eq!("".parse::<Pattern>(), Err(ParsePatternError::Length(0)));
        assert_eq!(".".repeat(65).parse::<Pattern>(), Err(ParsePatternError::Length(65)));
        assert_eq!(".".repeat(300).parse::<Pattern>(), Err(ParsePatternError::Length(300)));
    }
}
