//! One controller by name, and those that programs have added.
//!
//! The table of added controllers is one for the process, because names are read everywhere: on the command line, in
//! settings files, in scenarios.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::controller::Controller;
use crate::options::{OptionDoc, Settings, SpecError};

/// One controller.
#[non_exhaustive]
pub struct Entry {
    /// The name by which users select it.
    pub name: &'static str,
    /// A summary in one line.
    pub summary: &'static str,
    /// What it reacts to.
    pub family: LawFamily,
    /// When another one is the better choice; empty if nobody has said so.
    pub unsuited: &'static str,
    /// The source of its law: for built-in ones keys of `docs/papers/papers.bib`, or `none`.
    pub source: &'static str,
    /// Its options, in the order of printing.
    pub options: &'static [OptionDoc],
    /// Where its code is.
    pub revision: Revision<'static>,
    /// Makes a controller from checked settings and a seed. Fails on unusable values.
    pub(crate) construct: &'static Construct,
}

/// What a controller reacts to, before all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LawFamily {
    /// Losses decide its window.
    Loss,
    /// Queueing delay decides its window.
    Delay,
    /// A model of the path, measured by what arrives.
    Model,
    /// It governs the packet period, as UDT's laws.
    Rate,
    /// A program added it, and nobody has said.
    Own,
}

impl LawFamily {
    /// The families of built-in controllers.
    pub const BUILT_IN: [Self; 4] = [Self::Loss, Self::Delay, Self::Model, Self::Rate];

    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Loss => "loss",
            Self::Delay => "delay",
            Self::Model => "model",
            Self::Rate => "rate",
            Self::Own => "own",
        }
    }
}

/// Makes a controller from its settings and a seed.
pub(crate) type Construct = dyn Fn(&Settings, u64) -> Result<Box<dyn Controller>, SpecError> + Send + Sync;

/// Where the code of a controller is, and so when it may have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Revision<'a> {
    /// In this crate.
    BuiltIn,
    /// In the program that registered it.
    Program,
    /// Somewhere else. The text changes whenever the code does.
    Text(&'a str),
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry").field("name", &self.name).field("revision", &self.revision).finish_non_exhaustive()
    }
}

/// A controller without options that the program makes.
#[derive(Clone)]
pub(crate) struct Made {
    pub(crate) name: Arc<str>,
    /// Makes a controller for one connection, from a seed.
    pub(crate) make: Arc<dyn Fn(u64) -> Box<dyn Controller> + Send + Sync>,
    pub(crate) revision: Option<Arc<str>>,
}

impl PartialEq for Made {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.make, &other.make)
    }
}

impl Eq for Made {}

static ADDED: RwLock<Added> = RwLock::new(Added { entries: Vec::new(), made: BTreeMap::new() });

/// No name is in both.
pub(crate) struct Added {
    pub(crate) entries: Vec<&'static Entry>,
    pub(crate) made: BTreeMap<String, Made>,
}

/// The added controllers, to read.
pub(crate) fn added() -> RwLockReadGuard<'static, Added> {
    // A program that panics with the lock leaves whole entries.
    ADDED.read().unwrap_or_else(PoisonError::into_inner)
}

/// The added controllers, to change.
pub(crate) fn added_mut() -> RwLockWriteGuard<'static, Added> {
    ADDED.write().unwrap_or_else(PoisonError::into_inner)
}
