//! Loss of chosen packets, as a bit mask: for tests that can be read.

use core::str::FromStr;

use farhaul_units::Instant;

use crate::{Impairment, Outlet, WireLen};

/// The longest pattern: one bit per packet in a `u64`.
const MAX_LENGTH: usize = 64;

/// Loses the packets whose bit is set: bit 0 stands for the first packet, bit 1 for the second.
///
/// The readable form is a text, one character per packet: `"..x."` loses the third packet of all, and
/// `"..x.".parse::<Pattern>()?.repeated()` the third of every four.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    mask: u64,
    length: u8,
    repeats: bool,
    /// The bit for the next packet; `length` when the pattern is over.
    position: u8,
}

impl Pattern {
    /// Loses packets among the first 64 and none after.
    pub const fn once(mask: u64) -> Self {
        Self { mask, length: MAX_LENGTH as u8, repeats: false, position: 0 }
    }

    /// The same pattern over and over.
    #[must_use]
    pub const fn repeated(mut self) -> Self {
        self.repeats = true;
        self
    }

    fn loses_next(&mut self) -> bool {
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

/// Why a text is no loss pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParsePatternError {
    /// Another character than the two that mean something.
    #[error("'{0}' is no fate: write '.' for a packet that passes and 'x' for one that is lost")]
    UnknownCharacter(char),
    /// Empty, or longer than a pattern can be.
    #[error("a pattern has 1 to {MAX_LENGTH} packets, not {0}")]
    Length(usize),
}

impl FromStr for Pattern {
    type Err = ParsePatternError;

    /// Reads `.` as a packet that passes and `x` as one that is lost; the pattern holds once.
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

impl<P: WireLen> Impairment<P> for Pattern {
    fn apply(&mut self, now: Instant, packet: P, out: &mut Outlet<P>) {
        if self.loses_next() {
            out.lose(packet);
        } else {
            out.pass(now, packet);
        }
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
    fn a_repeated_pattern_goes_on() {
        assert_eq!(survivors("..x.".parse::<Pattern>().unwrap().repeated(), 9), [0, 1, 3, 4, 5, 7, 8]);
        assert_eq!(
            survivors(Pattern::once(1).repeated(), 130),
            (1..64).chain(65..128).chain([129]).collect::<Vec<_>>()
        );
    }

    #[test]
    fn a_text_that_is_no_pattern_is_refused() {
        assert_eq!("..o".parse::<Pattern>(), Err(ParsePatternError::UnknownCharacter('o')));
        assert_eq!("".parse::<Pattern>(), Err(ParsePatternError::Length(0)));
        assert_eq!(".".repeat(65).parse::<Pattern>(), Err(ParsePatternError::Length(65)));
        assert_eq!(".".repeat(300).parse::<Pattern>(), Err(ParsePatternError::Length(300)));
    }
}
