//! Units of numbers, and their printed form.

/// The unit of a number in base units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unit {
    /// A bare number: an index, a ratio, a count.
    #[default]
    Number,
    /// Bits per second.
    BitsPerSecond,
    /// Seconds.
    Seconds,
    /// A share of a whole, printed in per cent.
    Share,
    /// Bytes.
    Bytes,
    /// Packets.
    Packets,
}

/// A step of a unit: a factor, and the suffix of the printed number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shown {
    /// The factor from base units.
    pub factor: f64,
    /// `Mbit/s`, `ms`, `%`; empty for a bare number.
    pub suffix: &'static str,
}

const RATES: &[Shown] = &[shown(1.0, "bit/s"), shown(1e-3, "kbit/s"), shown(1e-6, "Mbit/s"), shown(1e-9, "Gbit/s")];
const TIMES: &[Shown] = &[shown(1e9, "ns"), shown(1e6, "µs"), shown(1e3, "ms"), shown(1.0, "s")];
const SIZES: &[Shown] = &[shown(1.0, "B"), shown(1e-3, "kB"), shown(1e-6, "MB"), shown(1e-9, "GB")];
const SHARES: &[Shown] = &[shown(100.0, "%")];
const PACKETS: &[Shown] = &[shown(1.0, "packets")];
const NUMBERS: &[Shown] = &[shown(1.0, "")];

const fn shown(factor: f64, suffix: &'static str) -> Shown {
    Shown { factor, suffix }
}

impl Unit {
    /// The unit of a written quantity: `100mbit` is a rate.
    #[must_use]
    pub fn of_quantity(text: &str) -> Self {
        let unit = text.trim_start_matches(|character: char| character.is_ascii_digit() || ".eE-+".contains(character));
        match unit.trim() {
            "" => Self::Number,
            "%" => Self::Share,
            "ns" | "us" | "µs" | "ms" | "s" | "m" | "min" | "h" => Self::Seconds,
            unit if unit.to_ascii_lowercase().contains("bit") || unit.ends_with("/s") => Self::BitsPerSecond,
            "B" | "bytes" | "kB" | "KB" | "MB" | "GB" | "TB" | "KiB" | "MiB" | "GiB" | "TiB" => Self::Bytes,
            _ => Self::Number,
        }
    }

    fn ladder(self) -> &'static [Shown] {
        match self {
            Self::Number => NUMBERS,
            Self::BitsPerSecond => RATES,
            Self::Seconds => TIMES,
            Self::Share => SHARES,
            Self::Bytes => SIZES,
            Self::Packets => PACKETS,
        }
    }

    /// The best step for a number of this size: Mbit/s for 940000000 bit/s.
    #[must_use]
    pub fn shown_for(self, value: f64) -> Shown {
        let ladder = self.ladder();
        // Rounded to four digits first, so that 999.99 kbit/s is 1 Mbit/s.
        let fits = |step: &&Shown| value.abs() * step.factor >= 0.99995;
        let best = ladder.iter().filter(fits).min_by(|a, b| a.factor.total_cmp(&b.factor));
        best.copied().unwrap_or_else(|| if value == 0.0 { ladder[ladder.len() / 2] } else { ladder[0] })
    }

    /// The step of this unit with this name.
    #[must_use]
    pub fn shown_as(self, suffix: &str) -> Option<Shown> {
        self.ladder().iter().find(|step| step.suffix.eq_ignore_ascii_case(suffix.trim())).copied()
    }

    /// The names of all steps of all units: `Mbit/s`, `ms`.
    #[must_use]
    pub fn steps() -> Vec<&'static str> {
        let named = [RATES, TIMES, SIZES, SHARES, PACKETS];
        named.into_iter().flatten().map(|step| step.suffix).collect()
    }

    /// Whether a step of some unit has this name, in any case.
    #[must_use]
    pub fn has_step(name: &str) -> bool {
        Self::steps().iter().any(|step| step.eq_ignore_ascii_case(name.trim()))
    }

    /// A number with its unit, to three digits: `94.1 Mbit/s`, `97.6 %`, `0.987`.
    #[must_use]
    pub fn print(self, value: f64) -> String {
        self.shown_for(value).print(value)
    }
}

impl Shown {
    /// The number in this step, to three digits, without the unit.
    #[must_use]
    pub fn number(&self, value: f64) -> String {
        three_digits(value * self.factor)
    }

    /// The number and its unit, with a non-breaking space between them.
    #[must_use]
    pub fn print(&self, value: f64) -> String {
        match self.suffix {
            "" => self.number(value),
            "packets" if self.number(value) == "1" => "1\u{a0}packet".to_owned(),
            suffix => format!("{}\u{a0}{suffix}", self.number(value)),
        }
    }
}

/// Three significant digits without trailing zeros, but all digits of the whole part: 0.987, 94.1, 12345.
#[must_use]
pub fn three_digits(value: f64) -> String {
    let size = value.abs();
    if !size.is_finite() {
        return "∞".to_owned();
    }
    // A little less, since 1e-6 is 0.0001 % only almost.
    if size >= 1e9 || (size > 0.0 && size < 0.9995e-4) {
        let text = format!("{value:.2e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let digits = digits.trim_end_matches('0').trim_end_matches('.');
        return format!("{digits}e{exponent}").replace('-', "\u{2212}");
    }
    let decimals = match size {
        size if size >= 99.95 => 0,
        size if size >= 9.995 => 1,
        size if size >= 0.9995 => 2,
        size if size >= 0.09995 => 3,
        size if size >= 0.009995 => 4,
        size if size >= 0.0009995 => 5,
        _ => 6,
    };
    let text = format!("{value:.decimals$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    // A minus sign as wide as a plus, and none before zero.
    if text == "-0" { "0".to_owned() } else { text.replace('-', "\u{2212}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_printed_in_the_step_that_reads_best() {
        assert_eq!(Unit::BitsPerSecond.print(940e6), "940\u{a0}Mbit/s");
        assert_eq!(Unit::BitsPerSecond.print(999_999.9), "1\u{a0}Mbit/s");
        assert_eq!(Unit::Seconds.print(1e-5), "10\u{a0}µs");
        assert_eq!(Unit::Seconds.print(0.0125), "12.5\u{a0}ms");
        assert_eq!(Unit::Share.print(0.976), "97.6\u{a0}%");
        assert_eq!(Unit::Bytes.print(1.5e6), "1.5\u{a0}MB");
        assert_eq!(Unit::Number.print(0.98765), "0.988");
        assert_eq!(Unit::Share.print(-0.0312), "\u{2212}3.12\u{a0}%");
        assert_eq!(Unit::Number.print(0.0), "0");
        assert_eq!(Unit::Packets.print(1.0), "1\u{a0}packet");
        assert_eq!(Unit::Share.print(1e-6), "0.0001\u{a0}%");
        assert_eq!(Unit::Number.print(1e-5), "1e\u{2212}5");
        assert_eq!(Unit::Number.print(1.25e10), "1.25e10");
    }

    #[test]
    fn quantities_have_units() {
        assert_eq!(Unit::of_quantity("100mbit"), Unit::BitsPerSecond);
        assert_eq!(Unit::of_quantity("0.1ms"), Unit::Seconds);
        assert_eq!(Unit::of_quantity("1.5MB"), Unit::Bytes);
        assert_eq!(Unit::of_quantity("1e-4"), Unit::Number);
        assert_eq!(Unit::of_quantity("red"), Unit::Number);
    }
}
