//! One test in its own process.

use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::clock::{Stopwatch, pause};
use crate::suite::schedule::Lane;
use crate::suite::{Surroundings, Test};

/// A test that runs longer hangs. The longest takes half a minute, and a loaded machine is a few times slower.
const LIMIT: Duration = Duration::from_secs(300);
/// Shortest and longest pause between two looks at a running test. A pause is a tenth of the time so far.
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);
/// The start of a line by which a test reports that it proves nothing here.
const SKIPPED: &str = "SKIPPED ";
/// Printed by the test harness, which passes as well if no test has the name.
const ONE_PASSED: &str = "test result: ok. 1 passed;";

/// A test that has ended.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) label: String,
    pub(crate) name: String,
    pub(crate) elapsed: Duration,
    pub(crate) outcome: Outcome,
}

#[derive(Debug)]
pub(crate) enum Outcome {
    Passed,
    /// The reason.
    Skipped(String),
    /// The reason and the output.
    Failed(String),
}

/// Runs a test to its end. Its output goes to `file`, because a pipe would stay open as long as a stray grandchild.
pub(super) fn run(test: &Test<'_>, surroundings: &Surroundings, file: &Path) -> Finished {
    let stopwatch = Stopwatch::start();
    let outcome =
        try_run(test, surroundings, file, stopwatch).unwrap_or_else(|error| Outcome::Failed(format!("{error:#}")));
    Finished { label: test.program.label.clone(), name: test.name.clone(), elapsed: stopwatch.elapsed(), outcome }
}

fn try_run(test: &Test<'_>, surroundings: &Surroundings, file: &Path, stopwatch: Stopwatch) -> Result<Outcome> {
    let output = File::create(file).with_context(|| file.display().to_string())?;
    let mut command = command(test, surroundings);
    command.args(["--include-ignored", "--exact", &test.name]).stdin(Stdio::null());
    command.stdout(output.try_clone()?).stderr(output);
    let mut child = command.spawn()?;
    let status = wait(&mut child, stopwatch)?;
    let output = String::from_utf8_lossy(&fs::read(file)?).into_owned();
    Ok(judge(status, output))
}

fn command(test: &Test<'_>, surroundings: &Surroundings) -> Command {
    let program = test.program;
    let mut command = match surroundings.network_wrapper.split_first() {
        Some((wrapper, words)) if program.makes_networks => {
            let mut command = Command::new(wrapper);
            command.args(words).arg(&program.executable);
            command
        }
        _ => Command::new(&program.executable),
    };
    command.current_dir(&program.folder).env("CARGO_MANIFEST_DIR", &program.folder);
    if program.lane == Lane::Interop {
        command.envs(surroundings.libudt_peer.iter().map(|(name, path)| (name, path)));
    }
    // A group of its own, so that a test that hangs ends with all its processes.
    command.process_group(0);
    command
}

/// Waits for the end, and kills the group of a test that hangs: then there is no status.
fn wait(child: &mut Child, stopwatch: Stopwatch) -> Result<Option<ExitStatus>> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if stopwatch.elapsed() >= LIMIT {
            Command::new("kill").args(["-KILL", "--", &format!("-{}", child.id())]).status().context("kill")?;
            child.wait()?;
            return Ok(None);
        }
        pause((stopwatch.elapsed() / 10).clamp(SHORTEST_PAUSE, LONGEST_PAUSE));
    }
}

fn judge(status: Option<ExitStatus>, output: String) -> Outcome {
    match status {
        None => Outcome::Failed(format!("it hangs: killed after {} s\n{output}", LIMIT.as_secs())),
        Some(status) if !status.success() => Outcome::Failed(format!("{status}\n{output}")),
        Some(_) if !output.contains(ONE_PASSED) => Outcome::Failed(format!("the test did not run\n{output}")),
        Some(_) => match output.lines().find_map(|line| line.strip_prefix(SKIPPED)) {
            Some(line) => Outcome::Skipped(line.split_once(": ").map_or(line, |(_, reason)| reason).to_owned()),
            None => Outcome::Passed,
        },
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    const PASSED: &str = "running 1 test\ntest a ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored;\n";

    #[test]
    fn a_test_passes_only_if_the_harness_ran_it() {
        let judge = |output: &str| judge(Some(ExitStatus::from_raw(0)), output.to_owned());
        assert!(matches!(judge(PASSED), Outcome::Passed));
        assert!(matches!(judge("test result: ok. 0 passed; 0 failed;"), Outcome::Failed(_)));
    }

    #[test]
    fn a_test_that_skips_itself_is_reported_with_its_reason() {
        let output = format!("SKIPPED a::b: no strace: disks\n{PASSED}");
        let outcome = judge(Some(ExitStatus::from_raw(0)), output);
        assert!(matches!(outcome, Outcome::Skipped(reason) if reason == "no strace: disks"));
    }

    #[test]
    fn a_test_that_is_killed_or_hangs_has_failed() {
        assert!(matches!(judge(Some(ExitStatus::from_raw(9)), PASSED.to_owned()), Outcome::Failed(_)));
        assert!(matches!(judge(None, PASSED.to_owned()), Outcome::Failed(why) if why.starts_with("it hangs")));
    }
}
