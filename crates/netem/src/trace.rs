//! Recorded links, cellular for example: delivery opportunities in mahimahi's format.

use core::str::FromStr;
use std::sync::Arc;

use farhaul_units::Rate;

/// Bytes per opportunity: a full Ethernet packet and the four bytes that a Linux tunnel device writes in front of it
/// (paper:mahimahi-2015; its `PACKET_SIZE`).
pub const OPPORTUNITY_BYTES: u32 = 1_504;

/// Bytes that mahimahi counts on top of each packet, because its tunnel device adds them.
pub const TUNNEL_HEADER: u32 = 4;

/// Most lines of a trace: 83 hours at 100 packets per second, six minutes at 1 Gbit/s.
pub const MAX_OPPORTUNITIES: usize = 30_000_000;

const BITS_PER_BYTE: u64 = 8;
const MILLIS_PER_SECOND: u64 = 1_000;

/// A delivery trace in mahimahi's format: one time stamp per line, in whole milliseconds and in order.
///
/// Each line is an opportunity to deliver [`OPPORTUNITY_BYTES`] bytes. Several lines may have the same stamp. The last
/// stamp is also the period after which the trace repeats.
///
/// Bytes that an opportunity leaves over go to the packets that already wait behind. If none waits, they are lost. A
/// packet may take several opportunities and leaves with the last of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryTrace {
    /// Milliseconds. Not empty, and the last stamp is above zero.
    stamps: Arc<[u32]>,
}

/// The error of reading a [`DeliveryTrace`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseTraceError {
    /// Not a whole number of milliseconds, or more than 49 days.
    #[error("line {0} is not a whole number of milliseconds below 2^32")]
    NotANumber(usize),
    /// A stamp is lower than the one before it.
    #[error("line {0} has an earlier time than the line before it")]
    NotInOrder(usize),
    /// More than [`MAX_OPPORTUNITIES`] lines.
    #[error("line {0} exceeds the limit of {MAX_OPPORTUNITIES} opportunities")]
    TooLong(usize),
    /// No line at all, or a period of zero.
    #[error("a trace needs at least one line, and its last time, which is its period, must be above 0 ms")]
    NoTime,
}

impl FromStr for DeliveryTrace {
    type Err = ParseTraceError;

    /// Reads one number per line. Surrounding white space and empty lines at the end are ignored.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut stamps: Vec<u32> = Vec::new();
        for (index, line) in text.trim_end().lines().enumerate() {
            let number = index + 1;
            if stamps.len() == MAX_OPPORTUNITIES {
                return Err(ParseTraceError::TooLong(number));
            }
            let digits = line.trim();
            let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
            let stamp = digits.parse().ok().filter(|_| is_number).ok_or(ParseTraceError::NotANumber(number))?;
            if stamps.last().is_some_and(|last| stamp < *last) {
                return Err(ParseTraceError::NotInOrder(number));
            }
            stamps.push(stamp);
        }
        if stamps.last().is_none_or(|last| *last == 0) {
            return Err(ParseTraceError::NoTime);
        }
        Ok(Self { stamps: stamps.into() })
    }
}

impl DeliveryTrace {
    /// The mean rate if every byte of every opportunity is used.
    pub fn mean_rate(&self) -> Rate {
        let bits = self.stamps.len() as u64 * u64::from(OPPORTUNITY_BYTES) * BITS_PER_BYTE;
        Rate::from_bits_per_second(bits * MILLIS_PER_SECOND / u64::from(self.period()))
    }

    /// Number of opportunities in a period.
    pub fn opportunities(&self) -> usize {
        self.stamps.len()
    }

    /// Milliseconds until the trace repeats.
    pub(crate) fn period(&self) -> u32 {
        *self.stamps.last().expect("no trace is empty")
    }

    /// Milliseconds since the beginning of the period.
    pub(crate) fn stamps(&self) -> &[u32] {
        &self.stamps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_one_stamp_a_line() {
        let trace: DeliveryTrace = "0\n5\r\n 5 \n10\n\n".parse().unwrap();
        assert_eq!((trace.stamps(), trace.period(), trace.opportunities()), (&[0, 5, 5, 10][..], 10, 4));
        assert_eq!(trace.mean_rate(), Rate::from_bits_per_second(4 * 1_504 * 8 * 100));
    }

    #[test]
    fn an_error_names_its_line() {
        for (text, error) in [
            ("1\nx\n3", ParseTraceError::NotANumber(2)),
            ("1\n\n3", ParseTraceError::NotANumber(2)),
            ("-1", ParseTraceError::NotANumber(1)),
            ("+1", ParseTraceError::NotANumber(1)),
            ("1.5", ParseTraceError::NotANumber(1)),
            ("4294967296", ParseTraceError::NotANumber(1)),
            ("3\n4\n2", ParseTraceError::NotInOrder(3)),
            ("", ParseTraceError::NoTime),
            ("0\n0", ParseTraceError::NoTime),
        ] {
            assert_eq!(text.parse::<DeliveryTrace>(), Err(error), "{text:?}");
        }
    }
}
