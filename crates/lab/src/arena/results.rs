//! Results of controllers over cells.

use super::cell::Cell;
use super::family::Family;
use super::goal::Verdict;
use crate::record::Record;

/// The results of several controllers in the same cells.
#[derive(Clone, Debug)]
pub struct Results {
    /// The seeds of the cells.
    pub seeds: Vec<u64>,
    /// The controllers, in the order of the columns.
    pub controllers: Vec<String>,
    /// The cells.
    pub cells: Vec<Cell>,
    /// For each cell, the verdict on each controller.
    pub verdicts: Vec<Vec<Verdict>>,
    /// The command that makes them again.
    pub command: String,
}

/// Passes and scores of one controller in some cells.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    /// The number of cells that are passed.
    pub passed: usize,
    /// The number of all cells.
    pub cells: usize,
    /// The mean score, 0 to 1; 0 without cells.
    pub score: f64,
}

impl Results {
    /// Judges the records of [`jobs`](super::jobs), which are in the same order.
    #[must_use]
    pub fn new(
        seeds: Vec<u64>,
        controllers: Vec<String>,
        cells: Vec<Cell>,
        records: &[Record],
        command: String,
    ) -> Self {
        let rows = cells.iter().zip(records.chunks(controllers.len().max(1)));
        let judged = |(cell, row): (&Cell, &[Record])| row.iter().map(|record| cell.judge(&record.metrics)).collect();
        let verdicts = rows.map(judged).collect();
        Self { seeds, controllers, cells, verdicts, command }
    }

    /// Cells with their verdicts, of a family, or of all.
    pub fn of(&self, family: Option<Family>) -> impl Iterator<Item = (&Cell, &[Verdict])> {
        let all = self.cells.iter().zip(self.verdicts.iter().map(Vec::as_slice));
        all.filter(move |(cell, _)| family.is_none_or(|family| cell.family == family))
    }

    /// The families that have a cell, in the order of tables.
    #[must_use]
    pub fn families(&self) -> Vec<Family> {
        Family::ALL.into_iter().filter(|family| self.cells.iter().any(|cell| cell.family == *family)).collect()
    }

    /// The tally of a controller, by its place, in the cells of a family, or in all.
    #[must_use]
    pub fn tally(&self, controller: usize, family: Option<Family>) -> Tally {
        let mut tally = Tally::default();
        let mut sum = 0.0;
        for (_, verdicts) in self.of(family) {
            let verdict = &verdicts[controller];
            tally.passed += usize::from(verdict.passed);
            tally.cells += 1;
            sum += verdict.score;
        }
        tally.score = sum / tally.cells.max(1) as f64;
        tally
    }
}
