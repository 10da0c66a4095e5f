//! A controller with its options, as text: `NAME[:OPTION,…]`, where an option is `key=value` or a bare word.

use std::error::Error;
use std::fmt;
use std::str::FromStr;

use crate::Controller;
use crate::registry::{Entry, OptionDoc, OptionForm, controllers};

/// A controller and its options: `udt`, `udt:native`, `fixed:rate=500mbit`.
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
#[derive(Clone)]
pub struct Spec(Settings);

impl Spec {
    /// A new controller for one connection. `seed` determines its random draws.
    pub fn build(&self, seed: u64) -> Box<dyn Controller> {
        (self.entry().construct)(&self.0, seed).expect("the same settings were constructed when they were parsed")
    }

    /// The controller's row in the registry.
    pub fn entry(&self) -> &'static Entry {
        self.0.entry
    }
}

impl Default for Spec {
    /// `udt`.
    fn default() -> Self {
        Self(Settings { entry: &controllers()[0], given: Vec::new() })
    }
}

impl FromStr for Spec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let (name, options) = match text.split_once(':') {
            Some((name, options)) => (name, Some(options)),
            None => (text, None),
        };
        let entry = controllers()
            .iter()
            .find(|entry| entry.name == name)
            .ok_or_else(|| SpecError::UnknownController { name: name.into(), allowed: names(controllers()) })?;
        let mut settings = Settings { entry, given: Vec::new() };
        for option in options.into_iter().flat_map(|options| options.split(',')) {
            settings.add(option)?;
        }
        settings.given.sort_by_key(|(option, _)| entry.options.iter().position(|known| known.name == *option));
        (entry.construct)(&settings, 0)?;
        Ok(Self(settings))
    }
}

impl fmt::Display for Spec {
    /// In the format that [`FromStr`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Spec({self})")
    }
}

impl PartialEq for Spec {
    fn eq(&self, other: &Self) -> bool {
        self.0.entry.name == other.0.entry.name && self.0.given == other.0.given
    }
}

impl Eq for Spec {}

/// The error of parsing a [`Spec`]. The message states the accepted forms.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// The name before the colon is not in the registry.
    #[error("unknown congestion controller '{name}': choose one of {allowed}")]
    UnknownController {
        /// The given name.
        name: String,
        /// The known names.
        allowed: String,
    },
    /// The controller has no such option.
    #[error("'{controller}' has no option '{option}': it takes {allowed}")]
    UnknownOption {
        /// The controller.
        controller: &'static str,
        /// The given option.
        option: String,
        /// The known options, as they are written.
        allowed: String,
    },
    /// An option appears twice.
    #[error("option '{option}' of '{controller}' is given twice")]
    Repeated {
        /// The controller.
        controller: &'static str,
        /// The option.
        option: &'static str,
    },
    /// A flag with a value, or a value left out.
    #[error("option '{option}' of '{controller}' has the form {form}")]
    WrongForm {
        /// The controller.
        controller: &'static str,
        /// The option.
        option: &'static str,
        /// How it is written.
        form: String,
    },
    /// A required option is missing.
    #[error("'{controller}' needs the option '{option}': write {controller}:{example}")]
    Missing {
        /// The controller.
        controller: &'static str,
        /// The option.
        option: &'static str,
        /// How it is written.
        example: String,
    },
    /// A value that cannot be parsed.
    #[error("option '{option}' of '{controller}': {source}")]
    Unreadable {
        /// The controller.
        controller: &'static str,
        /// The option.
        option: &'static str,
        /// The error of parsing the value.
        source: Box<dyn Error + Send + Sync>,
    },
    /// A value that can be parsed but not used.
    #[error("option '{option}' of '{controller}' must be {allowed}, not '{value}'")]
    OutOfRange {
        /// The controller.
        controller: &'static str,
        /// The option.
        option: &'static str,
        /// The given value.
        value: String,
        /// The usable values.
        allowed: &'static str,
    },
}

/// The given options of one controller, each with a known name and in the right form.
#[derive(Clone)]
pub(crate) struct Settings {
    entry: &'static Entry,
    /// Names and values; a flag has no value.
    given: Vec<(&'static str, Option<String>)>,
}

impl Settings {
    /// Whether the flag `name` was given.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.given.iter().any(|(given, _)| *given == name)
    }

