//! Mistakes in values, before their file and line are known.

use std::fmt::Display;

use serde::de::{self, Expected, Unexpected};

use super::{Source, listed, nearest};
use crate::error::ScenarioError;

/// A mistake in a value, in terms of the scenario.
#[derive(Debug, thiserror::Error)]
pub(super) enum Mistake {
    /// A table lacks this key.
    #[error("`{0}` is missing")]
    Missing(&'static str),
    /// Another mistake, and its place once it is known.
    #[error("{1}")]
    Wrong(Option<usize>, String),
}

impl Mistake {
    /// A mistake at a place.
    pub(super) fn at(place: usize, message: String) -> Self {
        Self::Wrong(Some(place), message)
    }

    /// Adds the place, unless it is known already. `describe` adds it in words.
    pub(super) fn placed(self, place: usize, describe: impl FnOnce(String) -> String) -> Self {
        match self {
            Self::Wrong(None, message) => Self::at(place, describe(message)),
            other => other,
        }
    }

    /// An unknown key of a table.
    pub(super) fn unknown(place: usize, key: &str, table: &str, allowed: &[&str]) -> Self {
        let mut allowed = allowed.to_vec();
        allowed.sort_unstable();
        allowed.dedup();
        let meant = nearest(key, allowed.iter().copied()).map_or(String::new(), |name| format!(" (`{name}`?)"));
        Self::at(place, format!("unknown key `{key}`{meant} in {table}: allowed are {}", listed(&allowed)))
    }

    /// The mistake in its file.
    pub(super) fn of(self, source: &Source) -> ScenarioError {
        let place = if let Self::Wrong(Some(place), _) = self { place } else { 0 };
        source.error_on(source.line(place), self.to_string())
    }
}

impl de::Error for Mistake {
    fn custom<T: Display>(message: T) -> Self {
        Self::Wrong(None, message.to_string())
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let found = match found {
            Unexpected::Str(_) => "a text",
            Unexpected::Signed(_) | Unexpected::Float(_) => "a number",
            Unexpected::Bool(_) => "true or false",
            Unexpected::Seq => "a list",
            Unexpected::Map => "a table",
            _ => "something else",
        };
        let expected = match expected.to_string().as_str() {
            "a string" => "a text in quotes".to_owned(),
            "a boolean" => "true or false".to_owned(),
            "a map" => "a table of keys and values".to_owned(),
            other => other.to_owned(),
        };
        Self::custom(format!("expected {expected}, found {found}"))
    }

    fn unknown_variant(word: &str, allowed: &'static [&'static str]) -> Self {
        Self::custom(format!("'{word}' is not one of {}", listed(allowed)))
    }

    fn missing_field(key: &'static str) -> Self {
        Self::Missing(key)
    }
}
