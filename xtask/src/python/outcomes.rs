//! What pytest tells of each test: lines of JSON that `tests/conftest.py` writes as tests end.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::suite::{Finished, Outcome};

/// Names the file of the lines for `tests/conftest.py`.
pub(super) const VARIABLE: &str = "FARHAUL_TEST_OUTCOMES";
/// Stands before the names of these tests.
const LABEL: &str = "python";

/// The tests that have ended. None if pytest did not begin.
///
/// # Errors
/// The file holds something else.
pub(super) fn read(file: &Path) -> Result<Vec<Finished>> {
    let lines = fs::read_to_string(file).unwrap_or_default();
    lines.lines().map(|line| outcome(line).with_context(|| format!("{}: {line}", file.display()))).collect()
}

fn outcome(line: &str) -> Result<Finished> {
    let line: Value = serde_json::from_str(line)?;
    let text = |key: &str| line[key].as_str().map(str::to_owned).with_context(|| format!("no {key}"));
    let outcome = match text("outcome")?.as_str() {
        "passed" => Outcome::Passed,
        "skipped" => Outcome::Skipped(text("reason")?),
        _ => Outcome::Failed(text("reason")?),
    };
    let elapsed = line["seconds"].as_f64().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    Ok(Finished { label: LABEL.to_owned(), name: text("name")?, elapsed: elapsed.context("no seconds")?, outcome })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_names_times_and_reasons() {
        let skipped = r#"{"name": "tests/a.py::b", "outcome": "skipped", "seconds": 0.25, "reason": "no sshd"}"#;
        let Finished { label, name, elapsed, outcome: reason } = outcome(skipped).unwrap();
        assert_eq!((label.as_str(), name.as_str(), elapsed.as_millis()), ("python", "tests/a.py::b", 250));
        assert!(matches!(reason, Outcome::Skipped(reason) if reason == "no sshd"));
        let passed = skipped.replace("skipped", "passed");
        assert!(matches!(outcome(&passed).unwrap().outcome, Outcome::Passed));
        assert!(outcome(r#"{"name": "a"}"#).is_err() && outcome("a").is_err());
    }
}
