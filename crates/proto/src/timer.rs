//! A deadline, owned by the part that set it.

use farhaul_units::{Duration, Instant};

use crate::transport::earliest;

/// An optional deadline. Each part owns its timers, and the connection asks all of them for the earliest.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timer(Option<Instant>);

impl Timer {
    /// A timer without a deadline.
    pub const fn stopped() -> Self {
        Self(None)
    }

    /// A timer that fires at `deadline`.
    pub const fn at(deadline: Instant) -> Self {
        Self(Some(deadline))
    }

    /// Sets the deadline and replaces an earlier one.
    pub fn set(&mut self, deadline: Instant) {
        self.0 = Some(deadline);
    }

    /// Sets the deadline unless one is set.
    pub fn start(&mut self, now: Instant, after: Duration) {
        self.0.get_or_insert(now + after);
    }

    /// Sets the deadline unless an earlier one is set.
    pub(crate) fn set_earlier(&mut self, deadline: Instant) {
        self.0 = earliest(self.0, Some(deadline));
    }

    /// Clears the deadline.
    pub fn stop(&mut self) {
        self.0 = None;
    }

    /// The deadline, if set.
    pub const fn deadline(self) -> Option<Instant> {
        self.0
    }

    /// Whether the timer is due. If so, its deadline is cleared.
    pub fn fires(&mut self, now: Instant) -> bool {
        let due = self.0.is_some_and(|deadline| deadline <= now);
        if due {
            self.0 = None;
        }
        due
    }
}
