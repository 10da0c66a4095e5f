//! A UDP port with an endpoint on it, as all its handles share it.

use std::sync::Arc;
use std::time::Duration;

use farhaul_proto::Endpoint;
use farhaul_units::Instant;

use crate::canceller::{CancelFlag, Canceller};
use crate::driver::{Core, Driver};
use crate::error::Error;

/// A UDP port with an endpoint on it, shared by all handles.
pub(crate) struct Port {
    pub(crate) driver: Driver<Endpoint>,
    /// The endpoint's canceller raises it. It ends every wait on this port.
    pub(crate) cancelled: Arc<CancelFlag>,
    /// Time limits of a connection attempt, and of one by rendezvous.
    pub(crate) connect_timeouts: [Duration; 2],
    /// Length in bytes of the longest message that the settings permit.
    pub(crate) longest_message: u64,
    /// Whether the secrets of connections are written down.
    pub(crate) logs_secrets: bool,
}

/// An operation under the lock. It gives a result, nothing yet, or an error.
pub(crate) trait Attempt<R>: FnMut(&mut Core<Endpoint>, Instant) -> Result<Option<R>, Error> {}

impl<R, F: FnMut(&mut Core<Endpoint>, Instant) -> Result<Option<R>, Error>> Attempt<R> for F {}

impl Port {
    /// Makes a call under the lock, which takes microseconds.
    ///
    /// # Errors
    /// The driver thread is gone.
    pub(crate) fn under_lock<R>(&self, call: impl FnOnce(&mut Core<Endpoint>, Instant) -> R) -> Result<R, Error> {
        let mut guard = self.driver.lock()?;
        let now = guard.now();
        Ok(call(&mut guard, now))
    }

    pub(crate) fn canceller(&self) -> Canceller {
        Canceller::new(&self.cancelled, self.driver.cancellation())
    }
}
