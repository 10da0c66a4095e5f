//! Recorded loss: a text states for each packet whether it was lost.

use core::str::FromStr;
use std::sync::Arc;

use farhaul_units::Instant;

use super::model::LossModel;

/// Most packets in one trace: 16 MiB of memory.
pub const MAX_RECORDED_PACKETS: u64 = 1 << 27;

/// A recorded sequence of losses. After its last packet it starts over.
///
/// The text has one character per packet, in lines of any length: `.` or `0` for an arrival, `x` or `1` for a loss.
/// Lines that begin with `#` are comments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LossTrace {
    /// Bit n % 64 of word n / 64 is set if packet n was lost.
    words: Arc<[u64]>,
    packets: u64,
}

/// The error of reading a [`LossTrace`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseLossTraceError {
    /// A character other than the four allowed ones.
    #[error("line {line}: '{character}' is not allowed: write '.' or '0' for an arrival, 'x' or '1' for a loss")]
    UnknownCharacter {
        /// Line number, counted from 1.
        line: usize,
        /// The character found.
        character: char,
    },
    /// More than [`MAX_RECORDED_PACKETS`] packets.
    #[error("line {0} exceeds the limit of {MAX_RECORDED_PACKETS} packets")]
    TooLong(usize),
    /// A text without any packet.
    #[error("the loss trace is empty: it needs at least one packet")]
    Empty,
}

impl LossTrace {
    /// Number of packets until the trace repeats.
    #[cfg(test)]
    fn packets(&self) -> u64 {
        self.packets
    }

    /// Number of lost packets among them.
    #[cfg(test)]
    fn lost(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    fn loses(&self, number: u64) -> bool {
        self.words[(number / u64::from(u64::BITS)) as usize] >> (number % u64::from(u64::BITS)) & 1 == 1
    }
}

impl FromStr for LossTrace {
    type Err = ParseLossTraceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut words = Vec::new();
        let mut packets = 0;
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
            let line_number = index + 1;
            for character in line.trim().chars() {
                let is_lost = match character {
                    '.' | '0' => false,
                    'x' | '1' => true,
                    character => return Err(ParseLossTraceError::UnknownCharacter { line: line_number, character }),
                };
                if packets == MAX_RECORDED_PACKETS {
                    return Err(ParseLossTraceError::TooLong(line_number));
                }
                let bit = packets % u64::from(u64::BITS);
                if bit == 0 {
                    words.push(0);
                }
                if let Some(word) = words.last_mut() {
                    *word |= u64::from(is_lost) << bit;
                }
                packets += 1;
            }
        }
        if packets == 0 {
            return Err(ParseLossTraceError::Empty);
        }
        Ok(Self { words: words.into(), packets })
    }
}

/// Loses the packets that a [`LossTrace`] marks as lost.
#[derive(Clone, Debug)]
pub struct RecordedLoss {
    trace: LossTrace,
    next: u64,
}

impl RecordedLoss {
    /// Starts at the beginning of `trace`.
    pub fn new(trace: LossTrace) -> Self {
        Self { trace, next: 0 }
    }
}

impl LossModel for RecordedLoss {
    fn loses(&mut self, _: Instant, _: u32) -> bool {
        let is_lost = self.trace.loses(self.next);
        self.next = (self.next + 1) % self.trace.packets;
        is_lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Impair;
    use crate::testing::{numbers, play};

    #[test]
    fn the_recorded_fates_repeat() {
        let trace: LossTrace = "# a comment\n..x\n01\n".parse().unwrap();
        assert_eq!((trace.packets(), trace.lost()), (5, 2));
        assert_eq!(numbers(&play(&mut Impair::new(RecordedLoss::new(trace)), 11, 1)), [0, 1, 3, 5, 6, 8, 10]);
    }

    #[test]
    fn a_trace_may_be_longer_than_a_word() {
        let text = format!("{}x{}", ".".repeat(99), ".".repeat(30));
        let survivors = numbers(&play(&mut Impair::new(RecordedLoss::new(text.parse().unwrap())), 260, 1));
        assert_eq!((0..260).filter(|number| !survivors.contains(number)).collect::<Vec<_>>(), [99, 229]);
    }

    #[test]
    fn an_invalid_loss_trace_is_refused_with_its_line() {
        let error = "..\n.?".parse::<LossTrace>();
        assert_eq!(error, Err(ParseLossTraceError::UnknownCharacter { line: 2, character: '?' }));
        assert_eq!("# nothing\n".parse::<LossTrace>(), Err(ParseLossTraceError::Empty));
    }
}
