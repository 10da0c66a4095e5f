//! The top of the page: the scores that are met, by paper and by figure.

use std::fmt::Write as _;

use super::{PAPERS, Shown};
use crate::record::World;
use crate::report::svg::escape;
use crate::score::{ScoreResult, count};

pub(super) fn html(shown: &[Shown<'_>]) -> String {
    let worlds = worlds(shown);
    let (met, of) = tally(shown, worlds[0]);
    let of_papers = shown.is_empty() || shown.iter().any(|shown| cites_a_paper(shown));
    let mut html = String::from(if of_papers {
        "<h1>The papers, run again</h1>\n<p class=\"lead\">Experiments of the papers on UDT, in a simulator that runs the code \
         that ships, beside the published numbers.</p>\n"
    } else {
        "<h1>Results of the lab</h1>\n<p class=\"lead\">Experiments in a simulator that runs the code that ships.</p>\n"
    });
    if worlds.contains(&World::Emulated) {
        html.push_str(
            "<p>What is called emulated took place in real time, between real sockets on an emulated network, the kernel’s own TCP \
             among them. Lines of such runs are dashed, their bars hollow.</p>\n",
        );
    }
    let (one, many) = if of_papers { ("figure", "figures") } else { ("scenario", "scenarios") };
    let figures = if shown.len() == 1 { one } else { many };
    let scores = match of {
        0 if !shown.is_empty() => "No scores".to_owned(),
        of => format!("{met} of {of} scores met"),
    };
    let _ = writeln!(
        html,
        "<p class=\"verdict\"><b>{scores}</b>{} in {} {figures}.{}{}</p>",
        if worlds[0].is_simulated() { "" } else { ", emulated," },
        shown.len(),
        worlds.get(1).map_or(String::new(), |world| {
            let (met, of) = tally(shown, *world);
            let there = shown.iter().filter(|shown| shown.was_run_in(*world)).count();
            format!(" Of {there} that were {world} too, <b>{met} of {of}</b>.")
        }),
        if shown.iter().any(|shown| shown.figure.quick) {
            " Some are quick forms: shorter, with fewer seeds and smaller grids."
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
    for (key, cited, title) in known.chain([("", "Your scenarios", "")]) {
        let of_paper = |shown: &&Shown<'_>| match key {
            "" => !cites_a_paper(shown),
            key => shown.figure.info.paper == key,
        };
        let figures: Vec<&Shown<'_>> = shown.iter().filter(of_paper).collect();
        if figures.is_empty() {
            continue;
        }
        let cell = |world: &World| match tally(figures.iter().copied(), *world) {
            (_, 0) => "<td class=\"n\">–</td>".to_owned(),
            (met, of) => format!("<td class=\"n\">{met} of {of}</td>"),
        };
        let cells: String = worlds(shown).iter().map(cell).collect();
        let title =
            if title.is_empty() { String::new() } else { format!("<span class=\"by\">{}</span>", escape(title)) };
        let _ =
            writeln!(rows, "<tr><td>{}{title}</td><td class=\"n\">{}</td>{cells}</tr>", escape(cited), figures.len());
    }
    format!(
        "<table>\n<thead><tr><th>Paper</th><th class=\"n\">Figures</th>{}</tr></thead>\n\
         <tbody>\n{rows}</tbody>\n</table>\n",
        heads(shown, "Scores met")
    )
}

/// Whether it is a figure of a paper, and not a user's scenario.
fn cites_a_paper(shown: &Shown<'_>) -> bool {
    PAPERS.iter().any(|paper| paper.key == shown.figure.info.paper)
}

/// The worlds in which any figure was run, at least one.
fn worlds(shown: &[Shown<'_>]) -> Vec<World> {
    let there = |world: &World| shown.iter().any(|shown| shown.was_run_in(*world));
    let worlds: Vec<World> = [World::Simulated, World::Emulated].into_iter().filter(there).collect();
    if worlds.is_empty() { vec![World::Simulated] } else { worlds }
}

/// The number of scores that are met in a world, and the number of all.
fn tally<'a>(shown: impl IntoIterator<Item = &'a Shown<'a>>, world: World) -> (usize, usize) {
    let counts = shown.into_iter().map(|shown| count(shown.scores(world)));
    counts.fold((0, 0), |(met, of), (more_met, more)| (met + more_met, of + more))
}

/// The heads of the columns with scores, one for each world.
fn heads(shown: &[Shown<'_>], words: &str) -> String {
    let worlds = worlds(shown);
    let head = |world: &World| match worlds.as_slice() {
        [World::Simulated] => format!("<th class=\"n\">{words}</th>"),
        _ => format!("<th class=\"n\">{words}, {world}</th>"),
    };
    worlds.iter().map(head).collect()
}

/// The scores of a figure in each world.
fn states(shown: &Shown<'_>, worlds: &[World]) -> String {
    let cell = |world: &World| match shown.was_run_in(*world) {
        true => format!("<td class=\"n state\">{}</td>", state(shown.scores(*world))),
        false => "<td class=\"n state\">–</td>".to_owned(),
    };
    worlds.iter().map(cell).collect()
}

fn contents(shown: &[Shown<'_>]) -> String {
    let worlds = worlds(shown);
    let mut rows = String::new();
    for shown in shown {
        let info = &shown.figure.info;
        let _ = writeln!(
            rows,
            "<tr><td class=\"id\"><a href=\"#{}\">{}</a></td><td>{}<span class=\"by\">{}</span></td>\
             {}</tr>",
            shown.id(),
            escape(&info.id.to_uppercase()),
            escape(&info.title),
            escape(&info.shows),
            states(shown, &worlds)
        );
    }
    format!(
        "<nav class=\"contents\" aria-label=\"Figures\">\n<table>\n<thead><tr><th>Figure</th><th>Content</th>\
         {}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n</nav>\n",
        heads(shown, "Scores")
    )
}

/// Scores in one word, with a sign beside the colour for readers who do not see it.
pub(super) fn state(scores: &[ScoreResult]) -> String {
    match count(scores) {
        (_, 0) => "no score".to_owned(),
        (met, of) if met == of => format!("<span class=\"met\">✓\u{a0}{met} of {of}</span>"),
        (met, of) => format!("<span class=\"unmet\">✗\u{a0}{met} of {of}</span>"),
    }
}
