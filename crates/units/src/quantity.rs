//! Reading numbers with units.

use core::time::Duration;
use std::error::Error;
use std::fmt;

/// The error of reading a rate, a size or a time. The message states the accepted forms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseQuantityError(String);

impl ParseQuantityError {
    pub(crate) fn ambiguous(text: &str, readings: &[(&str, &str)]) -> Self {
        let readings: Vec<String> = readings.iter().map(|(unit, name)| format!("{text}{unit} ({name})")).collect();
        Self(format!("'{text}' has no unit: write {}", readings.join(" or ")))
    }

    pub(crate) fn unknown_unit(text: &str, allowed: &str) -> Self {
        Self(format!("'{text}' has an unknown unit: use one of {allowed}"))
    }

    fn not_a_number(text: &str) -> Self {
        Self(format!("'{text}' does not begin with a number"))
    }
}

impl fmt::Display for ParseQuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for ParseQuantityError {}

/// Writes a value of at least one with three or four digits, and its unit.
pub(crate) fn write_scaled(f: &mut fmt::Formatter<'_>, value: f64, unit: &str) -> fmt::Result {
    let decimals = match value {
        100.0.. => 0,
        10.0.. => 1,
        _ => 2,
    };
    write!(f, "{value:.decimals$} {unit}")
}

/// The leading number (never negative, never infinite) and the rest, trimmed.
pub(crate) fn split_number(text: &str) -> Result<(f64, &str), ParseQuantityError> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number = text[..end].parse::<f64>().map_err(|_| ParseQuantityError::not_a_number(text))?;
    Ok((number, text[end..].trim()))
}

/// Reads a time with its unit: `50ms`, `1.5s`, `200us`, `3min`. A bare number is refused, except zero.
///
/// # Errors
/// No number, no unit, or an unknown unit of time.
pub fn parse_duration(text: &str) -> Result<Duration, ParseQuantityError> {
    let (number, unit) = split_number(text)?;
    let nanos = match unit {
        "ns" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "m" | "min" => 60e9,
        "h" => 3600e9,
        "" if number == 0.0 => 1.0,
        "" => return Err(ParseQuantityError::ambiguous(text, &[("ms", "milliseconds"), ("s", "seconds")])),
        _ => return Err(ParseQuantityError::unknown_unit(text, "ns, us, ms, s, min, h")),
    };
    Ok(Duration::from_nanos((number * nanos).round() as u64))
}

/// Reads a ratio: `0.1%`, `1e-4` or `0.001`; always in 0..=1.
///
/// # Errors
/// Not a number, or outside 0..=1.
pub fn parse_ratio(text: &str) -> Result<f64, ParseQuantityError> {
    let text = text.trim();
    let (number, scale) = match text.strip_suffix('%') {
        Some(percent) => (percent.trim_end(), 100.0),
        None => (text, 1.0),
    };
    let ratio = number.parse::<f64>().map_err(|_| ParseQuantityError::not_a_number(text))? / scale;
    if (0.0..=1.0).contains(&ratio) {
        Ok(ratio)
    } else {
        Err(ParseQuantityError(format!("'{text}' is not between 0 and 100%")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_need_a_unit() {
        assert_eq!(parse_duration("50ms"), Ok(Duration::from_millis(50)));
        assert_eq!(parse_duration("1.5 s"), Ok(Duration::from_millis(1_500)));
        assert_eq!(parse_duration("0"), Ok(Duration::ZERO));
        assert!(parse_duration("50").unwrap_err().to_string().contains("50ms"));
        assert!(parse_duration("50 parsecs").is_err());
    }

    #[test]
    fn ratios_are_read_as_percent_or_plain() {
        assert_eq!(parse_ratio("0.1%"), Ok(0.001));
        assert_eq!(parse_ratio("1e-4"), Ok(0.0001));
        assert!(parse_ratio("101%").is_err());
        assert!(parse_ratio("NaN").is_err());
    }
}
