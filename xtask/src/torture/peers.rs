//! Peers that lie, and peers of other versions. Each stands between an honest client and an honest server of a plain copy.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::Outcome;
use super::bed::Bed;
use super::middle::{Fate, Frame, From, Lies, Middle};
use crate::clock::pause;

/// Types of frames (crates/session/src/frame_kind.rs).
const OPEN: u8 = 0x01;
const ACCEPT: u8 = 0x02;
const ENTRY: u8 = 0x10;
const DATA: u8 = 0x11;
const DIGEST: u8 = 0x12;
const END: u8 = 0x13;
const CONTENT: u8 = 0x15;
const KNOWN: u8 = 0x22;
const CHUNK: u8 = 0x23;

/// Codes of a copy whose peer lies: some files failed, wrong bytes, a peer that is lost, another protocol.
const CODES: [i32; 4] = [3, 6, 8, 9];
/// The place of the empty file among the files of the tree.
const EMPTY_FILE: u32 = 4;
/// Entries of a list without end.
const ENDLESS: u32 = 300_000;
/// The budget of a receiver in memory, in KiB.
const MEMORY: u64 = 256 << 10;
/// The place of the version and of the oldest one in the body of OPEN, behind the mark.
const VERSIONS: std::ops::Range<usize> = 8..12;
/// The version of ACCEPT.
const ACCEPTED: std::ops::Range<usize> = 0..2;

/// A lie of the side that sends files.
struct Lie {
    name: &'static str,
    /// The fate of the frame with this number of its type, from 0 on.
    tell: fn(&Frame, u32) -> Fate,
}

const LIES: &[Lie] = &[
    Lie { name: "the digest of a file", tell: |frame, _| flipped_if(frame.kind == DIGEST, frame, 7) },
    Lie { name: "the digest of a chunk", tell: |frame, _| flipped_if(frame.kind == CHUNK, frame, 12) },
    Lie { name: "the content, each time", tell: |frame, _| flipped_if(frame.kind == DATA, frame, 3) },
    Lie {
        name: "an early end",
        tell: |frame, number| if frame.kind == DATA && number == 2 { Fate::Ends } else { Fate::Passes },
    },
    Lie {
        name: "an END before the content",
        tell: |frame, number| becomes_if(frame.kind == CONTENT && number == 1, || raw(END, &[0; 64])),
    },
    Lie {
        name: "a size that is another",
        tell: |frame, number| becomes_if(frame.kind == CONTENT && number == 1, || with(frame, 15, |byte| byte ^ 1)),
    },
    Lie {
        name: "a frame of 4 GiB",
        tell: |frame, number| {
            becomes_if(frame.kind == ENTRY && number == 1, || [&[ENTRY, 255, 255, 255, 255][..], &[7; 9000]].concat())
        },
    },
    Lie { name: "an absolute name", tell: |frame, number| named(frame, number, &[b"/evil"]) },
    Lie { name: "a name above the target", tell: |frame, number| named(frame, number, &[b"..", b"evil"]) },
    Lie { name: "a file that nobody asked for", tell: |frame, number| named(frame, number, &[b"evil"]) },
    Lie { name: "a name that is there twice", tell: |frame, number| twice(frame, number) },
];

fn flipped_if(is_meant: bool, frame: &Frame, at: usize) -> Fate {
    becomes_if(is_meant && frame.body.len() > at, || with(frame, at, |byte| byte ^ 0x10))
}

fn becomes_if(is_meant: bool, bytes: impl FnOnce() -> Vec<u8>) -> Fate {
    if is_meant { Fate::Becomes(bytes()) } else { Fate::Passes }
}

/// The frame with one byte of its body changed.
fn with(frame: &Frame, at: usize, change: impl FnOnce(u8) -> u8) -> Vec<u8> {
    let mut frame = frame.clone();
    if let Some(byte) = frame.body.get_mut(at) {
        *byte = change(*byte);
    }
    frame.bytes()
}

fn raw(kind: u8, body: &[u8]) -> Vec<u8> {
    Frame { kind, body: body.to_vec() }.bytes()
}

