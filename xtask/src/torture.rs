//! `cargo xtask torture`: the program under faults, as real processes on this machine.
//!
//! Each row provokes one kind of fault in a copy of a small tree, and judges what is left. **Right** means that the copy ends
//! with exit code 0 and equal trees without leftovers, or that it ends with a documented code, no wrong byte has a final name, and
//! the same command succeeds afterwards.
//!
//! ```text
//! cargo xtask torture                 all rows
//! cargo xtask torture K2 N1           these rows
//! cargo xtask torture --list
//! cargo xtask torture --short         the small form that the tests have, several rows at a time
//! ```

mod bed;
mod clocks;
mod crashes;
mod disks;
mod kills;
mod load;
mod middle;
mod names;
mod network;
mod paths;
mod peers;
mod process;
mod remote;
mod schedule;
mod shortage;
mod sources;
mod spoofing;
mod wire;

use std::path::Path;

use anyhow::{Result, bail, ensure};

use crate::clock::Stopwatch;
use crate::suite::Extent;
use crate::workspace::Workspace;
use bed::Bed;
use schedule::Finished;
use spoofing::attacker;

/// The faults, by the letters of the reliability plan: N for the network, K for kills, S for suspended
/// programs and clocks, D for disks, P for peers, R for resources.
const ROWS: &[Row] = &[
    Row::new("N1", "loss from 0.1 to 30 %, in bursts as well", network::loss),
    Row::new("N2", "reordering by up to 20 ms, and duplicates", network::reordering),
    Row::new("N3", "damaged packets, encrypted and plain", network::damage),
    Row::new("N4", "blackouts of 2 and 45 s, and one for good", network::blackouts),
    Row::new("N5", "no acknowledgement arrives for 2.5 s", paths::without_acknowledgements),
    Row::new("N6", "packets above 1300 bytes vanish, from the start and in the middle", paths::black_hole),
    Row::new("N7", "a NAT that forgets its ports", network::rebinding),
    Row::new("N8", "an RTT of 600 ms with 2 % loss and a short queue", network::satellite),
    Row::new("N9", "nobody answers", network::silence),
    Row::new("N10", "30 % loss and 30 % damage in handshakes", network::hard_handshakes),
    Row::new("N11", "forged packets of off-path attackers, 10000 per second", spoofing::attackers).alone(),
    Row::new("N12", "one of nine clients stalls", load::one_stalls).alone(),
    Row::new("K1", "SIGKILL of either side at random times", kills::at_random),
    Row::new("K2", "SIGKILL at each system call that changes the disk", kills::at_each_change),
    Row::new("K3", "SIGKILL during a resume of a resume, five deep", kills::again_and_again),
    Row::new("K4", "power loss: what was not synced is lost, whole or in part", crashes::power_loss),
    Row::new("K5", "SIGTERM and SIGINT", kills::politely),
    Row::new("K6", "SIGKILL of ssh in the middle of a copy", remote::without_ssh),
    Row::new("S1", "SIGSTOP of either side, for 5 and 70 s", kills::suspended),
    Row::new("S2", "clocks that begin with zero or ten years later", clocks::elsewhere),
    Row::new("S3", "eight loops on all processors", load::starved).alone(),
    Row::new("D1", "a full disk at the first, the middle and the last write", disks::full),
    Row::new("D2", "EIO of reads, writes and syncs", disks::broken),
    Row::new("D3", "limits of file size, and of open files", disks::limits),
    Row::new("D4", "files that may not be read, directories that may not be written to", disks::forbidden),
    Row::new("D5", "interrupted and short calls", disks::short),
    Row::new("D6", "a slow disk of the receiver", disks::slow),
    Row::new("D7", "a source that is cut, grows, is rewritten, replaced or removed", sources::changing),
    Row::new("D8", "damaged remains of a broken copy", sources::damaged_remains),
    Row::new("D9", "a directory of the target that turns into a link", names::swapped),
    Row::new("D10", "names that nobody would choose, deep paths, 4 GiB of holes", names::hostile),
    Row::new("D11", "two copies to one target at a time", sources::twice),
    Row::new("D12", "errors of the socket calls", network::broken_sockets),
    Row::new("P1", "a peer that lies", peers::that_lie),
    Row::new("P2", "a peer of another version", peers::of_other_versions),
    Row::new("R1", "memory and threads that the system refuses", shortage::refused),
];

