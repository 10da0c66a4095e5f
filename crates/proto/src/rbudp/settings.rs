//! The options of RBUDP as users write them, and the endpoint that they configure.

use farhaul_cc::SpecError;
use farhaul_cc::options::{OptionDoc, Settings};

use super::options::MIN_PAYLOAD;
use super::{BlastSize, Options, Rbudp, Spacing};
use crate::blast::settings::{RATE, choice, option, rate_choice, some_number};
use crate::config::{Config, Entropy};
use crate::shell::endpoint::Endpoint;

pub(crate) const OPTIONS: &[OptionDoc] = &[
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
pub(crate) fn read(settings: &Settings) -> Result<Options, SpecError> {
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

/// An endpoint of this protocol between Farhaul ends. A cap of the rate is its rate, unless the options have one.
pub(crate) fn endpoint(config: Config, entropy: Entropy) -> Endpoint {
    let options = config.rbudp.clone();
    let mut options = options;
    options.rate = options.rate.or_fixed(config.max_rate);
    crate::blast::endpoint::<Rbudp>(config, options, entropy)
}
