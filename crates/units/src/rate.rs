//! Bits per second.

use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use crate::quantity::{ParseQuantityError, split_number, write_scaled};

/// A bit rate. Link rates and goodput are in bits per second; sizes are in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

const NANOS_PER_SECOND: u128 = 1_000_000_000;

impl Rate {
    /// Zero bits per second.
    pub const ZERO: Self = Self(0);

    /// `bits` per second.
    pub const fn from_bits_per_second(bits: u64) -> Self {
        Self(bits)
    }

    /// `megabits` (10^6 bits) per second.
    pub const fn from_megabits_per_second(megabits: u64) -> Self {
        Self(megabits * 1_000_000)
    }

    /// The rate of `bytes` in `time`; `None` if `time` is zero.
    pub fn from_bytes_in(bytes: u64, time: Duration) -> Option<Self> {
        let nanos = time.as_nanos();
        if nanos == 0 {
            return None;
        }
        let bits = u128::from(bytes) * 8 * NANOS_PER_SECOND / nanos;
        Some(Self(u64::try_from(bits).unwrap_or(u64::MAX)))
    }

    /// Bits per second.
    pub const fn bits_per_second(self) -> u64 {
        self.0
    }

    /// How long `bytes` bytes take at this rate, rounded up to a nanosecond. [`Duration::MAX`] at rate zero.
    pub fn time_for(self, bytes: u64) -> Duration {
        if self.0 == 0 {
            return Duration::MAX;
        }
        let nanos = (u128::from(bytes) * 8 * NANOS_PER_SECOND).div_ceil(u128::from(self.0));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Whole bytes that pass in `time`.
    pub fn bytes_in(self, time: Duration) -> u64 {
        let bytes = u128::from(self.0) * time.as_nanos() / (8 * NANOS_PER_SECOND);
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }
}

impl fmt::Display for Rate {
    /// Three to four significant digits with a unit: `941 Mbit/s`, `19.2 Gbit/s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = self.0 as f64;
        let (value, unit) = match self.0 {
            0..1_000 => return write!(f, "{} bit/s", self.0),
            1_000..1_000_000 => (bits / 1e3, "kbit/s"),
            1_000_000..1_000_000_000 => (bits / 1e6, "Mbit/s"),
            _ => (bits / 1e9, "Gbit/s"),
        };
        write_scaled(f, value, unit)
    }
}

impl FromStr for Rate {
    type Err = ParseQuantityError;

    /// Reads `10gbit`, `950mbit`, `2.5Gbit/s`, `64kbit`, `800bit`, and as iperf3 does `50M`, `1g`. Units such as `MB/s` are bytes and count
    /// eightfold.
    ///
    /// A bare number is refused.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (number, unit) = split_number(text)?;
        let unit = unit.trim_end_matches("/s").trim_end_matches("ps");
        let bits = match unit.to_ascii_lowercase().as_str() {
            "bit" | "bits" => 1.0,
            "k" | "kbit" => 1e3,
            "m" | "mbit" => 1e6,
            "g" | "gbit" => 1e9,
            "t" | "tbit" => 1e12,
            _ => match unit {
                "kb" | "Kb" => 1e3,
                "Mb" => 1e6,
                "Gb" => 1e9,
                "kB" | "KB" => 8e3,
                "MB" => 8e6,
                "GB" => 8e9,
                "" => return Err(ParseQuantityError::ambiguous(text, &[("mbit", "megabits"), ("MB/s", "megabytes")])),
                _ => return Err(ParseQuantityError::unknown_unit(text, "bit, kbit, mbit, gbit, kB/s, MB/s, GB/s")),
            },
        };
        Ok(Self((number * bits).round() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_packet_lasts_twelve_microseconds_at_a_gigabit() {
        let gigabit = Rate::from_megabits_per_second(1_000);
        assert_eq!(gigabit.time_for(1_500), Duration::from_micros(12));
        assert_eq!(gigabit.bytes_in(Duration::from_micros(12)), 1_500);
    }

    #[test]
    fn at_rate_zero_a_transfer_takes_for_ever() {
        assert_eq!(Rate::ZERO.time_for(1), Duration::MAX);
    }

    #[test]
    fn parses_the_usual_spellings() {
        for (text, bits) in [
            ("10gbit", 10_000_000_000),
            ("950mbit", 950_000_000),
            ("2.5Gbit/s", 2_500_000_000),
            ("64kbit", 64_000),
            ("1MB/s", 8_000_000),
            ("50M", 50_000_000),
            ("1g", 1_000_000_000),
            ("300Mbps", 300_000_000),
        ] {
            assert_eq!(text.parse::<Rate>(), Ok(Rate(bits)), "{text}");
        }
    }

    #[test]
    fn refuses_a_bare_number_and_names_both_readings() {
        let message = "100".parse::<Rate>().unwrap_err().to_string();
        assert!(message.contains("100mbit") && message.contains("100MB/s"), "{message}");
    }

    #[test]
    fn prints_a_unit_and_few_digits() {
        assert_eq!(Rate(941_000_000).to_string(), "941 Mbit/s");
        assert_eq!(Rate(19_240_000_000).to_string(), "19.2 Gbit/s");
        assert_eq!(Rate(12).to_string(), "12 bit/s");
    }
}
