//! Paths that carry a part: one direction alone, or small packets alone.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::Outcome;
use super::bed::Bed;
use super::wire::Wire;
use crate::clock::{Stopwatch, pause};

/// Options of sides that encrypt, and of sides that do not.
const TRUSTS: [(&[&str], &[&str]); 2] =
    [(&["--plain"], &["--plain"]), (&["--any-client"], &["--host-key-policy", "accept-new"])];
/// The time in which a sender without acknowledgements falls to probes: one second, and two round trips of nothing.
const FALL: Duration = Duration::from_secs(1);
/// The rest of the blackout, in which the probes are counted.
const BLIND: Duration = Duration::from_millis(1500);
/// Bytes before the blackout, of 9 MB.
const MIDDLE: u64 = 2_000_000;
/// Bytes of the full rate in that time.
const FULL: u64 = 20_000_000 / 8 * 3 / 2;
/// Most of them that may leave: probes alone, one full packet for each 20 ms.
const PROBES: u64 = 75 * 1500;
/// The longest pause of a copy after its packets have become too large.
const STALL: f64 = 3.0;
/// Headers included.
const LARGEST: u64 = 1300;

pub(super) fn without_acknowledgements(bed: &Bed) -> Result<Outcome> {
    let mut seen = Vec::new();
    for (serve, trust) in TRUSTS {
        // In the short form, an encrypted pull and a plain push.
        for is_push in
            [true, false].into_iter().filter(|is_push| bed.by_extent(*is_push == (serve == ["--plain"]), true))
        {
            bed.empty_target()?;
            let options = [&["--timeout", "20s", "--rate", "20mbit"], serve].concat();
            let server = bed.server(&[], if is_push { "to" } else { "root" }, &options)?;
            let wire = Wire::to(&server.address)?;
            let options = [&["--timeout", "20s", "--rate", "20mbit"], trust].concat();
            let copy =
                if is_push { bed.push(&[], &wire.address, &options)? } else { bed.pull(&[], &wire.address, &options)? };
            let (data, acknowledgements) = if is_push { (&wire.up, &wire.down) } else { (&wire.down, &wire.up) };
            let began = Stopwatch::start();
            while data.bytes() < MIDDLE {
                ensure!(began.elapsed() < BLIND * 10, "the copy does not begin");
                pause(Duration::from_millis(5));
            }
            acknowledgements.block(true);
            pause(FALL);
            let fallen = data.bytes();
            pause(BLIND);
            let probes = data.bytes() - fallen;
            acknowledgements.block(false);
            let run = copy.end()?;
            let case = format!("{} {}", if is_push { "push" } else { "pull" }, serve[0]);
            ensure!(run.code == Some(0), "{case}: exit code {:?}: {}", run.code, run.stderr);
            bed.is_whole().context(case.clone())?;
            ensure!(
                probes <= PROBES,
                "{case}: from 1 s to 2.5 s without acknowledgements {probes} bytes left, {} % of the rate; at most {PROBES} may",
                probes * 100 / FULL
            );
            seen.push(format!("{}", probes * 100 / FULL));
        }
    }
    Ok(Outcome::Right(format!("whole; from 1 s to 2.5 s without acknowledgements, {} % of the rate", seen.join(", "))))
}

/// The longest time in seconds between two records with more bytes.
fn longest_stall(records: &[Value]) -> f64 {
    let (mut last, mut longest) = ((0.0, 0), 0.0_f64);
    for record in records.iter().filter(|record| record["event"] == "interval" || record["event"] == "end") {
        let bytes = record["bytes_total"].as_u64().or(record["bytes"].as_u64()).unwrap_or(0);
        let at = record["end_seconds"].as_f64().or(record["seconds"].as_f64()).unwrap_or(0.0);
        if bytes > last.1 {
            longest = longest.max(at - last.0);
            last = (at, bytes);
        }
    }
    longest
}

pub(super) fn black_hole(bed: &Bed) -> Result<Outcome> {
    if let Some(why) = bed.lacks_networks() {
        return Ok(Outcome::Impossible(why));
    }
    let mut seen = Vec::new();
    for since in ["", ",2500ms"] {
        for (serve, trust) in
            TRUSTS.into_iter().filter(|(serve, _)| bed.by_extent(since.is_empty() == (*serve == ["--plain"]), true))
        {
            bed.empty_target()?;
            let largest = format!("{LARGEST}{since}");
            let path = ["--rate", "20mbit", "--delay", "5ms", "--largest-packet", &largest];
            let options = [&["--timeout", "20s", "--interval", "50ms"], trust].concat();
            let run = bed.push_over(&path, serve, &options)?.end()?;
            let case = format!("packets above {largest} bytes, {}", serve[0]);
            ensure!(run.code == Some(0), "{case}: exit code {:?}: {}", run.code, run.stderr);
            bed.is_whole().context(case.clone())?;
            let (stall, size) = (longest_stall(&run.records), run.end["mtu_bytes"].as_u64());
            ensure!(stall <= STALL, "{case}: it stood still for {stall:.1} s");
            ensure!(size.is_some_and(|size| size <= LARGEST), "{case}: packets of {size:?} bytes at the end");
            seen.push(format!("{stall:.1} s"));
        }
    }
    Ok(Outcome::Right(format!(
        "whole; from the start and after 2.5 s, plain or encrypted: stalls of {}",
        seen.join(", ")
    )))
}
