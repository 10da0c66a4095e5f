//! The options of SABUL as users write them.

use farhaul_cc::SpecError;
use farhaul_cc::options::{OptionDoc, Settings};

use super::{Options, Repairs, Start};
use crate::blast::settings::{choice, option, some_number, some_rate, some_time};

pub(super) const OPTIONS: &[OptionDoc] = &[
    option("generation", "law of rate control: 2.1, 2.0, 2002 or 0.1", "2.1"),
    option("start", "bounded, or original: 1.17 Gbit/s at once, as the program", "bounded"),
    option("repairs", "unlimited, or original: 366 losses per report, as the program", "unlimited"),
    option("first-rate", "first rate: 100mbit, or auto for that of the start", "auto"),
    option("fastest-rate", "fastest rate, or auto for that of the generation", "auto"),
    option("slowest-rate", "slowest rate, or auto for that of the generation", "auto"),
    option("window", "packets that may be unacknowledged, at most 1048576", "25600"),
    option("syn", "time between two SYN records, or auto for that of the generation", "auto"),
];

/// Reads the options.
///
/// # Errors
/// A value cannot be used.
pub(super) fn read(settings: &Settings) -> Result<Options, SpecError> {
    let starts = [("bounded", Start::Bounded), ("original", Start::Original)];
    let repairs = [("unlimited", Repairs::Unlimited), ("original", Repairs::Original)];
    let default = Options::default();
    let window = some_number(settings, "window", 1..=1 << 20, "from 1 to 1048576")?;
    let generation = match settings.value("generation") {
        None => default.generation,
        Some(text) => text.parse().map_err(|_| settings.out_of_range("generation", "2.1, 2.0, 2002 or 0.1"))?,
    };
    Ok(Options {
        generation,
        start: choice(settings, "start", &starts, "bounded or original")?.unwrap_or_default(),
        repairs: choice(settings, "repairs", &repairs, "unlimited or original")?.unwrap_or_default(),
        first_rate: some_rate(settings, "first-rate")?,
        fastest_rate: some_rate(settings, "fastest-rate")?,
        slowest_rate: some_rate(settings, "slowest-rate")?,
        window: window.unwrap_or(default.window),
        syn: some_time(settings, "syn")?,
    })
}
