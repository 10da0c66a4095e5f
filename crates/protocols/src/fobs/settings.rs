//! The options of FOBS as users write them.

use farhaul_cc::SpecError;
use farhaul_cc::options::{OptionDoc, Settings};

use super::{Options, Pick, Version};
use crate::blast::settings::{RATE, choice, option, rate_choice, some_number};

pub(super) const OPTIONS: &[OptionDoc] = &[
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

/// Reads the options.
///
/// # Errors
/// A value cannot be used.
pub(super) fn read(settings: &Settings) -> Result<Options, SpecError> {
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
