//! A figure on the page.

use askama::Template;
use pulldown_cmark::HeadingLevel;

use super::{Shown, cited, summary};
use crate::aggregate::Measurements;
use crate::figures::FigureResult;
use crate::paper::Published;
use crate::record::Record;
use crate::report::comparison::{ComparisonRow, compare};
use crate::report::markdown;
use crate::report::svg::{self, PlotSource, capital, words};
use crate::scenario::{PlotKind, PlotSpec, ScoreSource};
use crate::score::{ScoreResult, Worst};
use crate::table::{self, Table};

/// Longer tables are folded.
const MAX_OPEN_ROWS: usize = 16;

#[derive(Template)]
#[template(path = "report/page/figure.html")]
pub(super) struct FigureSection<'a> {
    shown: &'a Shown<'a>,
    plots: Vec<PlotFigure>,
    /// The numbers of this run, labelled, so that the README's numbers are not taken for this run's.
    tables: Vec<Table>,
    /// Published numbers beside ours.
    compared: Vec<ComparisonRow<'a>>,
}

/// A drawing in its two widths.
struct PlotFigure {
    roomy: String,
    narrow: String,
    /// The drawing's title, and the seed if it shows one run of several.
    caption: String,
}

impl<'a> FigureSection<'a> {
    pub(super) fn of(shown: &'a Shown<'a>, measurements: &Measurements<'_>) -> Self {
        let figure = shown.figure;
        let plot = |source: PlotSource<'_>| PlotFigure {
            roomy: svg::draw(&source, false).svg,
            narrow: svg::draw(&source.narrow(), false).svg,
            caption: caption(source.plot, &figure.scenario.seeds),
        };
        Self {
            shown,
            plots: svg::drawn(figure, measurements).map(plot).collect(),
            tables: table::tables(figure, measurements),
            compared: compare(figure, measurements),
        }
    }

    /// The source of the figure, and how it was run.
    fn source(&self) -> String {
        let info = &self.shown.figure.info;
        let source = [cited(&info.paper), &info.source].into_iter().filter(|part| !part.is_empty()).map(str::to_owned);
        source.chain(self.how_all()).collect::<Vec<_>>().join(" · ")
    }

    /// The duration, seeds and form of the runs in each world.
    fn how_all(&self) -> Vec<String> {
        let figure = self.shown.figure;
        let mut parts = Vec::new();
        parts.extend((!figure.world.is_simulated()).then(|| "emulated".to_owned()));
        parts.extend(how(figure));
        if let Some(emulated) = &figure.emulated {
            let [how, form] = how(emulated);
            parts.extend([format!("emulated: {how}"), form]);
        }
        parts
    }

    /// The invalid runs and the reasons.
    fn invalid_runs(&self) -> Vec<String> {
        let scenario = &self.shown.figure.scenario;
        let words = |run: &Record| {
            let parts = [
                scenario.curve_label(&run.curve).to_owned(),
                scenario.point_words(&run.point),
                format!("seed {}", run.seed),
            ];
            let name: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            format!("{}: {}", name.join(", "), run.flaws().join("; "))
        };
        self.shown.figure.records.iter().filter(|run| !run.is_valid()).map(words).collect()
    }

    /// A cell of a table. Curves have their labels.
    fn cell<'c>(&'c self, table: &Table, column: &usize, cell: &'c str) -> &'c str {
        let is_curve = *column == 0 && table.head[0] == table::CURVE;
        if is_curve { self.shown.figure.scenario.curve_label(cell) } else { cell }
    }

    fn whose_values(&self) -> &'static str {
        let ours = || self.compared.first().into_iter().flat_map(|row| &row.ours);
        let has = |simulated: bool| ours().any(|ours| ours.world.is_simulated() == simulated);
        match (has(true), has(false)) {
            (true, true) => "Published, simulated and emulated values",
            (false, true) => "Published and emulated values",
            _ => "Published and simulated values",
        }
    }
}

fn caption(plot: &PlotSpec, seeds: &[u64]) -> String {
    let seed = match (plot.kind, seeds) {
        (PlotKind::Time, [first, _, ..]) => Some(format!("The run with seed {first}")),
        _ => None,
    };
    plot.title.iter().cloned().chain(seed).collect::<Vec<_>>().join(". ")
}

/// The duration and the number of seeds, and the name of the form that was run.
fn how(figure: &FigureResult) -> [String; 2] {
    let seeds = match figure.scenario.seeds.len() {
        1 => "one seed".to_owned(),
        n => format!("{n} seeds"),
    };
    let time = if figure.world.is_simulated() { "virtual" } else { "real" };
    let duration = crate::expression::three_digits(figure.scenario.duration);
    let form = if figure.quick { "quick form" } else { "full form" };
    [format!("{duration}\u{a0}s in {time} time, {seeds}"), form.to_owned()]
}

const fn mark(score: &ScoreResult) -> &'static str {
    match (score.applies, score.met) {
        (false, _) => "open",
        (true, true) => "<span class=\"met\">✓\u{a0}met</span>",
        (true, false) => "<span class=\"unmet\">✗\u{a0}not met</span>",
    }
}

fn margin(score: &ScoreResult) -> String {
    score.worst.as_ref().and_then(Worst::by).filter(|_| score.trouble.is_none()).unwrap_or_default()
}

/// The curve of a published number, and its note.
fn note(published: &Published) -> String {
    let note = Some(&published.note).filter(|note| !note.is_empty());
    published.curve.iter().chain(note).cloned().collect::<Vec<_>>().join("; ")
}

fn is_of_flows(table: &Table) -> bool {
    table.head.iter().any(|head| head == table::FLOW)
}

/// The head of a column.
fn head(name: &str) -> String {
    capital(&words(name))
}
