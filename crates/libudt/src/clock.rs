//! The only file of this crate that reads the clock.

use std::time::{Duration, Instant};

/// Now.
#[expect(clippy::disallowed_methods, reason = "the time limits of calls begin here")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// The end of a wait in milliseconds that begins now. `None` for a wait without an end: negative, or too long for the clock.
pub(crate) fn deadline(milliseconds: i64) -> Option<Instant> {
    now().checked_add(Duration::from_millis(u64::try_from(milliseconds).ok()?))
}
