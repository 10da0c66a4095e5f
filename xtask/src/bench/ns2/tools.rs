//! Both simulators, each behind a function that runs one case.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{available_parallelism, scope};

use anyhow::{Context, Result, ensure};

use crate::clock::Stopwatch;
use crate::workspace::Workspace;

/// Identifies a simulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Simulator {
    Ours,
    Ns2,
}

/// One flow to simulate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    /// tahoe, reno, newreno, sack, or linux-LAW.
    pub(super) recovery: &'static str,
    pub(super) rate_mbit: u32,
    /// Delay in each direction.
    pub(super) delay_ms: u32,
    /// Queue limit in packets, without the one in transmission.
    pub(super) queue: u32,
    pub(super) loss: &'static str,
    pub(super) seed: u32,
    pub(super) seconds: u32,
    /// Start of counting.
    pub(super) cut: u32,
    /// The receiver's window, packets.
    pub(super) window: u32,
    /// When a second flow begins, s.
    pub(super) second: Option<u32>,
}

/// The result of a case.
#[derive(Clone, Copy, Debug)]
pub(super) struct CaseResult {
    /// Segments of all flows acknowledged after the cut, and those of the last flow among them.
    pub(super) segments: u64,
    pub(super) of_last: u64,
    /// Real time of the run.
    pub(super) seconds: f64,
}

/// Locations of the simulators.
#[derive(Debug)]
pub(super) struct Tools {
    example: PathBuf,
    script: PathBuf,
}

impl Tools {
    /// Builds our simulator, and checks that ns-2 is installed.
    pub(super) fn build(workspace: &Workspace) -> Result<Self> {
        let mut build = workspace.cargo();
        build.args(["build", "--release", "--quiet", "-p", "farhaul-sim", "--example", "tcp"]);
        ensure!(build.stdout(Stdio::null()).status()?.success(), "the simulator does not build");
        let script = workspace.root.join("xtask/src/bench/ns2/tcp.tcl");
        let tools = Self { example: workspace.target.join("release/examples/tcp"), script };
        let shortest = Case {
            recovery: "sack",
            rate_mbit: 10,
            delay_ms: 1,
            queue: 10,
            loss: "0",
            seed: 1,
            seconds: 2,
            cut: 1,
            window: 10,
            second: None,
        };
        tools.simulate(Simulator::Ns2, &shortest).context("ns-2 does not run: apt-get install ns2")?;
        Ok(tools)
    }

    /// Runs one case.
    pub(super) fn simulate(&self, simulator: Simulator, case: &Case) -> Result<CaseResult> {
        let mut command = self.command(simulator);
        let rate =
            if simulator == Simulator::Ours { format!("{}mbit", case.rate_mbit) } else { case.rate_mbit.to_string() };
        command.args([case.recovery, &rate, &case.delay_ms.to_string(), &case.queue.to_string(), case.loss]);
        let numbers = [case.seed, case.seconds, case.cut, case.window];
        command.args(numbers.map(|number| number.to_string())).args(case.second.map(|start| start.to_string()));
        command.stdin(Stdio::null());
        let stopwatch = Stopwatch::start();
        let output = command.output().with_context(|| format!("{command:?} does not start"))?;
        let seconds = stopwatch.elapsed().as_secs_f64();
        let text = String::from_utf8_lossy(&output.stdout);
        ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
        // ns-2 says more, in lines that do not begin with a number.
        let is_result = |line: &&str| line.split_whitespace().next().is_some_and(|word| word.parse::<i64>().is_ok());
        let flows = text.lines().filter(is_result).map(parse).collect::<Result<Vec<u64>>>()?;
        let of_last = *flows.last().with_context(|| format!("{command:?} prints nothing"))?;
        Ok(CaseResult { segments: flows.iter().sum(), of_last, seconds })
    }

    /// Runs cases in both simulators, on all cores. The results of ours come first.
    pub(super) fn simulate_both(&self, cases: &[Case]) -> Result<[Vec<CaseResult>; 2]> {
        let jobs: Vec<(Simulator, &Case)> = [Simulator::Ours, Simulator::Ns2]
            .into_iter()
            .flat_map(|by| cases.iter().map(move |case| (by, case)))
            .collect();
        let next = AtomicUsize::new(0);
        let results: Mutex<Vec<(usize, Result<CaseResult>)>> = Mutex::new(Vec::new());
        scope(|scope| {
            for _ in 0..available_parallelism().map_or(1, usize::from) {
                scope.spawn(|| {
                    while let Some((index, &(by, case))) =
                        Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|at| Some((at, jobs.get(at)?)))
                    {
                        let result = self.simulate(by, case);
                        results.lock().expect("no thread panics").push((index, result));
                    }
                });
            }
        });
        let mut results = results.into_inner().expect("no thread panicked");
        results.sort_by_key(|(index, _)| *index);
        let mut ours = results.into_iter().map(|(_, result)| result).collect::<Result<Vec<_>>>()?;
        let theirs = ours.split_off(cases.len());
        Ok([ours, theirs])
    }

    fn command(&self, simulator: Simulator) -> Command {
        match simulator {
            Simulator::Ours => Command::new(&self.example),
            Simulator::Ns2 => {
                let mut command = Command::new("ns");
                command.arg(&self.script);
                command
            }
        }
    }
}

/// `AT_CUT AT_END …`: the difference. ns-2 prints -1 before the first acknowledgement.
fn parse(output: &str) -> Result<u64> {
    let numbers: Vec<i64> = output.split_whitespace().map_while(|word| word.parse().ok()).collect();
    let [at_cut, at_end, ..] = numbers[..] else { anyhow::bail!("no number of segments in '{output}'") };
    u64::try_from(at_end - at_cut.max(0)).context("fewer segments are acknowledged at the end than at the cut")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_acknowledged_between_cut_and_end_count() {
        assert_eq!(parse("100 350 360 2\n").unwrap(), 250);
        assert_eq!(parse("-1 724701 733102 0\n").unwrap(), 724_701);
        assert!(parse("").is_err() && parse("error: no such thing").is_err() && parse("5 3").is_err());
    }
}
