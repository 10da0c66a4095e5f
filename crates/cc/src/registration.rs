//! Controllers that programs add to the registry.
//!
//! A [`Registration`] stays in it for the rest of the process. A controller without options may be replaced by another one of its name
//! ([`Spec::register`](crate::Spec::register)), as when somebody at a prompt defines it again.

use std::fmt;

use crate::controller::Controller;
use crate::entry::{Added, Construct, Entry, LawFamily, Made, Revision, added_mut};
use crate::options::{OptionDoc, Settings, SpecError};
use crate::registry::BUILT_IN;

/// The longest name, bytes.
const LONGEST_NAME: usize = 32;

/// Whether the name belongs to a controller that stays.
fn stays(added: &Added, name: &str) -> bool {
    BUILT_IN.iter().chain(added.entries.iter().copied()).any(|entry| entry.name == name)
}

/// Gives its name to a controller without options, in the place of such a one that had it before.
pub(crate) fn register_made(made: Made) -> Result<(), RegistrationError> {
    check_word(&made.name, "name")?;
    let mut added = added_mut();
    if stays(&added, &made.name) {
        return Err(RegistrationError::Taken(made.name.to_string()));
    }
    let before = added.made.insert(made.name.to_string(), made);
    drop(added);
    // Its destructor may be a program's.
    drop(before);
    Ok(())
}

/// A controller that is to have a name.
///
/// ```
/// use farhaul_cc::options::OptionDoc;
/// use farhaul_cc::{AckEvent, Control, Controller, LossEvent, Path, Registration, Spec};
///
/// struct Constant(f64, String);
///
/// impl Controller for Constant {
///     fn name(&self) -> &str {
///         &self.1
///     }
///     fn on_connect(&mut self, _: &Path, control: &mut Control) {
///         control.cwnd = Some(self.0);
///     }
///     fn on_ack(&mut self, _: &Path, _: &AckEvent, _: &mut Control) {}
///     fn on_loss(&mut self, _: &Path, _: &LossEvent<'_>, _: &mut Control) {}
/// }
///
/// Registration::new("constant", "a window that never changes", |settings, _seed| {
///     Ok(Box::new(Constant(settings.required("window")?, settings.to_string())))
/// })
/// .option(OptionDoc::required("window", "the window, packets", "100"))
/// .register()?;
/// let spec: Spec = "constant:window=50".parse()?;
/// assert_eq!(spec.build(1).name(), "constant:window=50");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Registration {
    name: String,
    summary: String,
    source: String,
    options: Vec<OptionDoc>,
    revision: Option<String>,
    construct: Box<Construct>,
}

impl Registration {
    /// A controller `name` with a summary in one line. `construct` makes one for a connection from its options and a seed for
    /// its random draws. It is also called to check options, so it should have no effect, and an error for options that it
    /// takes must not depend on the seed.
    pub fn new(
        name: &str,
        summary: &str,
        construct: impl Fn(&Settings, u64) -> Result<Box<dyn Controller>, SpecError> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            summary: summary.into(),
            source: "none".into(),
            options: Vec::new(),
            revision: None,
            construct: Box::new(construct),
        }
    }

    /// Adds an option. The options are printed in the order in which they were added.
    #[must_use]
    pub fn option(mut self, option: OptionDoc) -> Self {
        self.options.push(option);
        self
    }

    /// Where its law is from.
    #[must_use]
    pub fn source(mut self, source: &str) -> Self {
        self.source = source.into();
        self
    }

    /// A text that changes whenever its code does. Without it the code is taken to be in the program's file. The lab repeats
    /// runs of a controller whose code has changed.
    #[must_use]
    pub fn revision(mut self, revision: &str) -> Self {
        self.revision = Some(revision.into());
        self
    }

    /// Adds the controller to the registry, for the rest of the process.
    ///
    /// # Errors
    /// The name is taken or not usable, or an option or the summary is not.
    pub fn register(self) -> Result<&'static Entry, RegistrationError> {
        check_word(&self.name, "name")?;
        for (index, option) in self.options.iter().enumerate() {
            check_word(option.name, "option")?;
            if self.options[..index].iter().any(|other| other.name == option.name) {
                return Err(RegistrationError::Unusable { what: "option", word: option.name.into() });
            }
        }
        if self.summary.is_empty() || self.summary.contains('\n') {
            return Err(RegistrationError::Summary(self.name));
        }
        let mut added = added_mut();
        if stays(&added, &self.name) || added.made.contains_key(&self.name) {
            return Err(RegistrationError::Taken(self.name));
        }
        // It stays for the rest of the process, as names do in built-in entries.
        let entry: &'static Entry = Box::leak(Box::new(Entry {
            name: self.name.leak(),
            summary: self.summary.leak(),
            family: LawFamily::Own,
            unsuited: "",
            source: self.source.leak(),
            options: self.options.leak(),
            revision: self.revision.map_or(Revision::Program, |revision| Revision::Text(revision.leak())),
            construct: Box::leak(self.construct),
        }));
        added.entries.push(entry);
        Ok(entry)
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The reason for which a controller cannot have its name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegistrationError {
    /// Another controller has the name.
    #[error("there is a congestion controller '{0}' already: choose another name")]
    Taken(String),
    /// A word that cannot be written on the command line.
    #[error(
        "the {what} '{word}' of a congestion controller is not usable: it needs 1 to {LONGEST_NAME} of a-z, 0-9, - and _, \
         beginning with a letter, and only once"
    )]
    Unusable {
        /// `name` or `option`.
        what: &'static str,
        /// The given word.
        word: String,
    },
    /// The summary is not one line.
    #[error("the congestion controller '{0}' needs a summary in one line")]
    Summary(String),
}

