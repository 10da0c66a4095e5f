//! The options of RBUDP as users write them.

use farhaul_cc::SpecError;
use farhaul_cc::options::{OptionDoc, Settings};

use super::options::MIN_PAYLOAD;
use super::{BlastSize, Options, Spacing};
use crate::blast::settings::{RATE, choice, option, rate_choice, some_number};

pub(super) const OPTIONS: &[OptionDoc] = &[
    RATE,
    option(
        "blast",
        "bytes of a blast: payload (all that waits, as the program) or rtt (RTT × rate, as the survey)",
        "payload",
    ),
    option("payload", "most payload bytes of a datagram, at least 64, or auto", "auto"),
    option("spacing", "bursts, or even distances between packets", "bursts"),
];

/// Reads the options.
///
/// # Errors
/// A value cannot be used.
pub(super) fn read(settings: &Settings) -> Result<Options, SpecError> {
    let blasts = [("payload", BlastSize::Payload), ("rtt", BlastSize::RoundTrip)];
    let spacings = [("bursts", Spacing::Bursts), ("even", Spacing::Even)];
    let payload = some_number(settings, "payload", u32::from(MIN_PAYLOAD)..=65_000, "from 64 to 65000, or auto")?;
    Ok(Options {
        rate: rate_choice(settings)?,
        blast: choice(settings, "blast", &blasts, "payload or rtt")?.unwrap_or_default(),
        payload: payload.and_then(|bytes| u16::try_from(bytes).ok()),
        spacing: choice(settings, "spacing", &spacings, "bursts or even")?.unwrap_or_default(),
    })
}
