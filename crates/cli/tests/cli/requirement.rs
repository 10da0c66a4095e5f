//! Requirements of tests on the machine, and the line about a skipped test.

use std::io::{self, Write};
use std::process::{Command, Stdio};
use std::thread;

/// Whether `command` can be run here; prints why not.
pub(crate) fn runs(command: &[&str], needed_for: &str) -> Option<()> {
    let tried = Command::new(command[0])
        .args(&command[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    match tried {
        Ok(status) if status.success() => Some(()),
        Ok(status) => skip(&format!("{} does not work here ({status}): {needed_for}", command[0])),
        Err(error) => skip(&format!("{}: {error}: {needed_for}", command[0])),
    }
}

/// Says on the real standard error, which the test harness does not swallow, that the test proves nothing.
pub(crate) fn skip<R>(reason: &str) -> Option<R> {
    let test = thread::current();
    // Nothing can be done about a closed standard error.
    let _ = writeln!(io::stderr(), "SKIPPED {}: {reason}", test.name().unwrap_or("test"));
    None
}
