//! The row of Hurricane in the registry, and its options as users write them.

use farhaul_cc::SpecError;
use farhaul_cc::options::{OptionDoc, OptionForm, Settings};

use super::{Hurricane, Options};
use crate::blast::Registered;
use crate::blast::rate::RateChoice;
use crate::blast::settings::{option, rate_choice, some_number, some_rate, some_time};
use farhaul_proto::Numbering;

impl Registered for Hurricane {
    const SUMMARY: &'static str = "bursts at a fixed rate that yield to nobody, for dedicated channels";
    const SOURCE: &'static str = "ornl";
    const HEADER_LEN: usize = farhaul_wire::hurricane::HEADER_LEN;
    const NUMBERING: Numbering = Numbering::numbered(1 << 31);
    const OPTIONS: &'static [OptionDoc] = &[
        option("rate", "rate of the payload: 500mbit, or auto to find it", "auto"),
        option("window", "W_c: datagrams of a burst, or auto", "auto"),
        option("sleep", "T_s: time after a burst; together with window it sets the rate", "auto"),
        option(
            "interface",
            "speed of this host's interface, which bounds the rate, or auto: as the host knows it",
            "auto",
        ),
        OptionDoc {
            name: "spaced",
            meaning: "spread the datagrams of a burst evenly over the sleep",
            form: OptionForm::Flag,
        },
        option("trigger", "missing datagrams that cause a request, or auto", "auto"),
        option("trigger-window", "time in which they are counted, RTTs, or auto", "auto"),
    ];

    fn read(settings: &Settings) -> Result<Options, SpecError> {
        let trigger_window = match settings.value("trigger-window") {
            None | Some("auto") => None,
            Some(_) => settings.optional("trigger-window", str::parse::<f64>)?,
        };
        if trigger_window.is_some_and(|round_trips| !(0.1..=1e3).contains(&round_trips)) {
            return Err(settings.out_of_range("trigger-window", "from 0.1 to 1000, or auto"));
        }
        Ok(Options {
            rate: rate_choice(settings)?,
            window: some_number(settings, "window", 1..=65_535, "from 1 to 65535, or auto")?,
            sleep: some_time(settings, "sleep")?,
            interface: some_rate(settings, "interface")?,
            spaced: settings.flag("spaced"),
            trigger: some_number(settings, "trigger", 1..=1 << 24, "at least 1, or auto")?,
            trigger_window,
        })
    }

    fn rate(options: &mut Options) -> Option<&mut RateChoice> {
        Some(&mut options.rate)
    }

    fn finds_rate(options: &Options) -> bool {
        options.finds_rate()
    }
}
