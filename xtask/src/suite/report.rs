//! The results of all tests.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::suite::process::{Finished, Outcome};

/// A slower test needs a reason beside it.
const SLOW: Duration = Duration::from_secs(5);
/// Length of the list of the slowest tests.
const SLOWEST: usize = 20;
const SLOWEST_PROGRAMS: usize = 10;

/// The results so far.
#[derive(Debug, Default)]
pub(crate) struct Report {
    passed: usize,
    failed: Vec<String>,
    /// Tests that did not run or proved nothing, by the reason.
    skipped: BTreeMap<String, Vec<String>>,
    times: Vec<(Duration, String)>,
    /// The time of all tests of a program.
    programs: BTreeMap<String, Duration>,
}

impl Report {
    /// Counts a test that has ended, and prints it unless it passed in time.
    pub(crate) fn add(&mut self, finished: Finished) {
        let Finished { label, name, elapsed, outcome } = finished;
        let name = format!("{label} {name}");
        let seconds = elapsed.as_secs_f64();
        match outcome {
            Outcome::Passed => {
                self.passed += 1;
                if elapsed >= SLOW {
                    println!("slow    {seconds:>6.1} s  {name}");
                }
            }
            Outcome::Skipped(reason) => {
                println!("skipped {seconds:>6.1} s  {name}: {reason}");
                self.leave_out(name.clone(), reason);
            }
            Outcome::Failed(why) => {
                println!("FAILED  {seconds:>6.1} s  {name}: {}\n", why.trim_end());
                self.failed.push(name.clone());
            }
        }
        self.times.push((elapsed, name));
        *self.programs.entry(label).or_default() += elapsed;
    }

    /// Counts tests that another program ran.
    pub(crate) fn add_counts(&mut self, passed: usize, failed: usize) {
        self.passed += passed;
        self.failed.extend((0..failed).map(|_| "a documentation test".to_owned()));
    }

    /// Counts a test that does not run.
    pub(crate) fn leave_out(&mut self, name: String, reason: String) {
        self.skipped.entry(reason).or_default().push(name);
    }

    pub(crate) fn failed(&self) -> usize {
        self.failed.len()
    }

    /// Prints the slowest tests, those left out, those that failed, and the line that counts them.
    pub(crate) fn print(mut self) {
        self.times.sort_by(|a, b| b.cmp(a));
        println!("\nthe slowest of {} tests:", self.times.len());
        for (elapsed, name) in self.times.iter().take(SLOWEST) {
            println!("{:>8.1} s  {name}", elapsed.as_secs_f64());
        }
        let mut programs: Vec<_> = self.programs.iter().map(|(label, time)| (time, label)).collect();
        programs.sort_by(|a, b| b.cmp(a));
        println!("\nthe slowest programs, with the time of all their tests:");
        for (time, label) in programs.into_iter().take(SLOWEST_PROGRAMS) {
            println!("{:>8.1} s  {label}", time.as_secs_f64());
        }
        if !self.skipped.is_empty() {
            println!("\nleft out:");
        }
        for (reason, names) in &self.skipped {
            println!("{reason}");
            names.iter().for_each(|name| println!("    {name}"));
        }
        self.failed.iter().for_each(|name| println!("FAILED {name}"));
        let skipped: usize = self.skipped.values().map(Vec::len).sum();
        println!("\n{} passed, {} failed, {skipped} skipped", self.passed, self.failed.len());
    }
}
