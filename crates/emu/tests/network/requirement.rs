//! The line that says why a test of networks is skipped.

use std::fmt::Display;
use std::io::{self, Write};
use std::thread;

/// Where this is set nothing may be skipped: whoever sets it knows that the machine permits networks.
const MUST_RUN: &str = "FARHAUL_TESTS_MUST_RUN";

/// Says on the real standard error, which the test harness does not swallow, that the test proves nothing.
pub(crate) fn skip<T>(reason: impl Display) -> Option<T> {
    assert!(std::env::var_os(MUST_RUN).is_none(), "{MUST_RUN} is set, but: {reason}");
    let test = thread::current();
    // Nothing can be done about a closed standard error.
    let _ = writeln!(io::stderr(), "SKIPPED {}: {reason}", test.name().unwrap_or("test"));
    None
}
