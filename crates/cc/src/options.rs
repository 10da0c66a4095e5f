//! Options of whatever users select by name: their documentation, their given values, their errors.
//!
//! Registries of other crates use these types as well, so that options have one form everywhere.

use std::error::Error;
use std::fmt;
use std::str::FromStr;

/// One option of a row in a registry.
#[derive(Clone, Copy, Debug)]
pub struct OptionDoc {
    /// The word before the `=`, or the whole of a flag.
    pub name: &'static str,
    /// Its meaning in one line, with the unit.
    pub meaning: &'static str,
    /// How it is written, and its default.
    pub form: OptionForm,
}

impl OptionDoc {
    /// A bare word, off by default.
    pub const fn flag(name: &'static str, meaning: &'static str) -> Self {
        Self { name, meaning, form: OptionForm::Flag }
    }

    /// `name=value`, of which `example` is a valid one. There is no default.
    pub const fn required(name: &'static str, meaning: &'static str, example: &'static str) -> Self {
        Self { name, meaning, form: OptionForm::Required { example } }
    }

    /// `name=value`, with this default.
    pub const fn optional(name: &'static str, meaning: &'static str, default: &'static str) -> Self {
        Self { name, meaning, form: OptionForm::Optional { default } }
    }

    /// How the option is written: `native`, `rate=500mbit`.
    pub fn written(&self) -> String {
        match self.form {
            OptionForm::Flag => self.name.into(),
            OptionForm::Required { example: value } | OptionForm::Optional { default: value } => {
                format!("{}={value}", self.name)
            }
        }
    }
}

/// How an option is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionForm {
    /// A bare word; off by default.
    Flag,
    /// `name=value`, without a default.
    Required {
        /// A valid value.
        example: &'static str,
    },
    /// `name=value`.
    Optional {
        /// The default.
        default: &'static str,
    },
}

impl OptionForm {
    /// The default; `None` if the option is required.
    pub const fn default_value(self) -> Option<&'static str> {
        match self {
            Self::Flag => Some("off"),
            Self::Required { .. } => None,
            Self::Optional { default } => Some(default),
        }
    }
}

/// The error of parsing a name with its options. The message states the accepted forms.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// The name before the colon is not in the registry.
    #[error("unknown {kind} '{name}': choose one of {allowed}")]
    UnknownName {
        /// What the registry lists: "congestion controller".
        kind: &'static str,
        /// The given name.
        name: String,
        /// The known names.
        allowed: String,
    },
    /// The registry knows the name, and this program was built without what it names.
    #[error("this program was built without the {kind} '{name}': the feature '{feature}' of the library brings it")]
    NotBuilt {
        /// As in [`UnknownName`](Self::UnknownName).
        kind: &'static str,
        /// The given name.
        name: String,
        /// The feature of the library with which it is built.
        feature: &'static str,
    },
    /// The row has no such option.
    #[error("'{of}' has no option '{option}': it takes {allowed}")]
    UnknownOption {
        /// The row's name.
        of: &'static str,
        /// The given option.
        option: String,
        /// The known options, as they are written.
        allowed: String,
    },
    /// An option appears twice.
    #[error("option '{option}' of '{of}' is given twice")]
    Repeated {
        /// The row's name.
        of: &'static str,
        /// The option.
        option: &'static str,
    },
    /// A flag with a value, or a value left out.
    #[error("option '{option}' of '{of}' has the form {form}")]
    WrongForm {
        /// The row's name.
        of: &'static str,
        /// The option.
        option: &'static str,
        /// How it is written.
        form: String,
    },
    /// A required option is missing.
    #[error("'{of}' needs the option '{option}': write {of}:{example}")]
    Missing {
        /// The row's name.
        of: &'static str,
        /// The option.
        option: &'static str,
        /// How it is written.
        example: String,
    },
    /// A value that cannot be parsed.
    #[error("option '{option}' of '{of}': {source}")]
    Unreadable {
        /// The row's name.
        of: &'static str,
        /// The option.
        option: &'static str,
        /// The error of parsing the value.
        source: Box<dyn Error + Send + Sync>,
    },
    /// A value that can be parsed but not used.
    #[error("option '{option}' of '{of}' must be {allowed}, not '{value}'")]
    OutOfRange {
        /// The row's name.
        of: &'static str,
        /// The option.
        option: &'static str,
        /// The given value.
        value: String,
        /// The usable values.
        allowed: &'static str,
    },
}

