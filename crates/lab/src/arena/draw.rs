//! Random parameters, and numbers with few digits, so that a scenario's text holds exactly the numbers of the goals.

use farhaul_units::Rng;

/// Draws the parameters of one cell.
#[derive(Clone, Debug)]
pub(super) struct Draw(Rng);

impl Draw {
    /// The generator of a cell: a function of the arena's seed, the round and the family's number, and of nothing else.
    /// So no choice of families or number of cells changes a cell.
    pub(super) fn of_cell(seed: u64, round: usize, family: u64) -> Self {
        let place = Rng::new(seed).next_u64().wrapping_add(round as u64);
        Self(Rng::new(Rng::new(place).next_u64().wrapping_add(family)))
    }

    /// The generator of the order of families in a round.
    pub(super) fn of_order(seed: u64, round: usize) -> Self {
        let mut rng = Rng::new(!seed);
        Self(Rng::new(rng.next_u64().wrapping_add(round as u64)))
    }

    /// Uniform between two numbers.
    pub(super) fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.0.unit()
    }

    /// Uniform on a logarithmic scale between two numbers above zero.
    pub(super) fn log_between(&mut self, low: f64, high: f64) -> f64 {
        libm::exp(self.between(libm::log(low), libm::log(high)))
    }

    /// A whole number, both ends included.
    pub(super) fn whole(&mut self, low: u64, high: u64) -> u64 {
        low + self.0.below(high - low + 1)
    }

    /// True with `probability`.
    pub(super) fn chance(&mut self, probability: f64) -> bool {
        self.0.chance(probability)
    }

    /// One of several, all equally likely. There must be one.
    pub(super) fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.0.below(choices.len() as u64) as usize]
    }

    /// The seed of a simulation: small enough to be written in TOML and read by people.
    pub(super) fn seed(&mut self) -> u64 {
        self.0.below(1_000_000)
    }

    /// A random order, by Fisher and Yates.
    pub(super) fn shuffle<T>(&mut self, list: &mut [T]) {
        for place in (1..list.len()).rev() {
            list.swap(place, self.whole(0, place as u64) as usize);
        }
    }
}

/// The number rounded to three significant digits.
pub(super) fn rounded(value: f64) -> f64 {
    format!("{value:.2e}").parse().unwrap_or(value)
}

/// A number above zero with three significant digits, without an exponent and without zeros at its end.
pub(super) fn digits(value: f64) -> String {
    let exponent = libm::log10(rounded(value).max(1e-12)).floor();
    let decimals = (2.0 - exponent).clamp(0.0, 12.0) as usize;
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// A rate in a scenario, exact for rates of three digits: `93.2mbit`.
pub(super) fn rate(bits: f64) -> String {
    let (unit, name) = scale(bits);
    format!("{}{}bit", digits(bits / unit), name.to_ascii_lowercase())
}

/// A rate in a label: `93.2M`.
pub(super) fn short(bits: f64) -> String {
    let (unit, name) = scale(bits);
    format!("{}{name}", digits(bits / unit))
}

fn scale(bits: f64) -> (f64, &'static str) {
    match bits {
        bits if bits >= 1e9 => (1e9, "G"),
        bits if bits >= 1e6 => (1e6, "M"),
        _ => (1e3, "k"),
    }
}

/// A share in a label: `0.12%`.
pub(super) fn percent(share: f64) -> String {
    format!("{}%", digits(100.0 * share))
}

/// A time in a scenario and in labels, in milliseconds: `12.5ms`.
pub(super) fn millis(seconds: f64) -> String {
    format!("{}ms", digits(seconds * 1e3))
}

/// A time in a scenario: `24s`.
pub(super) fn seconds(seconds: f64) -> String {
    format!("{}s", digits(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits() {
        let texts = [0.000_123_4, 0.05, 1.0, 9.999, 12.34, 100.0, 123.4, 99_950.0].map(digits);
        assert_eq!(texts, ["0.000123", "0.05", "1", "10", "12.3", "100", "123", "99950"]);
        assert_eq!([93_240_000.0, 1e9, 2.5e9, 500e3, 999_900.0].map(rounded), [93.2e6, 1e9, 2.5e9, 500e3, 1e6]);
        assert_eq!([93.2e6, 2.5e9, 500e3].map(rate), ["93.2mbit", "2.5gbit", "500kbit"]);
        assert_eq!((short(1e9).as_str(), millis(0.0125).as_str(), seconds(24.0).as_str()), ("1G", "12.5ms", "24s"));
    }

    #[test]
    fn draws_stay_between_their_ends() {
        let mut draw = Draw::of_cell(1, 0, 0);
        for _ in 0..1_000 {
            assert!((2.0..3.0).contains(&draw.between(2.0, 3.0)));
            assert!((1e6..=1e9).contains(&draw.log_between(1e6, 1e9)));
            assert!((2..=4).contains(&draw.whole(2, 4)));
        }
        let mut list = [1, 2, 3, 4, 5];
        draw.shuffle(&mut list);
        list.sort_unstable();
        assert_eq!(list, [1, 2, 3, 4, 5]);
    }
}
