//! The page: the number of scores met, and every figure beside the paper's results.

mod figure;
mod summary;
#[cfg(test)]
pub(crate) mod tests;

use std::sync::LazyLock;

use askama::Template;
use serde::Deserialize;

use crate::aggregate::Measurements;
use crate::figures::FigureResult;
use crate::record::World;
use crate::report::worlds;
use crate::score::{ScoreResult, evaluate};
use figure::FigureSection;
use summary::Summary;

/// A paper of `figures/papers.toml`.
#[derive(Deserialize)]
struct PaperInfo {
    /// The key: `udt-2004`.
    key: String,
    /// Authors and year: `Gu and Grossman 2004`.
    cited: String,
    title: String,
}

/// The papers with figures, in the order of the page.
static PAPERS: LazyLock<Vec<PaperInfo>> = LazyLock::new(|| {
    #[derive(Deserialize)]
    struct Papers {
        paper: Vec<PaperInfo>,
    }
    let papers: Papers = toml::from_str(include_str!("../../figures/papers.toml")).expect("the tests read it");
    papers.paper
});

/// A figure with its scores.
struct Shown<'a> {
    figure: &'a FigureResult,
    /// The scores in each world in which the figure was run.
    judged: Vec<(World, Vec<ScoreResult>)>,
}

impl Shown<'_> {
    fn id(&self) -> String {
        anchor(&self.figure.info.id)
    }

    fn was_run_in(&self, world: &World) -> bool {
        self.judged.iter().any(|(known, _)| known == world)
    }

    /// The scores in a world; none if the figure was not run there.
    fn scores(&self, world: &World) -> &[ScoreResult] {
        self.judged.iter().find(|(known, _)| known == world).map_or(&[], |(_, scores)| scores)
    }
}

/// The whole report: one HTML file that loads nothing from the network.
///
/// Figures are in the order of their papers, then of their numbers. Users' scenarios come last.
#[must_use]
pub fn page(results: &[FigureResult]) -> String {
    let joined = worlds::joined(results);
    let measurements = Measurements::new(&joined);
    let judged = |id: &str| {
        let of_id = results.iter().filter(|result| result.info.id == id);
        let judge = |result: &FigureResult| (result.world, evaluate(result, &in_world(results, result.world)));
        let mut judged: Vec<_> = of_id.map(judge).collect();
        judged.sort_by_key(|(world, _)| *world);
        judged
    };
    let mut shown: Vec<Shown<'_>> =
        joined.iter().map(|figure| Shown { figure, judged: judged(&figure.info.id) }).collect();
    shown.sort_by_key(|shown| order(&shown.figure.info.paper, &shown.figure.info.id));
    let figures = shown.iter().map(|shown| FigureSection::of(shown, &measurements)).collect();
    Page { summary: Summary::of(&shown), figures }.to_string()
}

#[derive(Template)]
#[template(path = "report/page.html")]
struct Page<'a> {
    summary: Summary<'a>,
    figures: Vec<FigureSection<'a>>,
}

fn in_world(results: &[FigureResult], world: World) -> Measurements<'_> {
    Measurements::new(results.iter().filter(|result| result.world == world))
}

/// The place of a figure on the page: by paper, then by the letter and the number of its id, so that A10 follows A9.
fn order(paper: &str, id: &str) -> (usize, String, u64, String) {
    let place = PAPERS.iter().position(|known| known.key == paper).unwrap_or(PAPERS.len());
    let letters = id.trim_start_matches(|character: char| character.is_ascii_alphabetic());
    let digits: String = letters.chars().take_while(char::is_ascii_digit).collect();
    // Figures without a number follow those with one.
    let number = digits.parse().unwrap_or(u64::MAX);
    (place, id[..id.len() - letters.len()].to_owned(), number, id.to_owned())
}

/// An id as an anchor on the page.
fn anchor(id: &str) -> String {
    let plain = |character: char| if character.is_ascii_alphanumeric() { character.to_ascii_lowercase() } else { '-' };
    id.chars().map(plain).collect()
}

/// The citation of a paper: its authors, or the key of an unknown paper.
fn cited(key: &str) -> &str {
    PAPERS.iter().find(|paper| paper.key == key).map_or(key, |paper| &paper.cited)
}
