//! Numbers and reasons in words, for messages to people.

use std::borrow::Cow;
use std::time::Duration;

/// The text with each option as `option` words it: ‹rate› is `--rate` on a command line.
pub fn worded(text: &str, option: impl Fn(&str) -> String) -> Cow<'_, str> {
    if !text.contains('‹') {
        return Cow::Borrowed(text);
    }
    let mut pieces = text.split('‹');
    let mut all = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        match piece.split_once('›').filter(|(name, _)| is_option(name)) {
            Some((name, rest)) => all.extend([&*option(name), rest]),
            // It is part of a file's name.
            None => all.extend(["‹", piece]),
        }
    }
    Cow::Owned(all)
}

fn is_option(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
}

/// A time with its unit and about three digits: `12.3 s`, `250 ms`, `80 µs`.
pub fn time(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        ..1e-3 => format!("{:.0} µs", seconds * 1e6),
        ..1.0 => format!("{} ms", digits(seconds * 1e3)),
        ..120.0 => format!("{} s", digits(seconds)),
        ..7200.0 => format!("{} min {} s", time.as_secs() / 60, time.as_secs() % 60),
        _ => format!("{} h {} min", time.as_secs() / 3600, time.as_secs() / 60 % 60),
    }
}

/// Three significant digits of a number below a thousand.
pub fn digits(value: f64) -> String {
    let decimals = match value {
        ..9.995 => 2,
        ..99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

/// A share in percent: `93.4 %`, `0.012 %`.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        0.0 => "0 %".into(),
        ..0.1 => format!("{percent:.3} %"),
        ..10.0 => format!("{percent:.2} %"),
        ..99.9 => format!("{percent:.1} %"),
        _ => format!("{percent:.0} %"),
    }
}

/// A count in groups of three digits: `1 234 567`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(' ');
        }
        grouped.push(digit);
    }
    grouped
}

/// `1 file`, `2 files`.
pub fn plural(number: u64, noun: &str) -> String {
    let one = number == 1;
    let ending = if one {
        ""
    } else if noun.ends_with('y') {
        "ies"
    } else {
        "s"
    };
    let stem = if one { noun } else { noun.strip_suffix('y').unwrap_or(noun) };
    format!("{} {stem}{ending}", count(number))
}

/// The system's message for `error`, without its number.
pub fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    match error.raw_os_error() {
        Some(number) => text.trim_end_matches(&format!(" (os error {number})")).to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_worded_by_each_language_and_names_of_files_stay() {
        let text = "a ‹b› c: ‹connect-timeout› waits longer, ‹not one›, ‹x";
        assert_eq!(worded(text, |name| format!("--{name}")), "a --b c: --connect-timeout waits longer, ‹not one›, ‹x");
        assert!(matches!(worded("plain", str::to_owned), Cow::Borrowed("plain")));
    }

    #[test]
    fn times_have_a_unit_and_few_digits() {
        for (nanos, text) in [
            (80_000, "80 µs"),
            (250_000_000, "250 ms"),
            (9_500_000, "9.50 ms"),
            (12_340_000_000, "12.3 s"),
            (125_000_000_000, "2 min 5 s"),
            (7_260_000_000_000, "2 h 1 min"),
        ] {
            assert_eq!(time(Duration::from_nanos(nanos)), text);
        }
    }

    #[test]
    fn shares_and_counts_are_easy_to_read() {
        assert_eq!(percent(0.0), "0 %");
        assert_eq!(percent(0.00012), "0.012 %");
        assert_eq!(percent(0.934), "93.4 %");
        assert_eq!(percent(1.0), "100 %");
        assert_eq!(count(1_234_567), "1 234 567");
        assert_eq!(count(999), "999");
        assert_eq!((plural(1, "file"), plural(2, "directory")), ("1 file".into(), "2 directories".into()));
    }
}
