//! The row of FOBS in the registry, and its options as users write them.

use farhaul_cc::SpecError;
use farhaul_cc::options::{OptionDoc, Settings};

use super::{Fobs, Options, Pick, Version};
use crate::blast::Registered;
use crate::blast::rate::RateChoice;
use crate::blast::settings::{RATE, choice, option, rate_choice, some_number};
use farhaul_proto::Numbering;

impl Registered for Fobs {
    const SUMMARY: &'static str = "objects of 100 MB in segments, each answered by a bitmap, for comparison";
    const SOURCE: &'static str = "ornl";
    const HEADER_LEN: usize = farhaul_wire::fobs::HEADER_LEN;
    const NUMBERING: Numbering = Numbering::numbered(1 << 31);
    const OPTIONS: &'static [OptionDoc] = &[
        RATE,
        option("version", "rules: segments, or greedy (the first version)", "segments"),
        option("object", "bytes of an object, at most 1073741824", "100000000"),
        option("segment", "packets per report of losses, or auto", "auto"),
        option("batch", "packets that leave together, or auto", "auto"),
        option("tolerance", "share of lost packets that changes nothing, 0 to 1", "0.01"),
        option("pick", "next packet: circular or missing-first", "circular"),
        option("ordered", "off on both sides: no byte before its object is complete", "on"),
        option("overlap", "on: the next object while the last one is repaired", "on"),
    ];

    fn read(settings: &Settings) -> Result<Options, SpecError> {
        let versions = [("segments", Version::Segments), ("greedy", Version::Greedy)];
        let picks = [("circular", Pick::Circular), ("missing-first", Pick::MissingFirst)];
        let default = Options::default();
        let tolerance = settings.optional("tolerance", str::parse::<f64>)?.unwrap_or(default.tolerance);
        if !(0.0..=1.0).contains(&tolerance) {
            return Err(settings.out_of_range("tolerance", "from 0 to 1"));
        }
        Ok(Options {
            rate: rate_choice(settings)?,
            version: choice(settings, "version", &versions, "segments or greedy")?.unwrap_or(default.version),
            object: some_number(settings, "object", 1..=1 << 30, "from 1 to 1073741824")?.unwrap_or(default.object),
            segment: some_number(settings, "segment", 1..=1 << 24, "at least 1, or auto")?,
            batch: some_number(settings, "batch", 1..=64, "from 1 to 64, or auto")?,
            tolerance,
            pick: choice(settings, "pick", &picks, "circular or missing-first")?.unwrap_or_default(),
            ordered: settings.switch("ordered")?.unwrap_or(default.ordered),
            overlap: settings.switch("overlap")?.unwrap_or(default.overlap),
        })
    }

    fn rate(options: &mut Options) -> Option<&mut RateChoice> {
        Some(&mut options.rate)
    }
}
