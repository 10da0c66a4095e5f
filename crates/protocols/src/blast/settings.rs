//! Options that several blast protocols share, as users write them.

use farhaul_cc::SpecError;
use farhaul_cc::options::{OptionDoc, OptionForm, Settings};
use farhaul_units::{Duration, Rate, parse_duration};

use super::rate::RateChoice;

/// The rate of a blast protocol.
pub(crate) const RATE: OptionDoc = OptionDoc {
    name: "rate",
    meaning: "rate on the wire, headers included: 500mbit, or auto to find it",
    form: OptionForm::Optional { default: "auto" },
};

/// The value of [`RATE`].
///
/// # Errors
/// It is neither `auto` nor a rate above zero.
pub(crate) fn rate_choice(settings: &Settings) -> Result<RateChoice, SpecError> {
    match settings.value(RATE.name) {
        None | Some("auto") => Ok(RateChoice::Auto),
        Some(_) => Ok(some_rate(settings, RATE.name)?.map_or(RateChoice::Auto, RateChoice::Fixed)),
    }
}

/// The rate that an option gives; `None` for `auto` or nothing.
///
/// # Errors
/// It is no rate above zero.
pub(crate) fn some_rate(settings: &Settings, name: &'static str) -> Result<Option<Rate>, SpecError> {
    if settings.value(name) == Some("auto") {
        return Ok(None);
    }
    match settings.optional(name, str::parse)? {
        Some(Rate::ZERO) => Err(settings.out_of_range(name, "above zero, or auto")),
        rate => Ok(rate),
    }
}

/// The time that an option gives; `None` for `auto` or nothing.
///
/// # Errors
/// It is no time.
pub(crate) fn some_time(settings: &Settings, name: &'static str) -> Result<Option<Duration>, SpecError> {
    if settings.value(name) == Some("auto") { Ok(None) } else { settings.optional(name, parse_duration) }
}

/// The number that an option gives; `None` for `auto` or nothing.
///
/// # Errors
/// It is no number within `range`, which `allowed` has in words.
pub(crate) fn some_number(
    settings: &Settings,
    name: &'static str,
    range: std::ops::RangeInclusive<u32>,
    allowed: &'static str,
) -> Result<Option<u32>, SpecError> {
    if settings.value(name) == Some("auto") {
        return Ok(None);
    }
    match settings.optional(name, str::parse)? {
        Some(number) if !range.contains(&number) => Err(settings.out_of_range(name, allowed)),
        number => Ok(number),
    }
}

/// The choice that an option gives; `None` for nothing.
///
/// # Errors
/// It is none of `choices`, which `allowed` has in words.
pub(crate) fn choice<T: Copy>(
    settings: &Settings,
    name: &'static str,
    choices: &[(&str, T)],
    allowed: &'static str,
) -> Result<Option<T>, SpecError> {
    let Some(value) = settings.value(name) else { return Ok(None) };
    let found = choices.iter().find(|(word, _)| *word == value);
    found.map(|(_, choice)| Some(*choice)).ok_or_else(|| settings.out_of_range(name, allowed))
}

/// An option with a default.
pub(crate) const fn option(name: &'static str, meaning: &'static str, default: &'static str) -> OptionDoc {
    OptionDoc { name, meaning, form: OptionForm::Optional { default } }
}