/// One kind of fault.
struct Row {
    id: &'static str,
    fault: &'static str,
    run: fn(&Bed) -> Result<Outcome>,
    company: Company,
}

impl Row {
    const fn new(id: &'static str, fault: &'static str, run: fn(&Bed) -> Result<Outcome>) -> Self {
        Self { id, fault, run, company: Company::Any }
    }

    const fn alone(self) -> Self {
        Self { company: Company::Alone, ..self }
    }
}

/// The rows that may run at the same time, in the short form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Company {
    /// It mostly waits.
    Any,
    /// It uses the processors, or measures.
    Alone,
}

/// The end of a row that found no fault of the program.
enum Outcome {
    /// With what was seen.
    Right(String),
    /// This machine cannot provoke it.
    Impossible(String),
}

/// Runs the rows that the arguments name, or all.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    if arguments.iter().any(|argument| argument == "--list") {
        ROWS.iter().for_each(|row| println!("{:<4} {}", row.id, row.fault));
        return Ok(());
    }
    if let Some((_, arguments)) = arguments.split_first().filter(|(first, _)| *first == attacker::OPTION) {
        return attacker::run(arguments);
    }
    let (options, ids): (Vec<_>, Vec<_>) = arguments.iter().partition(|argument| argument.starts_with('-'));
    let extent = match options[..] {
        [] => Extent::Long,
        [word] if word == "--short" => Extent::Short,
        _ => bail!("`torture` takes --short, --list and the names of rows"),
    };
    if let Some(unknown) = ids.iter().find(|id| !ROWS.iter().any(|row| row.id.eq_ignore_ascii_case(id))) {
        bail!("there is no row {unknown}; cargo xtask torture --list names them");
    }
    let mut build = workspace.cargo();
    ensure!(build.args(["build", "--quiet", "-p", "farhaul-cli"]).status()?.success(), "it does not build");
    let is_meant = |row: &&Row| ids.is_empty() || ids.iter().any(|id| row.id.eq_ignore_ascii_case(id));
    let rows: Vec<_> = ROWS.iter().filter(is_meant).collect();
    judge(&workspace.target.join("debug/farhaul"), extent, &rows, &mut |line| println!("{line}")).map(drop)
}

/// Rows in their short form that have run without a fault of the program.
pub(crate) struct Checked {
    /// What each row has seen.
    pub(crate) lines: Vec<String>,
    /// Rows that this machine cannot provoke, and why.
    pub(crate) left_out: Vec<(String, String)>,
}

/// Runs all rows of that company in their short form, with a program that is built.
pub(crate) fn check(program: &Path, company: Company) -> Result<Checked> {
    let rows: Vec<&Row> = ROWS.iter().filter(|row| row.company == company).collect();
    let mut lines = Vec::new();
    match judge(program, Extent::Short, &rows, &mut |line| lines.push(line)) {
        Ok(left_out) => {
            let left_out = left_out.into_iter().map(|(row, why)| (format!("faults {}", row.id), why)).collect();
            Ok(Checked { lines, left_out })
        }
        Err(error) => Err(error.context(lines.join("\n"))),
    }
}

/// Runs rows. Returns those that this machine cannot provoke, and why.
fn judge<'a>(
    program: &Path,
    extent: Extent,
    rows: &[&'a Row],
    say: &mut dyn FnMut(String),
) -> Result<Vec<(&'a Row, String)>> {
    let (mut right, mut wrong, mut left_out) = (0, 0, Vec::new());
    let began = Stopwatch::start();
    schedule::run(program, extent, rows, |Finished { row, elapsed, outcome }| {
        let (word, what) = match outcome {
            Ok(Outcome::Right(seen)) => {
                right += 1;
                ("right", seen)
            }
            Ok(Outcome::Impossible(why)) => {
                left_out.push((row, why.clone()));
                ("cannot", why)
            }
            Err(error) => {
                wrong += 1;
                ("WRONG", format!("{error:#}"))
            }
        };
        say(format!("{:<4} {word:<6} {:>6.1} s  {}: {what}", row.id, elapsed.as_secs_f64(), row.fault));
    });
    say(format!(
        "{right} right, {wrong} wrong, {} that this machine cannot provoke, in {:.0} s",
        left_out.len(),
        began.elapsed().as_secs_f64()
    ));
    ensure!(wrong == 0, "{wrong} of the faults broke a promise");
    Ok(left_out)
}
