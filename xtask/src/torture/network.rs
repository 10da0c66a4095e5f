//! Faults of the network, through a relay in user space.

use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::Outcome;
use super::bed::Bed;
use super::process::has;
use crate::clock::pause;

/// Connections that are opened at a time.
const AT_A_TIME: usize = 5;

/// Copies over a path in both directions, each time to an empty target. Returns the last end of a pull.
fn copies(bed: &Bed, path: &[&str], options: &[&str]) -> Result<serde_json::Value> {
    let trust: &[&str] = if options.contains(&"--plain") { &["--plain"] } else { &["--any-client"] };
    bed.empty_target()?;
    let source = bed.server(&[], "root", trust)?;
    let relay = bed.relay(&source.address, path)?;
    let more = if trust[0] == "--plain" { &[][..] } else { &["--host-key-policy", "accept-new"] };
    let run = bed.pull(&[], &relay.address, &[options, more].concat())?.end()?;
    ensure!(run.code == Some(0), "{path:?}: exit code {:?}: {}", run.code, run.stderr);
    bed.is_whole()?;
    Ok(run.end)
}

pub(super) fn loss(bed: &Bed) -> Result<Outcome> {
    let losses: [&[&str]; 5] = [
        &["--loss", "1%"],
        &["--loss", "10%"],
        &["--loss", "1%", "--loss-burst", "50"],
        &["--loss", "0.1%"],
        &["--loss", "30%"],
    ];
    let mut seen = Vec::new();
    for loss in &losses[..bed.by_extent(3, 5)] {
        if loss[1] == "30%" {
            // The copy then has the smallest window.
            bed.shorten(300_000)?;
        }
        let end = copies(bed, &[&["--delay", "10ms"], *loss].concat(), &["--plain"])?;
        seen.push(format!("{} in {:.1} s", loss[1], end["seconds"].as_f64().unwrap_or(0.0)));
    }
    Ok(Outcome::Right(format!("whole: {}", seen.join(", "))))
}

pub(super) fn reordering(bed: &Bed) -> Result<Outcome> {
    copies(bed, &["--delay", "20ms", "--reorder", "10%", "--duplicate", "5%"], &["--plain"])?;
    Ok(Outcome::Right("a whole tree".into()))
}

pub(super) fn damage(bed: &Bed) -> Result<Outcome> {
    copies(bed, &["--delay", "5ms", "--corrupt", "0.1%"], &[])?;
    // In plain, a damaged byte of content is found and comes again. One of a frame's header may break the session off, and with one of
    // 1000 packets damaged, half of the chunks are, so that some arrive damaged three times.
    let source = bed.server(&[], "root", &["--plain"])?;
    let mut seen = Vec::new();
    for (share, most_broken) in [("0.01%", 1), ("0.1%", 8)] {
        let (mut broken, mut repaired) = (0, 0);
        for seed in 1..=8 {
            bed.empty_target()?;
            let seed = seed.to_string();
            let relay = bed.relay(&source.address, &["--delay", "5ms", "--corrupt", share, "--seed", &seed])?;
            let run = bed.pull(&[], &relay.address, &["--plain", "--timeout", "3s"])?.end()?;
            repaired += run.end["repaired_chunks"].as_u64().unwrap_or(0);
            broken += u32::from(run.code != Some(0));
            bed.fails_cleanly(&run, &[4, 6, 8, 9], || bed.pull(&[], &source.address, &["--plain"]))
                .with_context(|| format!("{share} of the packets damaged, seed {seed}"))?;
        }
        ensure!(repaired > 0, "nothing was repaired in eight copies, so nothing was proven");
        ensure!(broken <= most_broken, "with {share} of the packets damaged, {broken} of 8 copies broke off");
        seen.push(format!("at {share} {repaired} chunks repaired, {broken} of 8 copies broke off and went on"));
    }
    Ok(Outcome::Right(format!("encrypted: whole; plain: {}", seen.join("; "))))
}

pub(super) fn blackouts(bed: &Bed) -> Result<Outcome> {
    let source = bed.server(&[], "root", &["--plain", "--timeout", "60s"])?;
    let relay = bed.relay(&source.address, &["--delay", "5ms", "--rate", "20mbit"])?;
    for blackouts in bed.by_extent(&[&[2, 2][..]][..], &[&[2, 2, 2], &[45]]) {
        bed.empty_target()?;
        let copy = bed.pull(&[], &relay.address, &["--plain", "--timeout", "60s"])?;
        bed.has_begun()?;
        for seconds in *blackouts {
            pause(Duration::from_millis(700));
            relay.signal("STOP")?;
            pause(Duration::from_secs(*seconds));
            relay.signal("CONT")?;
        }
        let run = copy.end()?;
        ensure!(run.code == Some(0), "blackouts of {blackouts:?} s: exit code {:?}: {}", run.code, run.stderr);
        bed.is_whole()?;
    }
    bed.empty_target()?;
    let copy = bed.pull(&[], &relay.address, &["--plain", "--timeout", "2s"])?;
    bed.has_begun()?;
    pause(Duration::from_millis(300));
    drop(relay);
    let run = copy.end()?;
    ensure!(run.code == Some(8), "a blackout for good: exit code {:?}: {}", run.code, run.stderr);
    bed.fails_cleanly(&run, &[8], || bed.pull(&[], &source.address, &["--plain"]))?;
    Ok(Outcome::Right(format!("2 s{}: whole; for good: exit 8, then whole", bed.by_extent("", ", and 45 s"))))
}

