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
//! ```

mod bed;
mod disks;
mod kills;
mod load;
mod names;
mod network;
mod sources;

use std::process::Command;

use anyhow::{Result, bail, ensure};

use crate::clock::Stopwatch;
use crate::workspace::Workspace;
use bed::Bed;

/// The faults, by the letters of the reliability plan: N for the network, K for kills, S for suspended programs, D for disks.
const ROWS: &[Row] = &[
    Row { id: "N1", fault: "loss of 1 and 10 %, in bursts as well", run: network::loss },
    Row { id: "N2", fault: "reordering by up to 20 ms, and duplicates", run: network::reordering },
    Row { id: "N3", fault: "damaged packets, encrypted and plain", run: network::damage },
    Row { id: "N4", fault: "blackouts of 2 s, and one for good", run: network::blackouts },
    Row { id: "N7", fault: "a NAT that forgets its ports", run: network::rebinding },
    Row { id: "N8", fault: "an RTT of 600 ms with 2 % loss and a short queue", run: network::satellite },
    Row { id: "N9", fault: "nobody answers", run: network::silence },
    Row { id: "N10", fault: "30 % loss and 30 % damage in handshakes", run: network::hard_handshakes },
    Row { id: "N12", fault: "one of nine clients stalls", run: load::one_stalls },
    Row { id: "K1", fault: "SIGKILL of either side at random times", run: kills::at_random },
    Row { id: "K2", fault: "SIGKILL at each system call that changes the disk", run: kills::at_each_change },
    Row { id: "K3", fault: "SIGKILL during a resume of a resume, five deep", run: kills::again_and_again },
    Row { id: "K5", fault: "SIGTERM and SIGINT", run: kills::politely },
    Row { id: "S1", fault: "SIGSTOP of either side for 5 s", run: kills::suspended },
    Row { id: "S3", fault: "eight loops on all processors", run: load::starved },
    Row { id: "D1", fault: "a full disk at the first, the middle and the last write", run: disks::full },
    Row { id: "D2", fault: "EIO of reads, writes, syncs and closes", run: disks::broken },
    Row { id: "D3", fault: "limits of file size, and of open files", run: disks::limits },
    Row {
        id: "D4",
        fault: "files that may not be read, directories that may not be written to",
        run: disks::forbidden,
    },
    Row { id: "D5", fault: "interrupted and short calls", run: disks::short },
    Row { id: "D6", fault: "a slow disk of the receiver", run: disks::slow },
    Row { id: "D7", fault: "a source that is cut, grows, is rewritten, replaced or removed", run: sources::changing },
    Row { id: "D8", fault: "damaged remains of a broken copy", run: sources::damaged_remains },
    Row { id: "D9", fault: "a directory of the target that turns into a link", run: names::swapped },
    Row { id: "D10", fault: "names that nobody would choose, deep paths, 4 GiB of holes", run: names::hostile },
    Row { id: "D11", fault: "two copies to one target at a time", run: sources::twice },
    Row { id: "D12", fault: "errors of the socket calls", run: network::broken_sockets },
];

/// One kind of fault.
struct Row {
    id: &'static str,
    fault: &'static str,
    run: fn(&Bed) -> Result<Outcome>,
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
    if let Some(unknown) =
        arguments.iter().find(|argument| !ROWS.iter().any(|row| row.id.eq_ignore_ascii_case(argument)))
    {
        bail!("there is no row {unknown}; cargo xtask torture --list names them");
    }
    let build = ["build", "--quiet", "-p", "farhaul-cli"];
    ensure!(
        Command::new(env!("CARGO")).args(build).current_dir(&workspace.root).status()?.success(),
        "it does not build"
    );
    let program = workspace.target.join("debug/farhaul");
    let (mut right, mut wrong, mut impossible) = (0, 0, 0);
    for row in
        ROWS.iter().filter(|row| arguments.is_empty() || arguments.iter().any(|id| row.id.eq_ignore_ascii_case(id)))
    {
        let began = Stopwatch::start();
        let outcome = Bed::new(&program, row.id).and_then(|bed| (row.run)(&bed));
        let seconds = began.elapsed().as_secs_f64();
        let (word, what) = match outcome {
            Ok(Outcome::Right(seen)) => {
                right += 1;
                ("right", seen)
            }
            Ok(Outcome::Impossible(why)) => {
                impossible += 1;
                ("cannot", why)
            }
            Err(error) => {
                wrong += 1;
                ("WRONG", format!("{error:#}"))
            }
        };
        println!("{:<4} {word:<6} {seconds:>6.1} s  {}: {what}", row.id, row.fault);
    }
    println!("{right} right, {wrong} wrong, {impossible} that this machine cannot provoke");
    ensure!(wrong == 0, "{wrong} of the faults broke a promise");
    Ok(())
}
