//! A run of tests, one process for each. So a test has its own time, output and limits, and a hang ends one test.

pub(crate) mod documentation;
mod process;
mod program;
mod report;
mod schedule;

use std::num::NonZero;
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;

use anyhow::{Context, Result, ensure};

use crate::workspace::Workspace;
pub(crate) use process::{Finished, Outcome};
use program::Program;
pub(crate) use report::Report;
use schedule::Schedule;

/// The tests to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Those that are fast.
    Short,
    /// All, with those that take long.
    Long,
}

/// Starts the reason of tests that only [`Extent::Long`] runs.
const LONG: &str = "long: ";

/// Tests beyond one for each processor: those of real sockets wait half of their time or more.
const WAITING: usize = 5;

/// Requirements of some programs.
#[derive(Debug, Default)]
pub(crate) struct Surroundings {
    /// Starts programs that make networks.
    pub(crate) network_wrapper: Vec<String>,
    /// Names the reference peer to tests beside it: a variable and its value.
    pub(crate) libudt_peer: Option<(&'static str, String)>,
}

/// A test of a program.
#[derive(Debug)]
struct Test<'a> {
    program: &'a Program,
    name: String,
}

/// The test programs of the workspace.
#[derive(Debug)]
pub(crate) struct Suite {
    programs: Vec<Program>,
}

impl Suite {
    /// Builds every test program of the workspace with these features.
    ///
    /// # Errors
    /// Something does not compile.
    pub(crate) fn build(workspace: &Workspace, features: &[String]) -> Result<Self> {
        Ok(Self { programs: program::build(workspace, features)? })
    }

    /// Runs the tests, and prints those that fail, skip themselves or are slow.
    ///
    /// # Errors
    /// A test failed. The report has it as well.
    pub(crate) fn run(
        &self,
        workspace: &Workspace,
        extent: Extent,
        surroundings: &Surroundings,
        report: &mut Report,
    ) -> Result<()> {
        let mut tests = Vec::new();
        for program in &self.programs {
            let listed = program.tests().with_context(|| program.label.clone())?;
            for (name, reason) in listed.left_out {
                if extent == Extent::Long && reason.starts_with(LONG) {
                    tests.push(Test { program, name });
                } else {
                    report.leave_out(format!("{} {name}", program.label), reason);
                }
            }
            tests.extend(listed.names.into_iter().map(|name| Test { program, name }));
        }
        let outputs = output_folder(workspace)?;
        let schedule = Schedule::new(tests);
        let (sender, finished) = mpsc::channel();
        thread::scope(|scope| {
            for worker in 0..thread::available_parallelism().map_or(1, NonZero::get) + WAITING {
                let (schedule, sender) = (&schedule, sender.clone());
                let output = outputs.join(format!("worker-{worker}"));
                scope.spawn(move || {
                    while let Some(turn) = schedule.next() {
                        // The receiver lives until all workers have ended.
                        let _ = sender.send(process::run(turn.test(), surroundings, &output));
                    }
                });
            }
            drop(sender);
            finished.iter().for_each(|finished| report.add(finished));
        });
        ensure!(report.failed() == 0, "{} tests failed", report.failed());
        Ok(())
    }
}

/// A folder for the output of running tests.
fn output_folder(workspace: &Workspace) -> Result<PathBuf> {
    let folder = workspace.target.join("xtask-tests");
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    Ok(folder)
}
