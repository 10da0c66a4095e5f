//! Values of options that have names.

use std::ffi::OsString;

use clap::builder::{OsStringValueParser, PossibleValue, PossibleValuesParser, TypedValueParser};
use farhaul_transfer::Location;

/// A name on the command line, its meaning in the help (or nothing), and its value.
pub(crate) type Named<T> = (&'static str, &'static str, T);

/// Reads the name of one of these values.
pub(crate) fn named<T: Clone + Send + Sync + 'static>(all: &'static [Named<T>]) -> impl TypedValueParser<Value = T> {
    let possible = |(name, meaning, _): &Named<T>| match *meaning {
        "" => PossibleValue::new(*name),
        meaning => PossibleValue::new(*name).help(meaning),
    };
    let value = |typed: String| all.iter().find(|(name, ..)| *name == typed).map(|(.., value)| value.clone());
    PossibleValuesParser::new(all.iter().map(possible))
        .map(move |typed| value(typed).expect("the parser knows these names alone"))
}

/// Parses a place, which need not be UTF-8.
pub(crate) fn location() -> impl TypedValueParser<Value = Location> {
    OsStringValueParser::new().try_map(|text: OsString| Location::read(&text))
}
