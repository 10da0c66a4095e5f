//! Programs that are killed, stopped and suspended.

use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::Outcome;
use super::bed::Bed;
use super::process::has;
use crate::clock::{Stopwatch, pause};

/// Slow enough that signals hit the middle: 9 MB in a second.
const SLOW: [&str; 2] = ["--rate", "70mbit"];
/// System calls that change the disk.
const CHANGES: &[&str] = &[
    "pwrite64",
    "renameat2",
    "fsync,fdatasync,syncfs",
    "unlinkat",
    "fchmod",
    "utimensat",
    "mkdirat",
    "ftruncate",
    "fallocate",
    "flock",
    "fsetxattr",
    "fremovexattr",
    "openat",
];
/// Calls of one kind that are tried. Later ones are of the same files.
const MOST_CALLS: usize = 60;

pub(super) fn at_random(bed: &Bed) -> Result<Outcome> {
    let mut state = 88_172_645_463_325_252_u64;
    let kills = bed.by_extent(6, 40);
    for round in 0..kills {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let wait = Duration::from_millis(state % 1100);
        bed.empty_target()?;
        let source = bed.server(&[], "root", &[&["--plain"], &SLOW[..]].concat())?;
        let copy = bed.pull(&[], &source.address, &["--plain", "--timeout", "1s"])?;
        pause(wait);
        if round % 2 == 0 {
            // It may have ended just now.
            let _ = copy.signal("KILL");
        } else {
            drop(source);
        }
        let run = copy.end()?;
        let source = bed.server(&[], "root", &["--plain"])?;
        // A source that is killed before the connection is one that does not listen.
        bed.fails_cleanly(&run, &[4, 8], || bed.pull(&[], &source.address, &["--plain"]))?;
    }
    Ok(Outcome::Right(format!("{kills} kills, each copy went on")))
}

pub(super) fn at_each_change(bed: &Bed) -> Result<Outcome> {
    if !has("strace") {
        return Ok(Outcome::Impossible("strace is missing".into()));
    }
    let source = bed.server(&[], "root", &["--plain"])?;
    let (mut points, log) = (0, bed.at("strace"));
    for calls in CHANGES {
        // In the short form, some of them.
        let numbers = std::iter::successors(Some(1), |number| Some(bed.by_extent(number * 3, number + 1)));
        for number in numbers.take_while(|number| *number <= MOST_CALLS) {
            bed.empty_target()?;
            let inject = format!("inject={calls}:signal=KILL:when={number}");
            let wrapper = ["strace", "-f", "-qq", "-o", &log, "-e", &inject];
            let run = bed.pull(&wrapper, &source.address, &["--plain"])?.end()?;
            bed.fails_cleanly(&run, &[137], || bed.pull(&[], &source.address, &["--plain"]))
                .map_err(|error| error.context(format!("killed at call {number} of {calls}")))?;
            points += 1;
            if run.code == Some(0) {
                break;
            }
        }
    }
    Ok(Outcome::Right(format!("{points} points, each copy went on")))
}

pub(super) fn again_and_again(bed: &Bed) -> Result<Outcome> {
    bed.empty_target()?;
    let source = bed.server(&[], "root", &[&["--plain"], &SLOW[..]].concat())?;
    // The file has six chunks.
    let mut chunks = 0;
    for _ in 0..5 {
        let copy = bed.pull(&[], &source.address, &["--plain"])?;
        let noted = bed.is_in_the_middle_of("z", chunks.min(3))?;
        let _ = copy.signal("KILL");
        copy.end()?;
        bed.has_no_wrong_byte()?;
        ensure!(noted >= chunks, "{noted} chunks after {chunks} before");
        chunks = noted;
    }
    let run = bed.pull(&[], &source.address, &["--plain"])?.end()?;
    ensure!(run.code == Some(0), "{}", run.stderr);
    bed.is_whole()?;
    let moved = run.end["moved_bytes"].as_u64().unwrap_or(u64::MAX);
    let spared = run.end["spared_bytes"].as_u64().unwrap_or(0) + run.end["kept_bytes"].as_u64().unwrap_or(0);
    ensure!(spared > 0, "the sixth copy began anew and moved {moved} bytes");
    // The first chunk leaves before the sender knows what is there.
    let most = (1 + 6_u64.saturating_sub(chunks)) << 20;
    ensure!(moved <= most, "{chunks} of 6 chunks had arrived, and {moved} bytes were moved after that");
    Ok(Outcome::Right(format!("after five kills and {chunks} of 6 chunks, {moved} bytes were moved")))
}

