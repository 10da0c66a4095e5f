//! A run of checks in sections, and its summary.

use std::io::Write as _;
use std::panic::resume_unwind;
use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::clock::{Stopwatch, processor_time_of_children};

/// Status of a section that did not fail.
#[derive(Debug)]
pub(crate) enum CheckStatus {
    Passed,
    /// Could not run here, with the reason.
    Skipped(String),
}

/// A section that has ended.
#[derive(Debug)]
struct Section {
    title: String,
    status: Result<CheckStatus>,
    elapsed: Duration,
    /// Of its children, if the system tells.
    processor: Option<Duration>,
}

/// The sections so far.
#[derive(Debug)]
pub(crate) struct Sections {
    began: Stopwatch,
    done: Vec<Section>,
}

impl Default for Sections {
    fn default() -> Self {
        Self { began: Stopwatch::start(), done: Vec::new() }
    }
}

impl Sections {
    /// Runs one section under a heading. A failure does not prevent later sections.
    pub(crate) fn section(&mut self, title: &str, check: impl FnOnce() -> Result<CheckStatus>) {
        println!("\n━━ {title} {}", "━".repeat(76_usize.saturating_sub(title.chars().count())));
        let (stopwatch, before) = (Stopwatch::start(), processor_time_of_children());
        let status = check();
        match &status {
            Ok(CheckStatus::Passed) => {}
            Ok(CheckStatus::Skipped(why)) => println!("skipped: {why}"),
            Err(error) => println!("FAILED: {error:#}"),
        }
        let processor = processor_time_of_children().zip(before).map(|(after, before)| after.saturating_sub(before));
        self.done.push(Section { title: title.to_owned(), status, elapsed: stopwatch.elapsed(), processor });
        // The next section's children write to the same terminal.
        let _ = std::io::stdout().flush();
    }

    /// Runs a section while another one waits for most of its time. That one prints nothing before its end, and its
    /// processor time counts with the first.
    pub(crate) fn section_beside<T: Send>(
        &mut self,
        title: &str,
        check: impl FnOnce() -> Result<CheckStatus>,
        (waiting_title, waits): (&str, impl FnOnce() -> Result<T> + Send),
        end: impl FnOnce(T) -> CheckStatus,
    ) {
        let (ended, elapsed) = thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let stopwatch = Stopwatch::start();
                (waits(), stopwatch.elapsed())
            });
            self.section(title, check);
            waiting.join().unwrap_or_else(|panic| resume_unwind(panic))
        });
        self.section(waiting_title, || ended.map(end));
        if let Some(section) = self.done.last_mut() {
            (section.elapsed, section.processor) = (elapsed, None);
        }
    }

    /// Prints the summary.
    ///
    /// # Errors
    /// A section failed.
    pub(crate) fn finish(self) -> Result<()> {
        println!("\n━━ summary {}", "━".repeat(69));
        println!("{:<8} {:>7} {:>11}", "", "time", "processor");
        let (mut failed, mut processor_total) = (0, Duration::ZERO);
        for Section { title, status, elapsed, processor } in &self.done {
            processor_total += processor.unwrap_or_default();
            let (mark, why) = match status {
                Ok(CheckStatus::Passed) => ("ok", String::new()),
                Ok(CheckStatus::Skipped(why)) => ("skipped", format!("  {why}")),
                Err(error) => {
                    failed += 1;
                    ("FAILED", format!("  {error:#}"))
                }
            };
            println!("{mark:<8} {} {}  {title}{why}", seconds(Some(*elapsed), 5), seconds(*processor, 9));
        }
        println!("{:<8} {} {}  all", "", seconds(Some(self.began.elapsed()), 5), seconds(Some(processor_total), 9));
        if failed > 0 {
            bail!("{failed} of {} sections failed", self.done.len());
        }
        Ok(())
    }
}

fn seconds(time: Option<Duration>, width: usize) -> String {
    time.map_or_else(|| " ".repeat(width + 2), |time| format!("{:>width$.0} s", time.as_secs_f64()))
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

/// A command as one line.
pub(crate) fn shown(command: &Command) -> String {
    let program = std::path::Path::new(command.get_program());
    let program = program.file_name().unwrap_or(command.get_program()).to_string_lossy();
    command.get_args().fold(program.into_owned(), |line, argument| line + " " + &argument.to_string_lossy())
}
