//! Memory and threads that the system refuses.

use std::fs;
use std::ops::Range;

use anyhow::{Result, ensure};

use super::Outcome;
use super::bed::Bed;
use super::process::has;

/// The end of a program whose allocation fails.
const ABORT: i32 = 6;
const CODES: [i32; 3] = [1, 3, 7];
/// Calls that are made to fail. A brk(2) that fails has no error number, so strace cannot make one fail.
const CALLS: [(&str, &str); 2] = [("clone3", "EAGAIN"), ("mmap", "ENOMEM")];

/// The numbers of these calls in a copy that succeeds. Those before the first own one are of the loader, which ends by SIGSEGV or 127.
fn own_calls(bed: &Bed, calls: &str, address: &str) -> Result<Range<usize>> {
    bed.empty_target()?;
    // The standard library sets the signal stack of the first thread before the program begins.
    let (log, trace) = (bed.at("strace"), format!("trace={calls},sigaltstack"));
    let wrapper = ["strace", "-f", "-qq", "-o", &log, "-e", &trace];
    let run = bed.pull(&wrapper, address, &["--plain"])?.end()?;
    ensure!(run.code == Some(0), "exit code {:?}: {}", run.code, run.stderr);
    let log = fs::read_to_string(log)?;
    let is_meant = |line: &&str| line.contains(&format!("{calls}("));
    let of_loader = log.lines().take_while(|line| !line.contains("sigaltstack")).filter(is_meant).count();
    Ok(of_loader + 1..log.lines().filter(is_meant).count() + 1)
}

pub(super) fn refused(bed: &Bed) -> Result<Outcome> {
    if !has("strace") {
        return Ok(Outcome::Impossible("strace is missing".into()));
    }
    let source = bed.server(&[], "root", &["--plain"])?;
    let log = bed.at("strace");
    let (mut points, mut ends) = (0, std::collections::BTreeMap::<String, u32>::new());
    for (calls, error) in CALLS {
        let numbers = own_calls(bed, calls, &source.address)?;
        ensure!(!numbers.is_empty(), "a copy makes no call of {calls}");
        let step = numbers.len().div_ceil(bed.by_extent(4, 40)).max(1);
        for number in numbers.step_by(step) {
            // Once, or from then on.
            for more in ["", "+"] {
                bed.empty_target()?;
                let inject = format!("inject={calls}:error={error}:when={number}{more}");
                let wrapper = ["strace", "-f", "-qq", "-o", &log, "-e", &inject];
                let run = bed.pull(&wrapper, &source.address, &["--plain", "--timeout", "3s"])?.end()?;
                ensure!(
                    run.signal.is_none_or(|signal| signal == ABORT),
                    "{calls} fails at call {number}{more}: signal {:?}",
                    run.signal
                );
                let end = run.code.map_or("SIGABRT".to_owned(), |code| code.to_string());
                bed.fails_cleanly(&run, &CODES, || bed.pull(&[], &source.address, &["--plain"]))
                    .map_err(|error| error.context(format!("{calls} fails at call {number}{more}")))?;
                *ends.entry(end).or_default() += 1;
                points += 1;
            }
        }
    }
    let ends: Vec<String> = ends.iter().map(|(end, count)| format!("{end} {count} times")).collect();
    Ok(Outcome::Right(format!("{points} points; exit codes: {}; each copy went on", ends.join(", "))))
}
