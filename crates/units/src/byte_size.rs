//! Numbers of bytes, with formats for reading and display.

use core::fmt;
use core::str::FromStr;

use crate::quantity::{ParseQuantityError, split_number, write_scaled};

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteSize(pub u64);

impl fmt::Display for ByteSize {
    /// Decimal units, three to four digits: `1.00 GB`, `512 kB`, `17 B`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0 as f64;
        let (value, unit) = match self.0 {
            0..1_000 => return write!(f, "{} B", self.0),
            1_000..1_000_000 => (bytes / 1e3, "kB"),
            1_000_000..1_000_000_000 => (bytes / 1e6, "MB"),
            1_000_000_000..1_000_000_000_000 => (bytes / 1e9, "GB"),
            _ => (bytes / 1e12, "TB"),
        };
        write_scaled(f, value, unit)
    }
}

impl FromStr for ByteSize {
    type Err = ParseQuantityError;

    /// Reads `64MiB`, `4GB`, `1.5TB`, `800B`. A single letter is the binary unit (`64M` = `64MiB`), as in coreutils.
    ///
    /// A bare number is refused, because many people mean megabytes by it. Bits are refused, because sizes are bytes.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (number, unit) = split_number(text)?;
        let scale: f64 = match unit {
            "B" | "bytes" => 1.0,
            "kB" | "KB" => 1e3,
            "MB" => 1e6,
            "GB" => 1e9,
            "TB" => 1e12,
            "KiB" | "K" | "k" => 1024.0,
            "MiB" | "M" => 1_048_576.0,
            "GiB" | "G" => 1_073_741_824.0,
            "TiB" | "T" => 1_099_511_627_776.0,
            "" if number == 0.0 => 1.0,
            "" => return Err(ParseQuantityError::ambiguous(text, &[("B", "bytes"), ("MB", "megabytes")])),
            _ => return Err(ParseQuantityError::unknown_unit(text, "B, kB, MB, GB, TB, KiB, MiB, GiB, TiB")),
        };
        Ok(Self((number * scale).round() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_and_binary_units_differ() {
        assert_eq!("4GB".parse(), Ok(ByteSize(4_000_000_000)));
        assert_eq!("64MiB".parse(), Ok(ByteSize(67_108_864)));
        assert_eq!("64M".parse(), Ok(ByteSize(67_108_864)));
    }

    #[test]
    fn a_bare_number_and_bits_are_refused() {
        assert!("1000".parse::<ByteSize>().is_err());
        assert!("10mbit".parse::<ByteSize>().is_err());
    }

    #[test]
    fn prints_few_digits() {
        assert_eq!(ByteSize(1_000_000_000).to_string(), "1.00 GB");
        assert_eq!(ByteSize(17).to_string(), "17 B");
        assert_eq!(ByteSize(512_300).to_string(), "512 kB");
    }
}
