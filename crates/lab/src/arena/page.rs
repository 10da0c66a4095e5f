//! The page about an arena: passes by family, pictures of scores, and every cell with its marks.

mod strips;

use askama::Template;

use super::cell::Cell;
use super::family::Family;
use super::goal::Verdict;
use super::results::{Results, Tally};

/// Rules beside those of other pages.
const STYLE: &str = include_str!("page/arena.css");

/// Cells up to which every family is shown open.
const OPEN: usize = 64;

#[derive(Template)]
#[template(path = "arena/page.html")]
struct ArenaPage<'a> {
    results: &'a Results,
    families: Vec<Family>,
    seeds: String,
}

/// The page: one HTML file that loads nothing from the network.
#[must_use]
pub fn page(results: &Results) -> String {
    let page = ArenaPage { results, families: results.families(), seeds: in_words(&results.seeds) };
    page.to_string()
}

/// The seeds in words: `seed 1`, `seeds 1 to 4`, `seeds 3, 8`.
fn in_words(seeds: &[u64]) -> String {
    match seeds {
        [seed] => format!("seed {seed}"),
        [first, .., last] if seeds.windows(2).all(|pair| pair[0] + 1 == pair[1]) => format!("seeds {first} to {last}"),
        seeds => format!("seeds {}", seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")),
    }
}

impl ArenaPage<'_> {
    /// The tally of each controller in a family.
    fn tallies(&self, family: &Family) -> impl Iterator<Item = Tally> {
        (0..self.results.controllers.len()).map(|controller| self.results.tally(controller, Some(*family)))
    }

    /// The tally of each controller.
    fn totals(&self) -> impl Iterator<Item = Tally> {
        (0..self.results.controllers.len()).map(|controller| self.results.tally(controller, None))
    }

    fn cells(&self, family: &Family) -> impl Iterator<Item = (&Cell, &[Verdict])> {
        self.results.of(Some(*family))
    }
}

/// The class of a count, by its share.
const fn class(tally: &Tally) -> &'static str {
    match tally {
        Tally { passed, cells, .. } if *passed == *cells => "all",
        Tally { passed: 0, .. } => "none",
        Tally { passed, cells, .. } if 2 * *passed >= *cells => "most",
        _ => "few",
    }
}

fn percent(tally: &Tally) -> f64 {
    100.0 * tally.passed as f64 / tally.cells.max(1) as f64
}

/// The parameters of a cell's path.
fn path(cell: &Cell) -> &str {
    cell.label.strip_prefix(cell.family.name()).unwrap_or(&cell.label).trim()
}

/// The goals of a cell, a line each.
fn limits(cell: &Cell) -> String {
    let limits = cell.goals.iter().map(|goal| format!("{} {}", goal.measure.name(), goal.formula));
    limits.collect::<Vec<_>>().join("\n")
}