    /// The value of the required option `name`.
    pub(crate) fn required<T>(&self, name: &'static str) -> Result<T, SpecError>
    where
        T: FromStr<Err: Error + Send + Sync + 'static>,
    {
        let controller = self.entry.name;
        let value = self.value(name).ok_or_else(|| {
            let example = self.entry.options.iter().find(|known| known.name == name).map(written);
            SpecError::Missing { controller, option: name, example: example.unwrap_or_default() }
        })?;
        value.parse().map_err(|source: T::Err| SpecError::Unreadable {
            controller,
            option: name,
            source: Box::new(source),
        })
    }

    /// The value of the option `name`, parsed by `read`; `None` if it was not given.
    pub(crate) fn optional<T, E>(
        &self,
        name: &'static str,
        read: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<Option<T>, SpecError>
    where
        E: Error + Send + Sync + 'static,
    {
        let unreadable =
            |source: E| SpecError::Unreadable { controller: self.entry.name, option: name, source: Box::new(source) };
        self.value(name).map(read).transpose().map_err(unreadable)
    }

    /// The error for a value of `name` that can be parsed but not used.
    pub(crate) fn out_of_range(&self, name: &'static str, allowed: &'static str) -> SpecError {
        let value = self.value(name).unwrap_or_default().into();
        SpecError::OutOfRange { controller: self.entry.name, option: name, value, allowed }
    }

    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        self.given.iter().find(|(given, _)| *given == name).and_then(|(_, value)| value.as_deref())
    }

    /// Adds one option in its text form.
    fn add(&mut self, text: &str) -> Result<(), SpecError> {
        let controller = self.entry.name;
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (text, None),
        };
        let known = self.entry.options.iter().find(|known| known.name == name).ok_or_else(|| {
            SpecError::UnknownOption { controller, option: name.into(), allowed: allowed(self.entry.options) }
        })?;
        let option = known.name;
        if (known.form == OptionForm::Flag) == value.is_some() {
            return Err(SpecError::WrongForm { controller, option, form: written(known) });
        }
        if self.flag(option) {
            return Err(SpecError::Repeated { controller, option });
        }
        self.given.push((option, value.map(Into::into)));
        Ok(())
    }
}

impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.entry.name)?;
        for (index, (option, value)) in self.given.iter().enumerate() {
            write!(f, "{}{option}", if index == 0 { ':' } else { ',' })?;
            if let Some(value) = value {
                write!(f, "={value}")?;
            }
        }
        Ok(())
    }
}

/// How an option is written: `native`, `rate=500mbit`.
fn written(option: &OptionDoc) -> String {
    match option.form {
        OptionForm::Flag => option.name.into(),
        OptionForm::Required { example: value } | OptionForm::Optional { default: value } => {
            format!("{}={value}", option.name)
        }
    }
}

fn allowed(options: &[OptionDoc]) -> String {
    if options.is_empty() {
        return "none".into();
    }
    options.iter().map(written).collect::<Vec<_>>().join(", ")
}

fn names(entries: &[Entry]) -> String {
    entries.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_survives_parsing_and_printing() {
        for text in ["udt", "udt:native", "udt-2004:warnings=off", "fixed:rate=500mbit", "fixed:rate=2.5Gbit/s"] {
            let spec: Spec = text.parse().unwrap();
            assert_eq!(spec.to_string(), text);
            assert_eq!(spec.to_string().parse::<Spec>().unwrap(), spec);
        }
        assert_eq!(Spec::default(), "udt".parse().unwrap());
        assert_ne!(Spec::default(), "udt:native".parse().unwrap());
    }

    #[test]
    fn errors_name_what_is_allowed() {
        for (text, expected) in [
            ("", format!("unknown congestion controller '': choose one of {}", names(controllers())).as_str()),
            ("cubik", &format!("unknown congestion controller 'cubik': choose one of {}", names(controllers()))),
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
            assert_eq!(text.parse::<Spec>().unwrap_err().to_string(), expected);
        }
    }
}