/// An entry with this path: a file of four bytes.
fn entry(path: &[&[u8]]) -> Vec<u8> {
    let mut body = vec![0, 0, 0, 1, 0xa4, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    body.extend(u16::try_from(path.len()).unwrap_or(0).to_be_bytes());
    for name in path {
        body.push(u8::try_from(name.len()).unwrap_or(0));
        body.extend_from_slice(name);
    }
    raw(ENTRY, &body)
}

fn named(frame: &Frame, number: u32, path: &[&[u8]]) -> Fate {
    becomes_if(frame.kind == ENTRY && number == 1, || entry(path))
}

fn twice(frame: &Frame, number: u32) -> Fate {
    becomes_if(frame.kind == ENTRY && number == 1, || [frame.bytes(), frame.bytes()].concat())
}

/// Tells a lie of one side. Frames are counted by their type.
fn told(side: From, mut tell: impl FnMut(&Frame, u32) -> Fate + Send + 'static) -> Lies {
    let mut counts = [0; 256];
    Box::new(move |from, frame| {
        if from != side {
            return Fate::Passes;
        }
        let count = &mut counts[usize::from(frame.kind)];
        *count += 1;
        tell(frame, *count - 1)
    })
}

/// A copy past the liar, and an honest one after it. Returns the exit code of the first.
fn lied_to(bed: &Bed, case: &str, is_push: bool, lies: Lies) -> Result<i32> {
    bed.empty_target()?;
    let server = bed.server(&[], if is_push { "to" } else { "root" }, &["--plain"])?;
    let middle = Middle::before(bed, &server.address, lies)?;
    let options = ["--plain", "--timeout", "2s", "--flows", "1"];
    let copy = |address: &str| {
        if is_push { bed.push(&[], address, &options) } else { bed.pull(&[], address, &options) }
    };
    let run = copy(&middle.address)?.end()?;
    let case = || format!("{case}, {}", if is_push { "push" } else { "pull" });
    if run.code == Some(0) {
        bed.is_whole().with_context(case)?;
    }
    ensure!(!bed.path("evil").exists() && !bed.path("to/evil").exists(), "{}: it left the target", case());
    bed.fails_cleanly(&run, &CODES, || copy(&server.address)).with_context(case)?;
    Ok(run.code.unwrap_or(-1))
}

pub(super) fn that_lie(bed: &Bed) -> Result<Outcome> {
    let mut ends = Vec::new();
    for (place, Lie { name, tell }) in LIES.iter().enumerate() {
        // In the short form, each lie in one direction.
        for is_push in
            [true, false].into_iter().filter(|is_push| bed.by_extent(place % 2 == usize::from(*is_push), true))
        {
            let sender = if is_push { From::Client } else { From::Server };
            let code = lied_to(bed, name, is_push, told(sender, *tell))?;
            ensure!(code != 0, "{name}: a copy with this lie succeeds");
            ends.push(code.to_string());
        }
    }
    for is_push in [true, false] {
        let sender = if is_push { From::Client } else { From::Server };
        let digest = |frame: &Frame, number| flipped_if(frame.kind == DIGEST && number == EMPTY_FILE, frame, 7);
        let code = lied_to(bed, "the digest of an empty file, once", is_push, told(sender, digest))?;
        ensure!(code == 0, "the digest of an empty file, once: exit code {code}");
    }
    // A bit of any frame, of either side.
    let seeds = bed.by_extent(6_usize, 60);
    for seed in 0..seeds {
        let (target, mut frames) = (3 + seed / 2, 0);
        let lies: Lies = Box::new(move |_, frame| {
            frames += 1;
            let at = seed.wrapping_mul(31) % frame.body.len().max(1);
            becomes_if(frames == target && frame.kind != OPEN, || with(frame, at, |byte| byte ^ (1 << (seed % 8))))
        });
        lied_to(bed, &format!("a wrong bit in frame {target}"), seed % 2 == 0, lies)?;
    }
    let (code, peak) = without_end(bed)?;
    false_claims(bed)?;
    Ok(Outcome::Right(format!(
        "{} lies: exit codes {}; the digest of an empty file, once: \
         whole; {seeds} wrong bits; {ENDLESS} entries: exit {code}, {} MB in memory; false claims \
         of chunks: whole",
        LIES.len(),
        ends.join(" "),
        peak / 1024
    )))
}

/// A list of entries that does not end. Returns the exit code, and the peak of memory in KiB.
fn without_end(bed: &Bed) -> Result<(i32, u64)> {
    bed.empty_target()?;
    let server = bed.server(&[], "root", &["--plain"])?;
    let lies = told(From::Server, |frame, number| {
        becomes_if(frame.kind == ENTRY && number == 1, || {
            let endless = (0..ENDLESS).flat_map(|number| entry(&[b"t", format!("{number:08}").as_bytes()]));
            endless.chain(frame.bytes()).collect()
        })
    });
    let middle = Middle::before(bed, &server.address, lies)?;
    let copy = bed.pull(&[], &middle.address, &["--plain", "--timeout", "2s", "--flows", "1"])?;
    let status = format!("/proc/{}/status", copy.id());
    let peak = Arc::new(Mutex::new(0));
    let its = Arc::clone(&peak);
    let watch = std::thread::spawn(move || {
        while let Ok(text) = std::fs::read_to_string(&status) {
            let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
            let Ok(now) = line.trim().trim_end_matches(" kB").parse::<u64>() else { break };
            *its.lock().expect("nothing fails under the lock") = now;
            pause(Duration::from_millis(20));
        }
    });
    let run = copy.end()?;
    let _ = watch.join();
    let peak = *peak.lock().expect("nothing fails under the lock");
    ensure!(peak < MEMORY, "{ENDLESS} entries took {peak} KiB of memory");
    ensure!(run.code != Some(0), "a list of entries that are not there: exit code 0");
    bed.fails_cleanly(&run, &CODES, || bed.pull(&[], &server.address, &["--plain"])).context("a list without end")?;
    Ok((run.code.unwrap_or(-1), peak))
}

/// A receiver that has other chunks than it says.
fn false_claims(bed: &Bed) -> Result<()> {
    for is_push in [true, false] {
        bed.empty_target()?;
        let rate = ["--plain", "--rate", "70mbit"];
        let server = bed.server(&[], if is_push { "to" } else { "root" }, &rate)?;
        let copy = |address: &str, options: &[&str]| {
            if is_push { bed.push(&[], address, options) } else { bed.pull(&[], address, options) }
        };
        let cut = copy(&server.address, &rate)?;
        bed.is_in_the_middle_of("z", 0)?;
        let _ = cut.signal("KILL");
        cut.end()?;
        let receiver = if is_push { From::Server } else { From::Client };
        let lies = told(receiver, |frame, _| flipped_if(frame.kind == KNOWN, frame, 20));
        // A daemon that lost its client notices after its time-out.
        pause(Duration::from_millis(2500));
        let middle = Middle::before(bed, &server.address, lies)?;
        let run = copy(&middle.address, &["--plain", "--flows", "1"])?.end()?;
        ensure!(run.code == Some(0), "false claims of chunks: exit code {:?}: {}", run.code, run.stderr);
        bed.is_whole().context("false claims of chunks")?;
    }
    Ok(())
}

pub(super) fn of_other_versions(bed: &Bed) -> Result<Outcome> {
    let mut count = 0;
    for version in bed.by_extent(&[1, 9][..], &[0_u16, 1, 9, u16::MAX]) {
        for (side, kind, place) in [(From::Client, OPEN, VERSIONS), (From::Server, ACCEPT, ACCEPTED)] {
            for is_push in [true, false] {
                bed.empty_target()?;
                let server = bed.server(&[], if is_push { "to" } else { "root" }, &["--plain"])?;
                let place = place.clone();
                let lies = told(side, move |frame, _| {
                    becomes_if(frame.kind == kind, || {
                        let mut frame = frame.clone();
                        let words = version.to_be_bytes().into_iter().cycle();
                        frame.body[place.clone()].iter_mut().zip(words).for_each(|(byte, word)| *byte = word);
                        frame.bytes()
                    })
                });
                let middle = Middle::before(bed, &server.address, lies)?;
                let options = ["--plain", "--timeout", "2s", "--flows", "1"];
                let copy = |address: &str| {
                    if is_push { bed.push(&[], address, &options) } else { bed.pull(&[], address, &options) }
                };
                let run = copy(&middle.address)?.end()?;
                let case = format!("version {version} of the {side:?}");
                ensure!(run.code == Some(9), "{case}: exit code {:?}: {}", run.code, run.stderr);
                ensure!(run.stderr.contains("update the older side"), "{case}: {}", run.stderr);
                bed.fails_cleanly(&run, &[9], || copy(&server.address)).context(case)?;
                count += 1;
            }
        }
    }
    Ok(Outcome::Right(format!(
        "{count} openings and answers of other versions: exit 9 with its reason; no older release exists"
    )))
}
