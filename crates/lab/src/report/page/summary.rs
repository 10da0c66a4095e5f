//! The top of the page: how many scores are met, by paper and by figure.

use std::fmt::Write as _;

use super::{PAPERS, Shown};
use crate::report::svg::escape;
use crate::score::{ScoreResult, count};

pub(super) fn html(shown: &[Shown<'_>]) -> String {
    let all: Vec<ScoreResult> = shown.iter().flat_map(|shown| shown.scores.clone()).collect();
    let (met, of) = count(&all);
    let mut html = String::from(
        "<h1>The papers, run again</h1>\n<p class=\"lead\">Experiments of the papers on UDT, in a simulator that runs the very \
         code that ships, beside the numbers that were published.</p>\n",
    );
    let figures = if shown.len() == 1 { "figure" } else { "figures" };
    let _ = writeln!(
        html,
        "<p class=\"verdict\"><b>{met} of {of} scores met</b> in {} {figures}.{}</p>",
        shown.len(),
        if shown.iter().any(|shown| shown.figure.quick) {
            " Some were run in their quick form: shorter, fewer seeds, smaller grids."
        } else {
            ""
        }
    );
    html.push_str(&papers(shown));
    html.push_str(&contents(shown));
    html
}

fn papers(shown: &[Shown<'_>]) -> String {
    let mut rows = String::new();
    let known = PAPERS.iter().map(|paper| (paper.key, paper.cited, paper.title));
    for (key, cited, title) in known.chain([("", "Scenarios of one’s own", "")]) {
        let of_paper = |shown: &&Shown<'_>| match key {
            "" => !PAPERS.iter().any(|paper| paper.key == shown.figure.info.paper),
            key => shown.figure.info.paper == key,
        };
        let figures: Vec<&Shown<'_>> = shown.iter().filter(of_paper).collect();
        if figures.is_empty() {
            continue;
        }
        let scores: Vec<ScoreResult> = figures.iter().flat_map(|shown| shown.scores.clone()).collect();
        let (met, of) = count(&scores);
        let title =
            if title.is_empty() { String::new() } else { format!("<span class=\"by\">{}</span>", escape(title)) };
        let _ = writeln!(
            rows,
            "<tr><td>{}{title}</td><td class=\"n\">{}</td><td class=\"n\">{met} of {of}</td></tr>",
            escape(cited),
            figures.len()
        );
    }
    format!(
        "<table>\n<thead><tr><th>Paper</th><th class=\"n\">Figures</th><th class=\"n\">Scores met</th></tr></thead>\n\
         <tbody>\n{rows}</tbody>\n</table>\n"
    )
}

fn contents(shown: &[Shown<'_>]) -> String {
    let mut rows = String::new();
    for shown in shown {
        let info = &shown.figure.info;
        let _ = writeln!(
            rows,
            "<tr><td class=\"id\"><a href=\"#{}\">{}</a></td><td>{}<span class=\"by\">{}</span></td>\
             <td class=\"n state\">{}</td></tr>",
            shown.id(),
            escape(&info.id.to_uppercase()),
            escape(&info.title),
            escape(&info.shows),
            state(&shown.scores)
        );
    }
    format!(
        "<nav class=\"contents\" aria-label=\"Figures\">\n<table>\n<thead><tr><th>Figure</th><th>What it shows</th>\
         <th class=\"n\">Scores</th></tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n</nav>\n"
    )
}

/// Scores in a word: a sign as well as a colour, for whoever does not see one of them.
pub(super) fn state(scores: &[ScoreResult]) -> String {
    match count(scores) {
        (_, 0) => "no score".to_owned(),
        (met, of) if met == of => format!("<span class=\"met\">✓\u{a0}{met} of {of}</span>"),
        (met, of) => format!("<span class=\"unmet\">✗\u{a0}{met} of {of}</span>"),
    }
}
