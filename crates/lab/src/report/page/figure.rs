//! A figure on the page.

use std::fmt::Write as _;

use pulldown_cmark::HeadingLevel;

use super::{Shown, cited, summary};
use crate::aggregate::Measurements;
use crate::figures::{FigureInfo, FigureResult};
use crate::record::World;
use crate::report::comparison::{ComparisonRow, compare};
use crate::report::markdown;
use crate::report::svg::{self, capital, escape, in_words, words};
use crate::scenario::{PlotKind, PlotSpec, Scenario, ScoreSource};
use crate::score::{ScoreResult, Worst};
use crate::table::{self, Table};

/// Longer tables are folded.
const MAX_OPEN_ROWS: usize = 16;

pub(super) fn html(shown: &Shown<'_>, measurements: &Measurements<'_>) -> String {
    let info = &shown.figure.info;
    let mut html = format!(
        "<section class=\"figure\" id=\"{}\">\n<header>\n<p class=\"number sans\">{}</p>\n<h2>{}</h2>\n{}</header>\n",
        shown.id(),
        escape(&info.id.to_uppercase()),
        escape(&info.title),
        source(shown)
    );
    if !info.shows.is_empty() {
        let _ = writeln!(html, "<p>{}</p>", escape(&info.shows));
    }
    for plot in svg::drawn(shown.figure, measurements) {
        let drawing = svg::draw(shown.figure, plot, measurements, false);
        let narrow = svg::draw_narrow(shown.figure, plot, measurements);
        let caption = caption(plot, &shown.figure.scenario.seeds);
        let _ = writeln!(
            html,
            "<figure>\n<div class=\"roomy\">\n{}</div>\n<div class=\"narrow\">\n{}</div>\n{caption}</figure>",
            drawing.svg, narrow.svg
        );
    }
    for (world, judged) in &shown.judged {
        html.push_str(&scores(judged, (!world.is_simulated()).then_some(*world)));
    }
    html.push_str(&invalid(shown.figure));
    html.push_str(&this_run(shown, measurements));
    html.push_str(&readme(info));
    let commands = [Some(&shown.figure.command), shown.figure.emulated.as_ref().map(|emulated| &emulated.command)];
    let commands: Vec<String> = commands.into_iter().flatten().map(|command| escape(command)).collect();
    let _ = writeln!(html, "<pre><code>{}</code></pre>", commands.join("\n"));
    html.push_str(&values(shown, measurements));
    html.push_str("</section>\n");
    html
}

/// The tables of this run, labelled, so that the README's numbers are not taken for this run's.
fn this_run(shown: &Shown<'_>, measurements: &Measurements<'_>) -> String {
    if shown.figure.records.is_empty() {
        return "<h3>This run</h3>\n<p>No run is finished yet.</p>\n".to_owned();
    }
    let how = escape(&how_all(shown).join(" · "));
    let mut html = format!("<h3>This run</h3>\n<p class=\"meta\">{how}</p>\n");
    for table in table::tables(shown.figure, measurements) {
        let rows = numbers(&table, &shown.figure.scenario);
        if table.rows.len() > MAX_OPEN_ROWS {
            let of = if table.head.iter().any(|head| head == table::FLOW) { "flows" } else { "runs" };
            let count = table.rows.len();
            let _ =
                write!(html, "<details>\n<summary>Numbers of the {of}: {count} lines</summary>\n{rows}</details>\n");
        } else {
            html.push_str(&rows);
        }
    }
    html
}

