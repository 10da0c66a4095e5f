//! The row of Tsunami in the registry, and its options as users write them.

use farhaul_cc::SpecError;
use farhaul_cc::options::{OptionDoc, Settings};

use super::{Options, Tsunami};
use crate::blast::Registered;
use crate::blast::rate::RateChoice;
use crate::blast::settings::{RATE, option, rate_choice, some_number};
use farhaul_proto::Numbering;

impl Registered for Tsunami {
    const SUMMARY: &'static str =
        "datagrams at a rate that the receiver's error rate slows down, for dedicated channels";
    const SOURCE: &'static str = "survey";
    const HEADER_LEN: usize = farhaul_wire::tsunami::HEADER_LEN;
    const NUMBERING: Numbering = Numbering::numbered(1 << 31);
    const OPTIONS: &'static [OptionDoc] = &[
        RATE,
        option("error-threshold", "error rate above which the sender slows down, thousandths of a percent", "7500"),
        option("history", "weight of earlier reports in the error rate, percent", "25"),
        option("gaps", "on: one request per gap, no restarts; off: one per block and restarts, as the program", "on"),
        option("prompt", "on: ask again after an RTT; off: after 350 ms, as the program", "on"),
        option("exact", "on: the rate counts headers; off: whole microseconds without headers, as the program", "on"),
    ];

    fn read(settings: &Settings) -> Result<Options, SpecError> {
        let default = Options::default();
        let threshold = some_number(settings, "error-threshold", 0..=99_999, "from 0 to 99999")?;
        let history = some_number(settings, "history", 0..=100, "from 0 to 100")?;
        Ok(Options {
            rate: rate_choice(settings)?,
            error_threshold: threshold.unwrap_or(default.error_threshold),
            history: history.and_then(|percent| u8::try_from(percent).ok()).unwrap_or(default.history),
            gaps: settings.switch("gaps")?.unwrap_or(default.gaps),
            prompt: settings.switch("prompt")?.unwrap_or(default.prompt),
            exact: settings.switch("exact")?.unwrap_or(default.exact),
            ..default
        })
    }

    fn rate(options: &mut Options) -> Option<&mut RateChoice> {
        Some(&mut options.rate)
    }
}
