//! The top of the page: the scores that are met, by paper and by figure.

use askama::Template;

use super::{PAPERS, Shown};
use crate::record::World;
use crate::score::{ScoreResult, count};

#[derive(Template)]
#[template(path = "report/page/summary.html")]
pub(super) struct Summary<'a> {
    shown: &'a [Shown<'a>],
    /// The worlds in which any figure was run, at least one.
    worlds: Vec<World>,
}

/// The figures of a paper, with the scores of each world.
struct PaperRow {
    cited: &'static str,
    title: &'static str,
    figures: usize,
    tallies: Vec<(usize, usize)>,
}

impl<'a> Summary<'a> {
    pub(super) fn of(shown: &'a [Shown<'a>]) -> Self {
        let there = |world: &World| shown.iter().any(|shown| shown.was_run_in(world));
        let mut worlds: Vec<World> = [World::Simulated, World::Emulated].into_iter().filter(there).collect();
        if worlds.is_empty() {
            worlds.push(World::Simulated);
        }
        Self { shown, worlds }
    }

    pub(super) fn has_emulated(&self) -> bool {
        self.worlds.contains(&World::Emulated)
    }

    fn is_of_papers(&self) -> bool {
        self.shown.is_empty() || self.shown.iter().any(cites_a_paper)
    }

    /// What figures are called, in their number.
    fn figures(&self) -> &'static str {
        match (self.is_of_papers(), self.shown.len()) {
            (true, 1) => "figure",
            (true, _) => "figures",
            (false, 1) => "scenario",
            (false, _) => "scenarios",
        }
    }

    fn scores(&self) -> String {
        match self.tally(&self.worlds[0]) {
            (_, 0) if !self.shown.is_empty() => "No scores".to_owned(),
            (met, of) => format!("{met} of {of} scores met"),
        }
    }

    /// The number of scores that are met in a world, and the number of all.
    fn tally(&self, world: &World) -> (usize, usize) {
        tally(self.shown, world)
    }

    /// The number of figures that were run in a world.
    fn count(&self, world: &World) -> usize {
        self.shown.iter().filter(|shown| shown.was_run_in(world)).count()
    }

    fn has_quick_forms(&self) -> bool {
        self.shown.iter().any(|shown| shown.figure.quick)
    }

    /// The end of a column's head. The simulator is named only beside another world.
    fn in_world(&self, world: &World) -> String {
        if self.worlds == [World::Simulated] { String::new() } else { format!(", {world}") }
    }

    fn papers(&self) -> Vec<PaperRow> {
        let known = PAPERS.iter().map(|paper| (&*paper.key, &*paper.cited, &*paper.title));
        let row = |(key, cited, title): (&str, &'static str, &'static str)| {
            let of_paper = |shown: &&Shown<'_>| match key {
                "" => !cites_a_paper(shown),
                key => shown.figure.info.paper == key,
            };
            let figures: Vec<&Shown<'_>> = self.shown.iter().filter(of_paper).collect();
            let tallies = self.worlds.iter().map(|world| tally(figures.iter().copied(), world)).collect();
            PaperRow { cited, title, figures: figures.len(), tallies }
        };
        known.chain([("", "Your scenarios", "")]).map(row).filter(|row| row.figures > 0).collect()
    }
}

/// Whether it is a figure of a paper, and not a user's scenario.
fn cites_a_paper(shown: &Shown<'_>) -> bool {
    PAPERS.iter().any(|paper| paper.key == shown.figure.info.paper)
}

fn tally<'a>(shown: impl IntoIterator<Item = &'a Shown<'a>>, world: &World) -> (usize, usize) {
    let counts = shown.into_iter().map(|shown| count(shown.scores(world)));
    counts.fold((0, 0), |(met, of), (more_met, more)| (met + more_met, of + more))
}

/// Scores in one word, with a sign beside the colour for readers who do not see it.
pub(super) fn state(scores: &[ScoreResult]) -> String {
    match count(scores) {
        (_, 0) => "no score".to_owned(),
        (met, of) if met == of => format!("<span class=\"met\">✓\u{a0}{met} of {of}</span>"),
        (met, of) => format!("<span class=\"unmet\">✗\u{a0}{met} of {of}</span>"),
    }
}