/// A table with labels to the left and numbers to the right.
fn numbers(table: &Table, scenario: &Scenario) -> String {
    let label = |name: &str| scenario.curves.iter().find(|curve| curve.name == name).map_or("", |curve| &curve.label);
    let class = |column: usize| if column < table.labels { "" } else { " class=\"n\"" };
    let row = |cells: &[String], tag: &str| {
        let cells = cells.iter().enumerate();
        let cells: String =
            cells.map(|(column, cell)| format!("<{tag}{}>{}</{tag}>", class(column), escape(cell))).collect();
        format!("<tr>{cells}</tr>")
    };
    let head: Vec<String> = table.head.iter().map(|name| capital(&words(name))).collect();
    let mut html = format!("<div class=\"wide\"><table>\n<thead>{}</thead>\n<tbody>\n", row(&head, "th"));
    for cells in &table.rows {
        let mut cells = cells.clone();
        if table.head.first().is_some_and(|head| head == table::CURVE) {
            cells[0] = label(&cells[0]).to_owned();
        }
        let _ = writeln!(html, "{}", row(&cells, "td"));
    }
    html + "</tbody>\n</table></div>\n"
}

/// The figure's README, labelled, because its numbers are of another run.
fn readme(info: &FigureInfo) -> String {
    if info.readme.is_empty() {
        return String::new();
    }
    let (title, label) = if info.is_shipped {
        (
            "Shipped result",
            "From the README of this figure. Its numbers are those of the shipped full run, not of this run.",
        )
    } else {
        ("Notes", "From README.md beside the scenario. Its numbers need not be those of this run.")
    };
    let text = markdown::to_html(&info.readme, HeadingLevel::H4);
    format!("<h3>{title}</h3>\n<p class=\"meta\">{label}</p>\n<div class=\"readme\">\n{text}</div>\n")
}

/// The caption of a drawing: its title, and the seed if it shows one run of several.
fn caption(plot: &PlotSpec, seeds: &[u64]) -> String {
    let mut parts = Vec::new();
    parts.extend(plot.title.as_ref().map(|title| escape(title)));
    parts.extend(match (plot.kind, seeds) {
        (PlotKind::Time, [first, _, ..]) => Some(format!("The run with seed {first}")),
        _ => None,
    });
    if parts.is_empty() { String::new() } else { format!("<figcaption>{}.</figcaption>\n", parts.join(". ")) }
}

/// The source of the figure, and how it was run.
fn source(shown: &Shown<'_>) -> String {
    let info = &shown.figure.info;
    let mut parts = Vec::new();
    parts.extend((!info.paper.is_empty()).then(|| cited(&info.paper).to_owned()));
    parts.extend((!info.source.is_empty()).then(|| info.source.clone()));
    parts.extend(how_all(shown));
    let parts: Vec<String> = parts.iter().map(|part| escape(part)).collect();
    format!("<p class=\"meta\">{}</p>\n", parts.join(" · "))
}

/// The duration, seeds and form of the runs in each world.
fn how_all(shown: &Shown<'_>) -> Vec<String> {
    let figure = shown.figure;
    let mut parts = Vec::new();
    parts.extend((!figure.world.is_simulated()).then(|| "emulated".to_owned()));
    parts.push(how(&figure.scenario, figure.world));
    parts.push(form(figure));
    if let Some(emulated) = &figure.emulated {
        parts.push(format!("emulated: {}", how(&emulated.scenario, emulated.world)));
        parts.push(form(emulated));
    }
    parts
}

/// The name of the form that was run.
fn form(figure: &FigureResult) -> String {
    if figure.quick { "quick form" } else { "full form" }.to_owned()
}

/// The duration and the number of seeds.
fn how(scenario: &Scenario, world: World) -> String {
    let seeds = match scenario.seeds.len() {
        1 => "one seed".to_owned(),
        n => format!("{n} seeds"),
    };
    let time = if world.is_simulated() { "virtual" } else { "real" };
    format!("{}\u{a0}s in {time} time, {seeds}", crate::expression::three_digits(scenario.duration))
}

