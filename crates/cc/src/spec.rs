//! A controller with its options, as text.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::controller::Controller;
use crate::entry::{Entry, Made, Revision, added};
use crate::options::SpecError;
use crate::registration::{RegistrationError, register_made};
use crate::selection::Selection;

/// A controller and its options: `union`, `udt-2007:release-3.3`, `fixed:rate=500mbit`.
///
/// A `Spec` is checked when it is parsed, so that [`build`](Spec::build) cannot fail. Options are printed in the
/// registry's order.
///
/// ```
/// let spec: farhaul_cc::Spec = "fixed:rate=500mbit".parse()?;
/// assert_eq!(spec.build(0).name(), "fixed:rate=500mbit");
/// assert!("fixed".parse::<farhaul_cc::Spec>().unwrap_err().to_string().contains("fixed:rate=500mbit"));
/// # Ok::<(), farhaul_cc::SpecError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Spec(Choice);

#[derive(Clone, PartialEq, Eq)]
enum Choice {
    Registered(Selection<Entry>),
    Made(Made),
}

impl Spec {
    /// A controller of the program, without options. `make` makes one for each connection from a seed for its random draws.
    /// `name` is what reports say. It can be parsed only once it is [registered](Self::register).
    pub fn made(name: &str, make: impl Fn(u64) -> Box<dyn Controller> + Send + Sync + 'static) -> Self {
        Self(Choice::Made(Made { name: name.into(), make: Arc::new(make), revision: None }))
    }

    /// A text that changes whenever the code of a [made](Self::made) controller does. Without it the code is taken to be in the
    /// program's file.
    #[must_use]
    pub fn revised(mut self, revision: &str) -> Self {
        if let Choice::Made(made) = &mut self.0 {
            made.revision = Some(revision.into());
        }
        self
    }

    /// Gives the name of a [made](Self::made) controller to it, so that this process can parse it. The one that had the name by
    /// this before is replaced; specs that were parsed earlier keep it.
    ///
    /// # Errors
    /// The name is not usable, or belongs to a controller that stays: a built-in one, or a
    /// [`Registration`](crate::Registration).
    pub fn register(&self) -> Result<(), RegistrationError> {
        match &self.0 {
            Choice::Registered(selection) => Err(RegistrationError::Taken(selection.row().name.into())),
            Choice::Made(made) => register_made(made.clone()),
        }
    }

    /// A new controller for one connection. `seed` determines its random draws.
    pub fn build(&self, seed: u64) -> Box<dyn Controller> {
        match &self.0 {
            Choice::Registered(selection) => (selection.row().construct)(selection.settings(), seed)
                .expect("the same settings were constructed when they were parsed"),
            Choice::Made(made) => (made.make)(seed),
        }
    }

    /// Where its code is.
    pub fn revision(&self) -> Revision<'_> {
        match &self.0 {
            Choice::Registered(selection) => selection.row().revision,
            Choice::Made(made) => made.revision.as_deref().map_or(Revision::Program, Revision::Text),
        }
    }

    /// Whether other programs may know it by its name.
    pub const fn is_registered(&self) -> bool {
        matches!(self.0, Choice::Registered(_))
    }
}

impl Default for Spec {
    /// The first row of the registry.
    fn default() -> Self {
        Self(Choice::Registered(Selection::default()))
    }
}

impl FromStr for Spec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        if let Some(made) = added().made.get(text) {
            return Ok(Self(Choice::Made(made.clone())));
        }
        text.parse().map(|selection| Self(Choice::Registered(selection))).map_err(|error| with_made_names(error, text))
    }
}

/// The error of `text`, which lists made controllers as well.
fn with_made_names(error: SpecError, text: &str) -> SpecError {
    let SpecError::UnknownName { kind, name, allowed } = error else { return error };
    let names: Vec<String> = added().made.keys().cloned().collect();
    // One of them with an option: they have none.
    let name = if names.contains(&name) { text.to_owned() } else { name };
    let allowed = std::iter::once(allowed).chain(names).collect::<Vec<_>>().join(", ");
    SpecError::UnknownName { kind, name, allowed }
}

