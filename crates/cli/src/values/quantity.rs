//! Quantities of options: rates, times, shares.

use std::time::Duration;

use farhaul_units::{Rate, parse_duration, parse_ratio};

/// Parses a rate above zero.
pub(crate) fn some_rate(text: &str) -> Result<Rate, String> {
    let rate: Rate = text.parse().map_err(|error: farhaul_units::ParseQuantityError| error.to_string())?;
    if rate == Rate::ZERO { Err("a rate must be above zero".to_owned()) } else { Ok(rate) }
}

/// Parses a time above zero.
pub(crate) fn some_time(text: &str) -> Result<Duration, String> {
    let time = parse_duration(text).map_err(|error| error.to_string())?;
    if time.is_zero() { Err("a time must be above zero".to_owned()) } else { Ok(time) }
}

/// Parses seconds. The option's name has the unit, so a bare number is clear. `500ms` works as well.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(number) => Duration::try_from_secs_f64(number).map_err(|_| format!("'{text}' is no number of seconds")),
        Err(_) => parse_duration(text).map_err(|error| error.to_string()),
    }
}

/// Parses a share: `0.1%` or `1e-3`. A bare number such as `0.1` is ambiguous and refused.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    let share = parse_ratio(text);
    let number = text.trim();
    match number.parse::<f64>() {
        Ok(bare) if bare != 0.0 && !number.contains(['e', 'E']) => {
            let percent = bare * 100.0;
            Err(match share {
                Ok(_) => format!("'{number}' could be {number}% or {percent}%: write one of them"),
                Err(_) => format!("'{number}' has no unit: write {number}%"),
            })
        }
        _ => share.map_err(|error| error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_share_is_refused_with_both_readings() {
        assert_eq!((share("0.1%"), share("1e-3"), share("0")), (Ok(0.001), Ok(0.001), Ok(0.0)));
        assert!(share("0.1").unwrap_err().contains("0.1% or 10%"));
        assert!(share("1").unwrap_err().contains("1% or 100%"));
        assert!(share("5").unwrap_err().contains("5%"));
        assert!(share("101%").is_err() && share("-1%").is_err() && share("x").is_err());
    }

    #[test]
    fn rates_and_times_of_zero_are_refused() {
        assert!(some_rate("0bit").is_err() && some_rate("1kbit").is_ok());
        assert!(some_time("0s").is_err() && some_time("1ms").is_ok());
    }
}
