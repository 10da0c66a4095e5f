//! Examples in the documentation. Cargo runs them, because only rustdoc knows them.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use anyhow::{Context, Result, ensure};

use crate::sections::shown;
use crate::suite::Report;
use crate::workspace::Workspace;

/// The folder of the command. Its help texts are documentation as well, and show commands. `--doc` disregards that its manifest has
/// no documentation tests. Without the package, others would be built with fewer features, which takes a minute.
const COMMAND: &str = "crates/cli/";

/// Runs the examples of all packages.
///
/// # Errors
/// One does not compile or fails.
pub(crate) fn run(workspace: &Workspace, features: &[String], report: &mut Report) -> Result<()> {
    let mut command = workspace.cargo();
    command.args(["test", "--doc", "--workspace", "--no-fail-fast"]).args(features).args(["--", "--skip", COMMAND]);
    let shown = shown(&command);
    println!("$ {shown}");
    let mut child = command.stdout(Stdio::piped()).spawn().with_context(|| shown.clone())?;
    let stdout = child.stdout.take().context("a pipe")?;
    for line in BufReader::new(stdout).lines() {
        let line = line?;
        if let Some((passed, failed)) = counts(&line) {
            report.add_counts(passed, failed);
        }
        println!("{line}");
    }
    let status = child.wait()?;
    ensure!(status.success(), "`{shown}` ended with {status}");
    Ok(())
}

/// Passed and failed examples of one package.
fn counts(line: &str) -> Option<(usize, usize)> {
    let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let count = |unit: &str| counts.split("; ").find_map(|part| part.strip_suffix(unit)?.trim().parse().ok());
    Some((count("passed")?, count("failed")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_results_of_examples_are_counted() {
        let line = "test result: FAILED. 3 passed; 1 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.50s";
        assert_eq!(counts(line), Some((3, 1)));
        assert_eq!(counts("running 4 tests"), None);
    }
}