pub(super) fn politely(bed: &Bed) -> Result<Outcome> {
    for (name, code) in [("TERM", 143), ("INT", 130)] {
        bed.empty_target()?;
        let source = bed.server(&[], "root", &[&["--plain"], &SLOW[..]].concat())?;
        let copy = bed.pull(&[], &source.address, &["--plain"])?;
        pause(Duration::from_millis(400));
        copy.signal(name)?;
        let began = Stopwatch::start();
        let run = copy.end()?;
        ensure!(run.code == Some(code), "{name}: exit code {:?}: {}", run.code, run.stderr);
        ensure!(began.elapsed() < Duration::from_secs(2), "{name}: it took {:?}", began.elapsed());
        bed.fails_cleanly(&run, &[code], || bed.pull(&[], &source.address, &["--plain"]))?;
    }
    Ok(Outcome::Right("exit 143 and 130 within 2 s, then whole".into()))
}

/// A copy of which one side stands still for a while.
struct Standstill {
    stops_source: bool,
    stands: Duration,
    /// The time-outs of the source and of the client.
    timeouts: [&'static str; 2],
    /// The end of the client.
    code: i32,
}

pub(super) fn suspended(bed: &Bed) -> Result<Outcome> {
    let stands = Duration::from_secs(bed.by_extent(3, 5));
    let impatient = "2s";
    let mut cases = Vec::new();
    for stops_source in [true, false] {
        // A side that waits for it, and itself with a time-out that has passed when it goes on.
        let timeouts = if stops_source { [impatient, "30s"] } else { ["30s", impatient] };
        cases.push(Standstill { stops_source, stands, timeouts, code: 0 });
        // A side that does not wait.
        let timeouts = if stops_source { ["30s", impatient] } else { [impatient, "4s"] };
        cases.push(Standstill { stops_source, stands, timeouts, code: 8 });
        if bed.by_extent(false, true) {
            let stands = Duration::from_secs(70);
            cases.push(Standstill { stops_source, stands, timeouts: ["100s"; 2], code: 0 });
        }
    }
    for Standstill { stops_source, stands, timeouts: [of_source, of_client], code } in cases {
        bed.empty_target()?;
        let source = bed.server(&[], "root", &[&["--plain", "--timeout", of_source], &SLOW[..]].concat())?;
        let copy = bed.pull(&[], &source.address, &["--plain", "--timeout", of_client])?;
        bed.has_begun()?;
        pause(Duration::from_millis(200));
        let signal = |name: &str| if stops_source { source.signal(name) } else { copy.signal(name) };
        signal("STOP")?;
        pause(stands);
        signal("CONT")?;
        let run = copy.end()?;
        let side = if stops_source { "source" } else { "client" };
        let case = || format!("the {side} stood still for {stands:?}, with time-outs of {of_source} and {of_client}");
        ensure!(run.code == Some(code), "{}: exit code {:?}: {}", case(), run.code, run.stderr);
        if code == 0 {
            bed.is_whole().with_context(case)?;
        }
        bed.fails_cleanly(&run, &[code], || bed.pull(&[], &source.address, &["--plain"])).with_context(case)?;
    }
    Ok(Outcome::Right(format!(
        "whole after either side stood still{}; exit 8 where the other one waits {impatient}, then whole",
        bed.by_extent("", ", for 70 s as well")
    )))
}
