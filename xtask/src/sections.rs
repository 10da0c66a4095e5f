//! A run of checks in sections, and its summary.

use std::io::Write as _;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::clock::Stopwatch;

/// Status of a section that did not fail.
#[derive(Debug)]
pub(crate) enum CheckStatus {
    Passed,
    /// Could not run here, with the reason.
    Skipped(String),
}

/// The sections so far.
#[derive(Debug, Default)]
pub(crate) struct Sections {
    done: Vec<(String, Result<CheckStatus>, Duration)>,
}

impl Sections {
    /// Runs one section under a heading. A failure does not prevent later sections.
    pub(crate) fn section(&mut self, title: &str, check: impl FnOnce() -> Result<CheckStatus>) {
        println!("\n━━ {title} {}", "━".repeat(76_usize.saturating_sub(title.chars().count())));
        let stopwatch = Stopwatch::start();
        let status = check();
        match &status {
            Ok(CheckStatus::Passed) => {}
            Ok(CheckStatus::Skipped(why)) => println!("skipped: {why}"),
            Err(error) => println!("FAILED: {error:#}"),
        }
        self.done.push((title.to_owned(), status, stopwatch.elapsed()));
        // The next section's children write to the same terminal.
        let _ = std::io::stdout().flush();
    }

    /// Prints the summary.
    ///
    /// # Errors
    /// A section failed.
    pub(crate) fn finish(self) -> Result<()> {
        println!("\n━━ summary {}", "━".repeat(69));
        let mut failed = 0;
        for (title, status, elapsed) in &self.done {
            let (mark, why) = match status {
                Ok(CheckStatus::Passed) => ("ok", String::new()),
                Ok(CheckStatus::Skipped(why)) => ("skipped", format!("  {why}")),
                Err(error) => {
                    failed += 1;
                    ("FAILED", format!("  {error:#}"))
                }
            };
            println!("{mark:<8} {:>4} s  {title}{why}", elapsed.as_secs());
        }
        if failed > 0 {
            bail!("{failed} of {} sections failed", self.done.len());
        }
        Ok(())
    }
}

/// Runs a command with visible output.
///
/// # Errors
/// It cannot be started, or its exit status is not zero.
pub(crate) fn succeed(command: &mut Command) -> Result<CheckStatus> {
    let shown = shown(command);
    println!("$ {shown}");
    let status = command.status().with_context(|| shown.clone())?;
    ensure!(status.success(), "`{shown}` ended with {status}");
    Ok(CheckStatus::Passed)
}

fn shown(command: &Command) -> String {
    let program = std::path::Path::new(command.get_program());
    let program = program.file_name().unwrap_or(command.get_program()).to_string_lossy();
    command.get_args().fold(program.into_owned(), |line, argument| line + " " + &argument.to_string_lossy())
}
