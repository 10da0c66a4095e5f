//! Power loss: the calls of a copy are recorded, and each state that a crash may leave is judged, and some are gone on from.

mod model;
mod record;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context, Result, ensure};

use super::Outcome;
use super::bed::{Bed, OLD, tree};
use super::process::has;
use model::{Left, Lost, Model};

/// Size of the large files: two chunks. The log has each byte.
const SIZE: u64 = 1_100_000;
/// The longest write that the log keeps.
const LONGEST_WRITE: &str = "1100000";

/// Random draws, the same in each run (xorshift).
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> bool {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 & 64 != 0
    }
}

/// The model of a copy with these options.
fn recorded(bed: &Bed, address: &str, options: &[&str]) -> Result<Model> {
    bed.empty_target()?;
    let logs = bed.path("logs");
    let _ = fs::remove_dir_all(&logs);
    fs::create_dir_all(&logs)?;
    let (log, trace) = (bed.at("logs/log"), format!("trace={}", record::CALLS));
    let wrapper = ["strace", "-ff", "-ttt", "-T", "-y", "-x", "-qq", "-s", LONGEST_WRITE, "-o", &log, "-e", &trace];
    let run = bed.pull(&wrapper, address, &[&["--plain"], options].concat())?.end()?;
    ensure!(run.code == Some(0), "exit code {:?}: {}", run.code, run.stderr);
    bed.is_whole()?;
    // Relative to the target, and of it alone.
    let to = bed.at("to");
    let calls = record::read(&logs, "log")?.into_iter().filter(|call| call.is_below(&to)).collect();
    Model::new(
        BTreeMap::from([(format!("{to}/t/b"), OLD.to_vec())]),
        BTreeSet::from([to.clone(), format!("{to}/t")]),
        calls,
    )
}

/// What is wrong with a state. `is_over` says that the copy has ended with exit code 0.
fn wrong(bed: &Bed, want: &BTreeMap<String, Vec<u8>>, left: &Left<'_>, is_over: bool) -> Option<String> {
    let below = format!("{}/", bed.at("to/t"));
    for path in left.names() {
        let name = path.strip_prefix(&below).unwrap_or(path);
        if name.ends_with(".fhpart") || name.ends_with(".fhjournal") {
            continue;
        }
        let content = left.content(path).unwrap_or_default();
        if want.get(name) != Some(&content) && !(name == "b" && content == OLD && !is_over) {
            return Some(format!("{name} has wrong bytes under its final name"));
        }
    }
    let has = |name: &str| left.names().any(|path| path.strip_prefix(&below) == Some(name));
    if let Some(name) = want.keys().find(|name| (is_over || *name == "b") && !has(name)) {
        return Some(format!("{name} is missing"));
    }
    None
}

/// Judges all states. Returns how many there are, and how many are wrong with the first reason.
fn judged(bed: &Bed, model: &Model, draws: usize) -> Result<(usize, usize, String)> {
    let want = tree(&bed.path("root/t"))?;
    let (mut random, mut states, mut bad, mut first) = (Draws(88_172_645_463_325_252), 0, 0, String::new());
    for instant in model.instants() {
        for variant in 0..2 + draws {
            for lost in [Lost::Whole, Lost::Zeroed] {
                let left = model.after(instant, lost, || match variant {
                    0 => false,
                    1 => true,
                    _ => random.next(),
                });
                states += 1;
                if let Some(why) = wrong(bed, &want, &left, instant == f64::INFINITY) {
                    bad += 1;
                    if first.is_empty() {
                        first = why;
                    }
                }
            }
        }
    }
    Ok((states, bad, first))
}

/// Makes a state real, and copies once more.
fn goes_on(bed: &Bed, address: &str, left: &Left<'_>) -> Result<()> {
    let _ = fs::remove_dir_all(bed.path("to"));
    fs::create_dir_all(bed.path("to"))?;
    left.directories.iter().try_for_each(fs::create_dir_all)?;
    left.names().try_for_each(|path| fs::write(path, left.content(path).unwrap_or_default()))?;
    let run = bed.pull(&[], address, &["--plain"])?.end()?;
    ensure!(run.code == Some(0), "exit code {:?}: {}", run.code, run.stderr);
    bed.is_whole()
}

pub(super) fn power_loss(bed: &Bed) -> Result<Outcome> {
    if !has("strace") {
        return Ok(Outcome::Impossible("strace is missing".into()));
    }
    bed.shorten(SIZE)?;
    let source = bed.server(&[], "root", &["--plain"])?;
    let model = recorded(bed, &source.address, &[])?;
    let (states, bad, first) = judged(bed, &model, bed.by_extent(1, 40))?;
    ensure!(bad == 0, "{bad} of {states} states are wrong; the first: {first}");
    let (mut random, instants, count) = (Draws(9), model.instants(), bed.by_extent(8, 60));
    for number in 0..count {
        let instant = instants[number * instants.len() / count];
        let lost = if number % 2 == 0 { Lost::Whole } else { Lost::Zeroed };
        let left = model.after(instant, lost, || random.next());
        goes_on(bed, &source.address, &left).with_context(|| format!("from state {number}"))?;
    }
    // Without syncs, the same judgement finds wrong files.
    let (_, without, _) = judged(bed, &recorded(bed, &source.address, &["--fsync", "never"])?, 0)?;
    ensure!(without > 0, "the model finds nothing wrong with a copy that syncs nothing, so it proves nothing");
    Ok(Outcome::Right(format!(
        "{states} states: old or complete; {count} went on; with --fsync never, {without} states would be wrong"
    )))
}
