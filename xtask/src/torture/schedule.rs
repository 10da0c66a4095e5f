//! The order of the rows: one after another, or in the short form several at a time.

use std::path::Path;
use std::sync::Mutex;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::Result;

use super::bed::Bed;
use super::{Company, Outcome, Row};
use crate::clock::Stopwatch;
use crate::suite::Extent;

/// Rows at a time. Most of their time they wait for a slow path, a time-out, or a process that sleeps.
const WORKERS: usize = 3;

/// Rows that take longest. They begin first, so that none is left alone at the end.
const LONGEST: [&str; 8] = ["P1", "N5", "S1", "K2", "N4", "N8", "D8", "N6"];

/// A row that has ended.
pub(super) struct Finished<'a> {
    pub(super) row: &'a Row,
    pub(super) elapsed: Duration,
    pub(super) outcome: Result<Outcome>,
}

/// Runs the rows, and reports each at its end.
pub(super) fn run<'a>(program: &Path, extent: Extent, rows: &[&'a Row], mut report: impl FnMut(Finished<'a>)) {
    let one = |row: &'a Row| {
        let began = Stopwatch::start();
        let outcome = Bed::new(program, row.id, extent).and_then(|bed| (row.run)(&bed));
        Finished { row, elapsed: began.elapsed(), outcome }
    };
    let is_shared = |row: &&&Row| extent == Extent::Short && row.company == Company::Any;
    let (mut shared, alone): (Vec<&&Row>, Vec<&&Row>) = rows.iter().partition(is_shared);
    shared.sort_by_key(|row| LONGEST.iter().position(|id| *id == row.id).unwrap_or(LONGEST.len()));
    let (queue, (sender, finished)) = (Mutex::new(shared.into_iter()), mpsc::channel());
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            let (queue, sender) = (&queue, sender.clone());
            scope.spawn(move || {
                let next = || queue.lock().expect("no row runs under the lock").next();
                while let Some(row) = next() {
                    // The receiver lives until all workers have ended.
                    let _ = sender.send(one(row));
                }
            });
        }
        drop(sender);
        finished.iter().for_each(&mut report);
    });
    alone.into_iter().for_each(|row| report(one(row)));
}