/// The given options of one row, each with a known name and in the right form.
#[derive(Clone, Debug)]
pub struct Settings {
    of: &'static str,
    options: &'static [OptionDoc],
    /// Names and values in the order of `options`. A flag has no value.
    given: Vec<(&'static str, Option<String>)>,
}

impl Settings {
    /// No options given to the row `of`, which knows `options`.
    pub(crate) const fn none(of: &'static str, options: &'static [OptionDoc]) -> Self {
        Self { of, options, given: Vec::new() }
    }

    /// Reads `text`, options with commas between them.
    pub(crate) fn read(of: &'static str, options: &'static [OptionDoc], text: &str) -> Result<Self, SpecError> {
        let mut settings = Self::none(of, options);
        text.split(',').try_for_each(|option| settings.add(option))?;
        settings.given.sort_by_key(|(option, _)| options.iter().position(|known| known.name == *option));
        Ok(settings)
    }

    /// Adds one option in its text form.
    fn add(&mut self, text: &str) -> Result<(), SpecError> {
        let of = self.of;
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (text, None),
        };
        let known = self.options.iter().find(|known| known.name == name).ok_or_else(|| SpecError::UnknownOption {
            of,
            option: name.into(),
            allowed: allowed(self.options),
        })?;
        let option = known.name;
        if (known.form == OptionForm::Flag) == value.is_some() {
            return Err(SpecError::WrongForm { of, option, form: known.written() });
        }
        if self.flag(option) {
            return Err(SpecError::Repeated { of, option });
        }
        self.given.push((option, value.map(Into::into)));
        Ok(())
    }

    /// Whether the flag `name` was given.
    pub fn flag(&self, name: &str) -> bool {
        self.given.iter().any(|(given, _)| *given == name)
    }

    /// The value of the required option `name`.
    ///
    /// # Errors
    /// The option was not given, or its value cannot be parsed.
    pub fn required<T>(&self, name: &'static str) -> Result<T, SpecError>
    where
        T: FromStr<Err: Error + Send + Sync + 'static>,
    {
        let value = self.value(name).ok_or_else(|| {
            let example = self.options.iter().find(|known| known.name == name).map(OptionDoc::written);
            SpecError::Missing { of: self.of, option: name, example: example.unwrap_or_default() }
        })?;
        value.parse().map_err(|source: T::Err| self.unreadable(name, source))
    }

    /// The value of the option `name`, parsed by `read`; `None` if it was not given.
    ///
    /// # Errors
    /// The value cannot be parsed.
    pub fn optional<T, E>(
        &self,
        name: &'static str,
        read: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<Option<T>, SpecError>
    where
        E: Error + Send + Sync + 'static,
    {
        self.value(name).map(read).transpose().map_err(|source| self.unreadable(name, source))
    }

    /// The value of the option `name`, which is `on` or `off`; `None` if it was not given.
    ///
    /// # Errors
    /// The value is something else.
    pub fn switch(&self, name: &'static str) -> Result<Option<bool>, SpecError> {
        match self.value(name) {
            None => Ok(None),
            Some("on") => Ok(Some(true)),
            Some("off") => Ok(Some(false)),
            Some(_) => Err(self.out_of_range(name, "on or off")),
        }
    }

    /// The text of the option `name`; `None` if it was not given.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.given.iter().find(|(given, _)| *given == name).and_then(|(_, value)| value.as_deref())
    }

    /// The error for a value of `name` that can be parsed but not used.
    pub fn out_of_range(&self, name: &'static str, allowed: &'static str) -> SpecError {
        let value = self.value(name).unwrap_or_default().into();
        SpecError::OutOfRange { of: self.of, option: name, value, allowed }
    }

    fn unreadable(&self, name: &'static str, source: impl Error + Send + Sync + 'static) -> SpecError {
        SpecError::Unreadable { of: self.of, option: name, source: Box::new(source) }
    }
}

impl PartialEq for Settings {
    /// The known options follow from the name.
    fn eq(&self, other: &Self) -> bool {
        self.of == other.of && self.given == other.given
    }
}

impl Eq for Settings {}

impl fmt::Display for Settings {
    /// The row's name and the given options, in the form in which they are read.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.of)?;
        for (index, (option, value)) in self.given.iter().enumerate() {
            write!(f, "{}{option}", if index == 0 { ':' } else { ',' })?;
            if let Some(value) = value {
                write!(f, "={value}")?;
            }
        }
        Ok(())
    }
}

fn allowed(options: &[OptionDoc]) -> String {
    if options.is_empty() {
        return "none".into();
    }
    options.iter().map(OptionDoc::written).collect::<Vec<_>>().join(", ")
}
