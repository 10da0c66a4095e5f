//! The page about an arena: passes by family, pictures of scores, and every cell with its marks.

mod strips;

use std::fmt::Write as _;

use super::family::Family;
use super::goal::{Mark, Verdict};
use super::results::{Results, Tally};
use crate::report::page::document;
use crate::report::svg::escape;

/// Rules beside those of other pages.
const STYLE: &str = include_str!("page/arena.css");

/// The general formulas, as on the [module's page](super).
const FORMULAS: [(&str, &str); 8] = [
    (
        "symbols",
        "R rate of the link, f = 1456/1500 payload’s share of a packet, p share of packets that the path loses, B = R·RTT in packets, T duration, N packets that the link carries in the measured time",
    ),
    ("start", "t0 = (2 + log₄(max(1, B/16)))·RTT + 20 ms: a handshake, and fourfold growth per RTT from 16 packets on"),
    (
        "goodput",
        "at least k·I with I = f·R·(1 − p)·(1 − t0/T) and k by family; of flows that share, after their warm-up and with t0 = 0",
    ),
    (
        "waste",
        "retransmitted / sent ≤ 1.25·p + 3·√(p/N) + 0.005 + 16/N: lost packets and their lost repairs, chance, half a percent, and a first window, which nobody can know to be too large",
    ),
    ("queue", "mean queue ≤ 0.10·B + 20 packets"),
    ("jain, share", "Jain’s index of the goodputs; a flow’s share in the goodput of all"),
    ("max-min", "the least ratio of a flow’s goodput to its max-min share; utilisation: the least used bottleneck"),
    (
        "score",
        "how near a run came to the limit, 0 to 1; a cell has the least score of its goals, and is passed if all are met",
    ),
];

/// Cells up to which every family is shown open.
const OPEN: usize = 64;

/// The page: one HTML file that loads nothing from the network.
#[must_use]
pub fn page(results: &Results) -> String {
    let seeds = in_words(&results.seeds);
    let body = format!("{}{}{}{}", head(results, &seeds), strips::html(results), formulas(results), cells(results));
    let footer = "Same seed and program, same numbers, on every machine.";
    document(&format!("Farhaul arena: {seeds}"), &format!("\n{STYLE}"), &body, footer)
}

