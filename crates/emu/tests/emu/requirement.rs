//! The notice of a skipped network test.

use std::fmt::Display;
use std::io::{self, Write};
use std::thread;

/// If this variable is set, a skipped test fails, because the machine is known to permit networks.
const MUST_RUN: &str = "FARHAUL_TESTS_MUST_RUN";

/// Prints to the real standard error, which the test harness does not capture, that the test was skipped.
pub(crate) fn skip<T>(reason: impl Display) -> Option<T> {
    assert!(std::env::var_os(MUST_RUN).is_none(), "{MUST_RUN} is set, but: {reason}");
    let test = thread::current();
    // An error of a closed standard error is ignored.
    let _ = writeln!(io::stderr(), "SKIPPED {}: {reason}", test.name().unwrap_or("test"));
    None
}