impl fmt::Display for Spec {
    /// In the format that [`FromStr`] reads, unless it is [made](Spec::made) and not registered.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Choice::Registered(selection) => selection.fmt(f),
            Choice::Made(made) => f.write_str(&made.name),
        }
    }
}

impl fmt::Debug for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Spec({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::BUILT_IN;

    /// The names of the built-in ones. Other tests of this process add more.
    fn names() -> String {
        BUILT_IN.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn text_survives_parsing_and_printing() {
        for text in
            ["union", "udt", "udt:native", "udt-2004:warnings=off", "fixed:rate=500mbit", "fixed:rate=2.5Gbit/s"]
        {
            let spec: Spec = text.parse().unwrap();
            assert_eq!(spec.to_string(), text);
            assert_eq!(spec.to_string().parse::<Spec>().unwrap(), spec);
        }
        assert_eq!(Spec::default(), "union".parse().unwrap());
        assert_ne!(Spec::default(), "udt".parse().unwrap());
    }

    #[test]
    fn a_controller_of_the_program_is_made_anew_for_each_connection() {
        let spec = Spec::made("mine", |seed| Spec::from_str("reno").unwrap().build(seed));
        assert_eq!((spec.to_string(), spec.is_registered()), ("mine".to_owned(), false));
        assert_eq!(spec.build(1).name(), "reno");
        assert_eq!(spec, spec.clone());
        assert_ne!(spec, Spec::made("mine", |seed| Spec::default().build(seed)));
    }

    #[test]
    fn errors_name_what_is_allowed() {
        for (text, expected) in [
            ("", format!("unknown congestion controller '': choose one of {}", names()).as_str()),
            ("cubik", &format!("unknown congestion controller 'cubik': choose one of {}", names())),
            ("udt:", "'udt' has no option '': it takes native"),
            ("udt:naive", "'udt' has no option 'naive': it takes native"),
            ("udt:native=yes", "option 'native' of 'udt' has the form native"),
            ("udt:native,native", "option 'native' of 'udt' is given twice"),
            ("udt-2004:warnings=no", "option 'warnings' of 'udt-2004' must be on or off, not 'no'"),
            (
                "udt-2004:capacity-factor=0",
                "option 'capacity-factor' of 'udt-2004' must be from 0.000001 to 1000000, not '0'",
            ),
            (
                "udt-2004:missed-warnings=1.5",
                "option 'missed-warnings' of 'udt-2004' must be a probability from 0 to 1, not '1.5'",
            ),
            ("fixed", "'fixed' needs the option 'rate': write fixed:rate=500mbit"),
            ("fixed:rate", "option 'rate' of 'fixed' has the form rate=500mbit"),
            ("udt-2011:only=rtt", "option 'only' of 'udt-2011' must be rate, window or both, not 'rtt'"),
            ("udt-2011:beta=x", "option 'beta' of 'udt-2011': invalid float literal"),
            ("udt-2011:beta=1", "option 'beta' of 'udt-2011' must be alpha to 1000 packets, not '1'"),
            ("udt-2011:alpha=nan", "option 'alpha' of 'udt-2011' must be 0 to 1000 packets, not 'nan'"),
            ("udt-2011:interval=2s", "option 'interval' of 'udt-2011' must be 0ms to 1s, not '2s'"),
            ("udt-2011:speed=light", "option 'speed' of 'udt-2011' must be arrival or delivery, not 'light'"),
            ("udt-2011:only=rate,alpha=1", "option 'alpha' of 'udt-2011' must be left out with only=rate, not '1'"),
            ("fixed:rate=0mbit", "option 'rate' of 'fixed' must be above zero, not '0mbit'"),
            (
                "fixed:rate=100",
                "option 'rate' of 'fixed': '100' has no unit: write 100mbit (megabits) or 100MB/s (megabytes)",
            ),
        ] {
            let error = text.parse::<Spec>().unwrap_err().to_string();
            let added = error.strip_prefix(expected).unwrap_or_else(|| panic!("{error}, not {expected}"));
            assert!(added.is_empty() || added.starts_with(", ") && error.starts_with("unknown"), "{error}");
        }
    }
}
