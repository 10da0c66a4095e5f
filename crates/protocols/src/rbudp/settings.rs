//! The row of RBUDP in the registry, and its options as users write them.

use farhaul_cc::SpecError;
use farhaul_cc::options::{OptionDoc, Settings};

use super::options::MIN_PAYLOAD;
use super::{BlastSize, Options, Rbudp, Spacing};
use crate::blast::Registered;
use crate::blast::rate::RateChoice;
use crate::blast::settings::{RATE, choice, option, rate_choice, some_number};
use farhaul_proto::Numbering;

impl Registered for Rbudp {
    const SUMMARY: &'static str = "blasts at a rate, repeated by bitmap until complete, for dedicated channels";
    const SOURCE: &'static str = "survey";
    const HEADER_LEN: usize = farhaul_wire::rbudp::HEADER_LEN;
    const NUMBERING: Numbering = Numbering::numbered(1 << 31).little_endian().in_blasts();
    const OPTIONS: &'static [OptionDoc] = &[
        RATE,
        option(
            "blast",
            "bytes of a blast: payload (all that waits, as the program) or rtt (RTT × rate, as the survey)",
            "payload",
        ),
        option("payload", "most payload bytes of a datagram, at least 64, or auto", "auto"),
        option("spacing", "bursts, or even distances between packets", "bursts"),
    ];

    fn read(settings: &Settings) -> Result<Options, SpecError> {
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

    fn rate(options: &mut Options) -> Option<&mut RateChoice> {
        Some(&mut options.rate)
    }
}
