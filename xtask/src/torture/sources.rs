//! Sources that change, damaged remains, and several copies at a time.

use std::fs;
use std::io::{Read, Seek, SeekFrom, Write};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::Outcome;
use super::bed::Bed;
use super::process::Process;
use crate::clock::pause;

const SLOW: [&str; 2] = ["--rate", "70mbit"];

pub(super) fn changing(bed: &Bed) -> Result<Outcome> {
    type Change = fn(&std::path::Path) -> std::io::Result<()>;
    let changes: [(&str, Change); 5] = [
        ("cut", |path| fs::File::options().write(true).open(path)?.set_len(2_000_000)),
        ("grown", |path| fs::File::options().append(true).open(path)?.write_all(&[7; 300_000])),
        ("rewritten", |path| fs::write(path, vec![9; 4_000_000])),
        ("replaced", |path| {
            let other = path.with_extension("new");
            fs::write(&other, vec![5; 3_100_000])?;
            fs::rename(other, path)
        }),
        ("removed", |path| fs::remove_file(path)),
    ];
    let path = bed.path("root/t/z");
    let before = fs::read(&path)?;
    let mut ends = Vec::new();
    for (name, change) in changes {
        fs::write(&path, &before)?;
        bed.empty_target()?;
        let source = bed.server(&[], "root", &[&["--plain"], &SLOW[..]].concat())?;
        let copy = bed.pull(&[], &source.address, &["--plain"])?;
        bed.has_begun()?;
        pause(Duration::from_millis(400));
        change(&path)?;
        let run = copy.end()?;
        let got = fs::read(bed.path("to/t/z"));
        match run.code {
            // On a busy machine the change may come before the file is listed, and a removed one is not listed.
            Some(0) => ensure!(
                match (got, fs::read(&path)) {
                    (Ok(got), now) => got == before || now.is_ok_and(|now| now == got),
                    (Err(_), now) => now.is_err(),
                },
                "{name}: mixed content"
            ),
            Some(3) => ensure!(got.is_err(), "{name}: a failed file has its name"),
            code => anyhow::bail!("{name}: exit code {code:?}: {}", run.stderr),
        }
        ends.push(format!("{name} {}", run.code.unwrap_or(-1)));
    }
    fs::write(&path, &before)?;
    Ok(Outcome::Right(format!("exit codes: {}", ends.join(", "))))
}

/// The place of the version in a journal (crates/disk/src/journal.rs).
const JOURNAL_VERSION: usize = 6;

/// The temporary file of the target with this ending.
fn left(bed: &Bed, ending: &str) -> Option<std::path::PathBuf> {
    let entries = fs::read_dir(bed.path("to/t")).ok()?.flatten().map(|entry| entry.path());
    entries.into_iter().find(|path| path.to_string_lossy().ends_with(ending))
}

/// A copy that is killed in the middle of its last file, with its source.
fn broken(bed: &Bed) -> Result<Process> {
    bed.empty_target()?;
    let source = bed.server(&[], "root", &[&["--plain"], &SLOW[..]].concat())?;
    let copy = bed.pull(&[], &source.address, &["--plain"])?;
    bed.is_in_the_middle_of("z", 0)?;
    copy.signal("KILL")?;
    copy.end()?;
    Ok(source)
}

pub(super) fn damaged_remains(bed: &Bed) -> Result<Outcome> {
    let path = bed.path("root/t/z");
    let before = fs::read(&path)?;
    fs::write(&path, before.iter().rev().copied().collect::<Vec<_>>())?;
    broken(bed)?;
    let other = fs::read(left(bed, ".fhjournal").context("another file left no journal")?)?;
    fs::write(&path, before)?;
    let harms =
        ["bit", "file cut", "journal cut", "journal rubbish", "journal of another file", "journal of a later version"];
    for harm in harms {
        let source = broken(bed)?;
        let part = left(bed, ".fhpart").context("nothing was left to damage")?;
        let journal = left(bed, ".fhjournal").context("no journal was left to damage")?;
        let mut file = fs::File::options().read(true).write(true).open(&part)?;
        let mut noted = fs::read(&journal)?;
        ensure!(noted != other, "both journals are of one file");
        match harm {
            "bit" => {
                let mut byte = [0];
                file.seek(SeekFrom::Start(1000))?;
                file.read_exact(&mut byte)?;
                file.seek(SeekFrom::Start(1000))?;
                file.write_all(&[byte[0] ^ 4])?;
            }
            "file cut" => file.set_len(file.metadata()?.len() / 2)?,
            "journal cut" => noted.truncate(noted.len().saturating_sub(9)),
            "journal of another file" => noted.clone_from(&other),
            "journal of a later version" => noted[JOURNAL_VERSION] += 1,
            _ => noted = vec![0x5a; 700],
        }
        fs::write(&journal, noted)?;
        let run = bed.pull(&[], &source.address, &["--plain"])?.end()?;
        ensure!(run.code == Some(0), "{harm}: exit code {:?}: {}", run.code, run.stderr);
        bed.is_whole().context(harm)?;
    }
    Ok(Outcome::Right(format!("{} kinds of damage, whole trees", harms.len())))
}

pub(super) fn twice(bed: &Bed) -> Result<Outcome> {
    bed.empty_target()?;
    let source = bed.server(&[], "root", &[&["--plain"], &SLOW[..]].concat())?;
    let copies = [bed.pull(&[], &source.address, &["--plain"])?, bed.pull(&[], &source.address, &["--plain"])?];
    for copy in copies {
        let run = copy.end()?;
        ensure!(matches!(run.code, Some(0 | 3 | 7)), "exit code {:?}: {}", run.code, run.stderr);
    }
    bed.is_whole()?;
    bed.empty_target()?;
    let target = bed.server(&[], "to", &["--plain"])?;
    let copies = [bed.push(&[], &target.address, &["--plain"])?, bed.push(&[], &target.address, &["--plain"])?];
    for copy in copies {
        let run = copy.end()?;
        ensure!(matches!(run.code, Some(0 | 3 | 7)), "exit code {:?}: {}", run.code, run.stderr);
    }
    bed.is_whole()?;
    Ok(Outcome::Right("pulls and pushes: whole".into()))
}
