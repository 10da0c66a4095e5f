//! The row of SABUL in the registry, and its options as users write them.

use farhaul_cc::SpecError;
use farhaul_cc::options::{OptionDoc, Settings};

use super::{Options, Repairs, Sabul, Start};
use crate::blast::Registered;
use crate::blast::rate::RateChoice;
use crate::blast::settings::{choice, option, some_number, some_rate, some_time};
use farhaul_proto::Numbering;

impl Registered for Sabul {
    const SUMMARY: &'static str = "data at a rate, reports by TCP: the predecessor of UDT";
    const SOURCE: &'static str = "sabul-tr-2002, sabul-rate-2002";
    const HEADER_LEN: usize = farhaul_wire::sabul::HEADER_LEN;
    const NUMBERING: Numbering = Numbering::numbered(100_000_000);
    const OPTIONS: &'static [OptionDoc] = &[
        option("generation", "law of rate control: 2.1, 2.0, 2002 or 0.1", "2.1"),
        option("start", "bounded, or original: 1.17 Gbit/s at once, as the program", "bounded"),
        option("repairs", "unlimited, or original: 366 losses per report, as the program", "unlimited"),
        option("first-rate", "first rate: 100mbit, or auto for that of the start", "auto"),
        option("fastest-rate", "fastest rate, or auto for that of the generation", "auto"),
        option("slowest-rate", "slowest rate, or auto for that of the generation", "auto"),
        option("window", "packets that may be unacknowledged, at most 1048576", "25600"),
        option("syn", "time between two SYN records, or auto for that of the generation", "auto"),
    ];

    fn read(settings: &Settings) -> Result<Options, SpecError> {
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

    fn rate(_options: &mut Options) -> Option<&mut RateChoice> {
        None
    }
}