pub(super) fn satellite(bed: &Bed) -> Result<Outcome> {
    if let Some(size) = bed.by_extent(Some(200_000), None) {
        bed.shorten(size)?;
    }
    let path = ["--delay", "300ms", "--rate", "1gbit", "--loss", "2%", "--queue", "40kB"];
    let end = copies(bed, &path, &["--plain"])?;
    Ok(Outcome::Right(format!("whole in {:.1} s", end["seconds"].as_f64().unwrap_or(0.0))))
}

pub(super) fn silence(bed: &Bed) -> Result<Outcome> {
    bed.empty_target()?;
    let source = bed.server(&[], "root", &["--plain"])?;
    source.signal("STOP")?;
    let run = bed.pull(&[], &source.address, &["--plain"])?.end()?;
    ensure!(run.code == Some(4), "exit code {:?}: {}", run.code, run.stderr);
    let seconds = run.end["seconds"].as_f64().unwrap_or(0.0);
    ensure!(seconds <= 12.0, "it took {seconds} s");
    source.signal("CONT")?;
    bed.fails_cleanly(&run, &[4], || bed.pull(&[], &source.address, &["--plain"]))?;
    Ok(Outcome::Right(format!("exit 4 after {seconds:.1} s, then whole")))
}

pub(super) fn rebinding(bed: &Bed) -> Result<Outcome> {
    bed.empty_target()?;
    let source = bed.server(&[], "root", &["--any-client", "--timeout", "20s"])?;
    let path = ["--delay", "5ms", "--rate", "20mbit"];
    let mut relay = bed.relay(&source.address, &path)?;
    let address = relay.address.clone();
    let options = ["--host-key-policy", "accept-new", "--timeout", "20s"];
    let copy = bed.pull(&[], &address, &options)?;
    for _ in 0..3 {
        pause(Duration::from_millis(800));
        drop(relay);
        // The next relay has another port towards the server, as a NAT that has forgotten the first one.
        relay = bed.relay_at(&address, &source.address, &path)?;
    }
    let run = copy.end()?;
    ensure!(run.code == Some(0), "exit code {:?}: {}", run.code, run.stderr);
    bed.is_whole()?;
    let seconds = run.end["seconds"].as_f64().unwrap_or(0.0);
    ensure!(seconds > 2.4, "the copy ended after {seconds} s, before the last change");
    Ok(Outcome::Right(format!("whole in {seconds:.1} s over four ports")))
}

pub(super) fn hard_handshakes(bed: &Bed) -> Result<Outcome> {
    let source = bed.server(&[], "root", &["--any-client"])?;
    let options = ["--host-key-policy", "accept-new"];
    let (connections, mut failed) = (bed.by_extent(4, 25), 0);
    for path in [["--loss", "30%"], ["--corrupt", "30%"]] {
        for seeds in (1..=connections).collect::<Vec<u32>>().chunks(AT_A_TIME) {
            let begin = |seed: &u32| -> Result<_> {
                let relay = bed
                    .relay(&source.address, &[&path[..], &["--delay", "5ms", "--seed", &seed.to_string()]].concat())?;
                let list = bed.list(&relay.address, &options)?;
                Ok((relay, list))
            };
            for (_relay, list) in seeds.iter().map(begin).collect::<Result<Vec<_>>>()? {
                failed += u32::from(list.end()?.code != Some(0));
            }
        }
    }
    ensure!(failed <= 1, "{failed} of {} connections did not open", 2 * connections);
    Ok(Outcome::Right(format!("{} of {} connections opened", 2 * connections - failed, 2 * connections)))
}

pub(super) fn broken_sockets(bed: &Bed) -> Result<Outcome> {
    if !has("strace") {
        return Ok(Outcome::Impossible("strace is missing".into()));
    }
    let source = bed.server(&[], "root", &["--plain"])?;
    let log = bed.at("strace");
    let faults = [
        "sendto,sendmsg,sendmmsg:error=ENOBUFS:when=5+7",
        "sendto,sendmsg,sendmmsg:error=EPERM:when=5+11",
        "sendto,sendmsg,sendmmsg:error=ENETUNREACH:when=6+11",
        "sendto,sendmsg,sendmmsg:error=EINTR:when=4+5",
        "recvfrom,recvmsg,recvmmsg:error=ECONNREFUSED:when=5+7",
        "recvfrom,recvmsg,recvmmsg:error=EINTR:when=4+5",
    ];
    for fault in faults {
        bed.empty_target()?;
        let inject = format!("inject={fault}");
        let wrapper = ["strace", "-f", "-qq", "-o", &log, "-e", &inject];
        let run = bed.pull(&wrapper, &source.address, &["--plain"])?.end()?;
        ensure!(run.code == Some(0), "{fault}: exit code {:?}: {}", run.code, run.stderr);
        bed.is_whole().map_err(|error| error.context(fault))?;
    }
    Ok(Outcome::Right(format!("{} faults, whole trees", faults.len())))
}
