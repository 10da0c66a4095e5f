//! A row of a registry with its options, as text: `NAME[:OPTION,…]`, where an option is `key=value` or a bare word.

use std::fmt;
use std::str::FromStr;

use crate::options::{OptionDoc, Settings, SpecError};

/// One row of a registry, which users select by its name.
pub trait Row: Sized + 'static {
    /// What the registry lists, for messages: "congestion controller".
    const KIND: &'static str;

    /// All rows. The first is the default.
    fn all() -> Vec<&'static Self>;

    /// The name.
    fn name(&self) -> &'static str;

    /// The options, in the order of printing.
    fn options(&self) -> &'static [OptionDoc];

    /// Whether the values of `settings` are usable.
    ///
    /// # Errors
    /// A value is missing, cannot be parsed, or is out of its range.
    fn check(&self, settings: &Settings) -> Result<(), SpecError>;
}

/// A row of a registry and the options given to it, checked. Options are printed in the registry's order.
pub struct Selection<R: 'static> {
    row: &'static R,
    settings: Settings,
}

impl<R: Row> Selection<R> {
    /// The row.
    pub const fn row(&self) -> &'static R {
        self.row
    }

    /// The given options. [`Row::check`] has accepted them.
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }
}

impl<R: Row> Default for Selection<R> {
    /// The first row, without options.
    fn default() -> Self {
        let row = R::all()[0];
        Self { row, settings: Settings::none(row.name(), row.options()) }
    }
}

impl<R: Row> FromStr for Selection<R> {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let (name, options) = match text.split_once(':') {
            Some((name, options)) => (name, Some(options)),
            None => (text, None),
        };
        let row = R::all().into_iter().find(|row| row.name() == name).ok_or_else(|| SpecError::UnknownName {
            kind: R::KIND,
            name: name.into(),
            allowed: R::all().into_iter().map(R::name).collect::<Vec<_>>().join(", "),
        })?;
        let settings = match options {
            Some(options) => Settings::read(row.name(), row.options(), options)?,
            None => Settings::none(row.name(), row.options()),
        };
        row.check(&settings)?;
        Ok(Self { row, settings })
    }
}

impl<R> fmt::Display for Selection<R> {
    /// In the format that [`FromStr`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.settings.fmt(f)
    }
}

impl<R> Clone for Selection<R> {
    fn clone(&self) -> Self {
        Self { row: self.row, settings: self.settings.clone() }
    }
}

impl<R> PartialEq for Selection<R> {
    fn eq(&self, other: &Self) -> bool {
        self.settings == other.settings
    }
}

impl<R> Eq for Selection<R> {}