/// The invalid runs and the reasons.
fn invalid(figure: &FigureResult) -> String {
    let runs = figure.records.iter().filter(|run| !run.is_valid());
    let mut items = String::new();
    for run in runs {
        let label =
            figure.scenario.curves.iter().find(|curve| curve.name == run.curve).map_or("", |curve| &curve.label);
        let place = figure.scenario.point_words(&run.point);
        let parts = [label.to_owned(), place, format!("seed {}", run.seed)];
        let name: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        let _ = writeln!(items, "<li>{}: {}</li>", escape(&name.join(", ")), escape(&run.flaws().join("; ")));
    }
    if items.is_empty() {
        return items;
    }
    format!(
        "<p class=\"unmet\">✗\u{a0}Invalid, because the emulator and not the path was the limit:</p>\n<ul class=\"meta\">\n{items}</ul>\n"
    )
}

/// The table of scores. Its head names the world unless that is the simulator.
fn scores(scores: &[ScoreResult], world: Option<World>) -> String {
    if scores.is_empty() {
        return String::new();
    }
    let mut rows = String::new();
    for score in scores {
        let whose = if score.source == ScoreSource::Paper { "paper" } else { "ours" };
        let by = score.worst.as_ref().and_then(Worst::by).filter(|_| score.trouble.is_none()).unwrap_or_default();
        let _ = writeln!(
            rows,
            "<tr><td class=\"state\">{}</td><td>{}<span class=\"by\">{}</span></td><td>{whose}</td><td class=\"n\">{}</td></tr>",
            mark(score),
            escape(&score.says),
            escape(&score.detail()),
            escape(&by)
        );
    }
    format!(
        "<div class=\"wide\"><table class=\"scores\">\n<thead><tr><th class=\"state\">{}</th><th>Score{}</th><th>Source</th>\
         <th class=\"n\">Margin</th></tr></thead>\n<tbody>\n{rows}</tbody>\n</table></div>\n",
        summary::state(scores),
        world.map_or(String::new(), |world| format!(", {world}")),
    )
}

const fn mark(score: &ScoreResult) -> &'static str {
    match (score.applies, score.met) {
        (false, _) => "open",
        (true, true) => "<span class=\"met\">✓\u{a0}met</span>",
        (true, false) => "<span class=\"unmet\">✗\u{a0}not met</span>",
    }
}

/// The table of published numbers beside ours.
fn values(shown: &Shown<'_>, measurements: &Measurements<'_>) -> String {
    let rows = compare(shown.figure, measurements);
    let Some(first) = rows.first() else { return String::new() };
    let has = |simulated: bool| first.ours.iter().any(|ours| ours.world.is_simulated() == simulated);
    let whose = match (has(true), has(false)) {
        (true, true) => "Published, simulated and emulated values",
        (false, true) => "Published and emulated values",
        _ => "Published and simulated values",
    };
    let mut html = format!(
        "<details>\n<summary>{whose}</summary>\n<div class=\"wide\"><table>\n<thead><tr>\
         <th>Where</th><th>Measure</th><th class=\"n\">Published</th>",
    );
    for ours in &first.ours {
        let _ = write!(html, "<th class=\"n\">{}, {}</th>", escape(&ours.curve), ours.world);
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    for row in &rows {
        html.push_str(&value_row(row));
    }
    html.push_str("</tbody>\n</table></div>\n</details>\n");
    html
}

fn value_row(row: &ComparisonRow<'_>) -> String {
    let published = row.published;
    let mut whose = Vec::new();
    whose.extend(published.curve.clone());
    whose.extend((!published.note.is_empty()).then(|| published.note.clone()));
    let note = if whose.is_empty() {
        String::new()
    } else {
        format!("<span class=\"by\">{}</span>", escape(&whose.join("; ")))
    };
    let place = if row.place.is_empty() { "everywhere" } else { &row.place };
    let mut html = format!(
        "<tr><td>{}{note}</td><td>{}</td><td class=\"n\">{}</td>",
        escape(place),
        escape(&published.metric),
        escape(&in_words(&row.unit.print(published.value), published.bound))
    );
    for ours in &row.ours {
        let _ = write!(html, "<td class=\"n\">{}</td>", escape(&ours.print(row.unit)));
    }
    html.push_str("</tr>\n");
    html
}