/// Whether `word` can be written as a name or an option.
fn check_word(word: &str, what: &'static str) -> Result<(), RegistrationError> {
    let is_usable = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_';
    let begins = word.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase());
    if begins && word.len() <= LONGEST_NAME && word.bytes().all(is_usable) {
        return Ok(());
    }
    Err(RegistrationError::Unusable { what, word: word.into() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::controllers;
    use crate::{Row, Spec};

    fn reno() -> Box<dyn Controller> {
        "reno".parse::<Spec>().expect("it is built in").build(1)
    }

    fn named(name: &str) -> Registration {
        Registration::new(name, "for a test", |_settings, _seed| Ok(reno()))
    }

    #[test]
    fn an_added_controller_is_read_built_and_listed_like_a_built_in_one() {
        let limit = OptionDoc::optional("limit", "packets", "9");
        let entry = Registration::new("added", "for a test", |settings, _seed| {
            let limit: u32 = settings.optional("limit", str::parse)?.unwrap_or(9);
            if limit == 0 { Err(settings.out_of_range("limit", "above zero")) } else { Ok(reno()) }
        })
        .option(limit)
        .register()
        .expect("the name is free");
        assert_eq!((entry.name, entry.revision), ("added", Revision::Program));
        assert!(controllers().iter().any(|entry| entry.name == "added"));
        let spec: Spec = "added:limit=7".parse().expect("it is registered");
        assert_eq!((spec.to_string(), spec.build(1).name()), ("added:limit=7".into(), "reno"));
        let wrong = |text: &str| text.parse::<Spec>().expect_err("it is wrong").to_string();
        assert_eq!(wrong("added:limit=0"), "option 'limit' of 'added' must be above zero, not '0'");
        assert_eq!(wrong("added:most=0"), "'added' has no option 'most': it takes limit=9");
        assert!(wrong("adedd").ends_with(", added") || wrong("adedd").contains(", added,"), "{}", wrong("adedd"));
        assert_eq!(Entry::all()[0].name, "union", "the default stays");
    }

    #[test]
    fn a_name_is_given_once_and_never_to_a_built_in_one_again() {
        named("twice").revision("1").register().expect("the name is free");
        for name in ["twice", "cubic"] {
            assert_eq!(named(name).register().err(), Some(RegistrationError::Taken(name.into())));
        }
        let text = "there is a congestion controller 'cubic' already: choose another name";
        assert_eq!(named("cubic").register().expect_err("it is taken").to_string(), text);
    }

    #[test]
    fn a_controller_without_options_may_be_replaced_and_what_was_parsed_before_stays() {
        let named = |law: &str| {
            let law: Spec = law.parse().expect("it is built in");
            Spec::made("replaced", move |seed| law.build(seed)).revised("one")
        };
        let parsed = || "replaced".parse::<Spec>().map(|spec| spec.build(1).name().to_owned());
        assert!(parsed().is_err());
        named("reno").register().expect("the name is free");
        let before: Spec = "replaced".parse().expect("it is registered");
        assert_eq!((before.to_string(), before.revision()), ("replaced".into(), Revision::Text("one")));
        named("cubic").register().expect("it is of the same kind");
        assert_eq!((parsed().ok().as_deref(), before.build(1).name()), (Some("cubic"), "reno"));
        let wrong = "replaced:beta=1".parse::<Spec>().expect_err("it has no options").to_string();
        assert!(wrong.starts_with("unknown congestion controller 'replaced:beta=1'") && wrong.ends_with("replaced"));
        let taken = Err(RegistrationError::Taken("replaced".into()));
        assert_eq!(super::tests::named("replaced").register().map(drop), taken);
    }

    #[test]
    fn a_controller_that_stays_is_not_replaced() {
        let reno = |name| Spec::made(name, |_| reno());
        named("stays").register().expect("the name is free");
        for name in ["cubic", "stays"] {
            assert_eq!(reno(name).register(), Err(RegistrationError::Taken(name.into())));
        }
        assert!(matches!(reno("Reno").register(), Err(RegistrationError::Unusable { what: "name", .. })));
        let built_in: Spec = "cubic".parse().expect("it is built in");
        assert_eq!(built_in.register(), Err(RegistrationError::Taken("cubic".into())));
    }

    #[test]
    fn words_that_cannot_be_written_are_refused() {
        for name in ["", "9", "Aimd", "a:b", "a,b", "a=b", "a b", "ä", &"a".repeat(33)] {
            let refused = RegistrationError::Unusable { what: "name", word: name.into() };
            assert_eq!(named(name).register().err(), Some(refused));
        }
        let option = |name| OptionDoc::flag(name, "none");
        let twice = named("options").option(option("a")).option(option("a")).register();
        assert!(matches!(twice, Err(RegistrationError::Unusable { what: "option", .. })));
        let lines = Registration::new("lines", "two\nlines", |_settings, _seed| Ok(reno())).register();
        assert_eq!(lines.err(), Some(RegistrationError::Summary("lines".into())));
    }
}
