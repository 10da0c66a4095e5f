//! What all parts of a copy or of a server share.

use std::fmt::Display;

use farhaul::Error as ConnectionError;
use farhaul_udp::Clock;

use crate::cancel::Cancellation;
use crate::error::{Error, Trouble};
use crate::event::{Events, Observer};
use crate::throttle::Throttle;

/// The clock, the cancellation, the throttle, and where events go.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Environment {
    /// Counts time.
    pub clock: Clock,
    /// Ends everything that it was given.
    pub cancellation: Cancellation,
    /// Tells what happens.
    pub events: Events,
    /// Caps and pauses everything that it was given.
    pub throttle: Throttle,
}

impl Environment {
    /// A new one that tells this observer what happens.
    pub fn reporting_to(observer: impl Observer + 'static) -> Self {
        Self { events: Events::to(observer), ..Self::default() }
    }

    /// The same, which this throttle caps and pauses.
    #[must_use]
    pub fn with_throttle(mut self, throttle: Throttle) -> Self {
        self.throttle = throttle;
        self
    }

    /// The same, which this cancellation ends.
    #[must_use]
    pub fn with_cancellation(mut self, cancellation: Cancellation) -> Self {
        self.cancellation = cancellation;
        self
    }

    /// The error of a failed session with `peer`: the reason of a cancellation if there was one, otherwise `trouble`.
    pub fn error(&self, trouble: &Trouble, peer: &dyn Display) -> Error {
        self.cancellation.reason().unwrap_or_else(|| trouble.error(peer))
    }

    /// The error of a failed call of the library: the reason of a cancellation if there was one, otherwise `error`.
    pub fn connection_error(&self, error: &ConnectionError, peer: &dyn Display) -> Error {
        self.cancellation.reason().unwrap_or_else(|| Error::of_connection(error, peer))
    }
}

impl Default for Environment {
    /// A new one that tells nobody.
    fn default() -> Self {
        Self {
            clock: Clock::start(),
            cancellation: Cancellation::default(),
            events: Events::unheard(),
            throttle: Throttle::default(),
        }
    }
}
