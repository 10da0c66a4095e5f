//! One deadline, owned by the part that set it.

use farhaul_units::{Duration, Instant};

/// A deadline that may be set. Each part owns its timers; the conductor asks all of them for the earliest.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Timer(Option<Instant>);

impl Timer {
    /// Not set.
    pub(crate) const fn stopped() -> Self {
        Self(None)
    }

    /// Set to fire at `deadline`.
    pub(crate) const fn at(deadline: Instant) -> Self {
        Self(Some(deadline))
    }

    /// Sets it, whatever it was before.
    pub(crate) fn set(&mut self, deadline: Instant) {
        self.0 = Some(deadline);
    }

    /// Sets it unless it is set already.
    pub(crate) fn start(&mut self, now: Instant, after: Duration) {
        self.0.get_or_insert(now + after);
    }

    /// Unsets it.
    pub(crate) fn stop(&mut self) {
        self.0 = None;
    }

    /// When it fires.
    pub(crate) const fn deadline(self) -> Option<Instant> {
        self.0
    }

    /// Whether it is due; if so, it is unset.
    pub(crate) fn fires(&mut self, now: Instant) -> bool {
        let due = self.0.is_some_and(|deadline| deadline <= now);
        if due {
            self.0 = None;
        }
        due
    }
}
