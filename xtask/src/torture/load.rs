//! Busy machines and many peers.

use std::process::{Child, Command};
use std::time::Duration;

use anyhow::{Result, ensure};

use super::Outcome;
use super::bed::Bed;
use crate::clock::pause;

/// Processes that use all processors, until it ends.
struct Busy(Vec<Child>);

impl Busy {
    fn start(count: usize) -> Result<Self> {
        let mut all = Self(Vec::new());
        for _ in 0..count {
            all.0.push(Command::new("sh").args(["-c", "while :; do :; done"]).spawn()?);
        }
        Ok(all)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

pub(super) fn starved(bed: &Bed) -> Result<Outcome> {
    let source = bed.server(&[], "root", &["--plain"])?;
    let busy = Busy::start(8)?;
    bed.empty_target()?;
    let run = bed.pull(&[], &source.address, &["--plain"])?.end()?;
    drop(busy);
    ensure!(run.code == Some(0), "exit code {:?}: {}", run.code, run.stderr);
    bed.is_whole()?;
    Ok(Outcome::Right(format!("whole in {:.1} s beside eight loops", run.end["seconds"].as_f64().unwrap_or(0.0))))
}

pub(super) fn one_stalls(bed: &Bed) -> Result<Outcome> {
    bed.empty_target()?;
    let source = bed.server(&[], "root", &["--plain", "--timeout", "30s"])?;
    let relay = bed.relay(&source.address, &["--rate", "40mbit", "--delay", "5ms"])?;
    let stalled = bed.pull_to("stalled/", &relay.address, &["--plain"])?;
    pause(Duration::from_millis(300));
    stalled.signal("STOP")?;
    let others: Vec<_> = (0..8)
        .map(|number| bed.pull_to(&format!("other{number}/"), &source.address, &["--plain"]))
        .collect::<Result<_>>()?;
    for copy in others {
        let run = copy.end()?;
        ensure!(run.code == Some(0), "one of eight: exit code {:?}: {}", run.code, run.stderr);
    }
    for number in 0..8 {
        bed.is_whole_at(&format!("other{number}"))?;
    }
    stalled.signal("CONT")?;
    let run = stalled.end()?;
    ensure!(run.code == Some(0), "the one that stalled: exit code {:?}: {}", run.code, run.stderr);
    bed.is_whole_at("stalled")?;
    Ok(Outcome::Right("eight whole trees beside it, and its own after it went on".into()))
}
