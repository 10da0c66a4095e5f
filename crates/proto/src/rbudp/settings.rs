//! The options of RBUDP as users write them, and the endpoint that they configure.

use farhaul_cc::SpecError;
use farhaul_cc::options::{OptionDoc, Settings};

use super::options::MIN_PAYLOAD;
use super::{BlastSize, Options, Rbudp, Spacing};
use crate::blast::settings::{RATE, choice, option, rate_choice, some_number};
use crate::config::{Config, Entropy};
use crate::shell::endpoint::Endpoint;
use crate::shell::protocol::Carried;

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

/// The options in effect. A cap of the rate is its rate, unless the options have one.
fn options_of(config: &Config) -> Options {
    let mut options = config.rbudp.clone();
    options.rate = options.rate.or_fixed(config.max_rate);
    options
}

/// An endpoint of this protocol between Farhaul ends.
pub(crate) fn endpoint(config: Config, entropy: Entropy) -> Endpoint {
    let options = options_of(&config);
    crate::blast::endpoint::<Rbudp>(config, options, entropy)
}

/// This protocol inside secure connections.
pub(crate) fn carried(config: &Config, entropy: Entropy) -> Box<dyn Carried> {
    crate::blast::carried::<Rbudp>(options_of(config), entropy)
}
