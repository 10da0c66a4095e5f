//! Plain clients beside those with keys: their networks, and what they may do.

use std::net::SocketAddr;
use std::sync::{Arc, PoisonError, RwLock};

use farhaul::security::{Network, PlainClients};
use farhaul_units::Rate;

use crate::admission::Rights;

/// What plain clients may do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlainRules {
    /// Their networks.
    pub allow: Vec<Network>,
    /// Whether they may write.
    pub write: bool,
    /// Whether they may delete.
    pub delete: bool,
    /// Cap of the rate of all of them together.
    pub rate: Rate,
}

impl PlainRules {
    /// Clients of these networks only read, with [`PlainClients::MAX_RATE`] together.
    pub const fn of(allow: Vec<Network>) -> Self {
        Self { allow, write: false, delete: false, rate: PlainClients::MAX_RATE }
    }

    /// The same with whether they may write.
    #[must_use]
    pub const fn write(mut self, may: bool) -> Self {
        self.write = may;
        self
    }

    /// The same with whether they may delete.
    #[must_use]
    pub const fn delete(mut self, may: bool) -> Self {
        self.delete = may;
        self
    }

    /// The same with this cap of the rate of all of them together.
    #[must_use]
    pub const fn rate(mut self, rate: Rate) -> Self {
        self.rate = rate;
        self
    }
}

/// The plain clients of a port, by rules that may change while it is open. Clones share them.
#[derive(Clone, Debug)]
pub struct PlainAccess(Arc<RwLock<PlainRules>>);

impl PlainAccess {
    /// Plain clients with these rules.
    pub fn by(rules: PlainRules) -> Self {
        Self(Arc::new(RwLock::new(rules)))
    }

    /// The rules as they are now.
    pub fn rules(&self) -> PlainRules {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the rules. The port keeps its cap of single connections, so its cap of the rate should stay.
    pub fn replace(&self, rules: PlainRules) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = rules;
    }

    /// The plain clients for the port.
    pub fn clients(&self) -> PlainClients {
        let rules = self.rules();
        PlainClients::of(rules.allow).max_rate(rules.rate)
    }

    /// What a plain client may do.
    pub(crate) fn rights(&self, from: SocketAddr) -> Rights {
        let rules = self.rules();
        // The rules may have changed since the client connected.
        match rules.allow.iter().any(|network| network.contains(from.ip())) {
            true => Rights::Plain { write: rules.write, delete: rules.delete, rate: rules.rate },
            false => Rights::None,
        }
    }
}