/// The seeds in words: `seed 1`, `seeds 1 to 4`, `seeds 3, 8`.
fn in_words(seeds: &[u64]) -> String {
    match seeds {
        [seed] => format!("seed {seed}"),
        [first, .., last] if seeds.windows(2).all(|pair| pair[0] + 1 == pair[1]) => format!("seeds {first} to {last}"),
        seeds => format!("seeds {}", seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")),
    }
}

fn head(results: &Results, seeds: &str) -> String {
    let mut html = format!(
        "<h1>Congestion controllers on random paths</h1>\n<p class=\"lead\">{} cells of {} families, drawn by {seeds}. Every \
         goal follows from the path’s parameters by a stated formula.</p>\n",
        results.cells.len(),
        results.families().len()
    );
    html.push_str("<p class=\"verdict\">");
    for (place, controller) in results.controllers.iter().enumerate() {
        let Tally { passed, cells, score } = results.tally(place, None);
        let share = 100.0 * passed as f64 / cells.max(1) as f64;
        let _ = writeln!(
            html,
            "<b>{}</b> passes <b>{passed} of {cells}</b> ({share:.0} %), mean score {score:.3}.<br>",
            escape(controller)
        );
    }
    html.push_str("</p>\n");
    html.push_str(&passes(results));
    let _ = writeln!(html, "<pre><code>{}</code></pre>", escape(&results.command));
    html
}

/// The table of families and controllers.
fn passes(results: &Results) -> String {
    let heads: String =
        results.controllers.iter().map(|name| format!("<th class=\"n\">{}</th>", escape(name))).collect();
    let controllers = 0..results.controllers.len();
    let mut rows = String::new();
    for family in results.families() {
        let cells: String = controllers.clone().map(|place| count(results.tally(place, Some(family)))).collect();
        let _ = writeln!(rows, "<tr><td class=\"id\"><a href=\"#{family}\">{family}</a></td>{cells}</tr>");
    }
    let totals: String = controllers.clone().map(|place| count(results.tally(place, None))).collect();
    let means: String =
        controllers.map(|place| format!("<td class=\"n\">{:.3}</td>", results.tally(place, None).score)).collect();
    format!(
        "<div class=\"wide\"><table class=\"passes\">\n<thead><tr><th>Family</th>{heads}</tr></thead>\n<tbody>\n{rows}\
         <tr class=\"total\"><td>all</td>{totals}</tr>\n<tr><td>mean score</td>{means}</tr>\n</tbody>\n</table></div>\n"
    )
}

/// A count with the colour of its share.
fn count(tally: Tally) -> String {
    let Tally { passed, cells, .. } = tally;
    let class = match () {
        () if passed == cells => "all",
        () if passed == 0 => "none",
        () if 2 * passed >= cells => "most",
        () => "few",
    };
    format!("<td class=\"n\"><span class=\"{class}\"><b>{passed}</b> of {cells}</span></td>")
}

fn formulas(results: &Results) -> String {
    let mut html = String::from("<h3>Goals</h3>\n<dl>\n");
    for (name, words) in FORMULAS {
        let _ = writeln!(html, "<div><dt>{name}</dt><dd>{}</dd></div>", escape(words));
    }
    html.push_str("</dl>\n<details>\n<summary>Paths and goals of each family</summary>\n<dl>\n");
    for family in results.families() {
        let (paths, goals) = (escape(family.paths()), escape(family.goals()));
        let _ = writeln!(html, "<div><dt>{family}</dt><dd>{paths}.<br>Goals: {goals}.</dd></div>");
    }
    html.push_str("</dl>\n</details>\n");
    html
}

/// All cells, family by family.
fn cells(results: &Results) -> String {
    let mut html = String::from("<h3>Cells</h3>\n<p class=\"meta\">");
    html.push_str(
        "Marks: g goodput and q queue as a multiple of the limit, w waste, j Jain’s index, s share, m max-min share, \
         u utilisation. A mark with ! misses its goal. The limits stand in the tooltip.</p>\n",
    );
    let open = if results.cells.len() <= OPEN { " open" } else { "" };
    for family in results.families() {
        html.push_str(&family_cells(results, family, open));
    }
    html
}

fn family_cells(results: &Results, family: Family, open: &str) -> String {
    let heads: String = results.controllers.iter().map(|name| format!("<th>{}</th>", escape(name))).collect();
    let mut rows = String::new();
    for (cell, verdicts) in results.of(Some(family)) {
        let limits: Vec<String> =
            cell.goals.iter().map(|goal| format!("{} {}", goal.measure.name(), goal.formula)).collect();
        let columns: String = verdicts.iter().map(verdict).collect();
        let _ = writeln!(
            rows,
            "<tr><td class=\"n\">{}/{}</td><td class=\"path\" title=\"{}\">{}</td>{columns}</tr>",
            cell.seed,
            cell.place,
            escape(&limits.join("\n")),
            escape(cell.label.strip_prefix(family.name()).unwrap_or(&cell.label).trim())
        );
    }
    format!(
        "<details class=\"family\" id=\"{family}\"{open}>\n<summary><b>{family}</b> {}</summary>\n<div class=\"wide\">\
         <table class=\"cells\">\n<thead><tr><th class=\"n\">Seed/cell</th><th>Path</th>{heads}</tr></thead>\n<tbody>\n{rows}\
         </tbody>\n</table></div>\n</details>\n",
        escape(family.paths())
    )
}

/// A verdict as a table's cell: a meter of the score, and the marks.
fn verdict(verdict: &Verdict) -> String {
    let mark = |mark: &Mark| {
        let text = escape(&mark.to_string());
        if mark.met { text } else { format!("<span class=\"unmet\">{text}</span>") }
    };
    let marks: Vec<String> = verdict.marks.iter().map(mark).collect();
    let missed = if verdict.passed { "" } else { " class=\"missed\"" };
    format!(
        "<td class=\"marks\"><span class=\"meter\" title=\"score {score:.3}\"><i{missed} style=\"width:{:.0}%\"></i></span>{}</td>",
        100.0 * verdict.score,
        marks.join(" "),
        score = verdict.score
    )
}
