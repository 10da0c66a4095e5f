//! `lab list`: the list of figures.

use std::fmt::Write as _;

use clap::Args;
use farhaul_lab::figures::{Shipped, shipped};
use farhaul_lab::misses::{Miss, misses};
use farhaul_lab::scenario::{ScoreSource, ScoreSpec};
use farhaul_lab::{Figure, LabError, Overrides};
use serde_json::{Value, json};

use crate::exit::{Code, Fault};
use crate::output::{print, print_json};

/// List the figures with their papers, and by choice their required scores or those that the shipped results miss
#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// Print what each figure shows, and the scores that it must meet
    #[arg(long)]
    scores: bool,
    /// Print the scores that the shipped full runs do not meet, each figure with the page that explains them
    #[arg(long, conflicts_with = "scores")]
    misses: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &ListArgs) -> Result<(), Fault> {
    let read = shipped().iter().map(|figure| figure.read(&Overrides::default()));
    let figures = read.collect::<Result<Vec<Figure>, LabError>>();
    let figures = figures.map_err(|error| Fault::new(Code::Failed, error.to_string()))?;
    if args.misses {
        list_misses(&figures, args.json);
        return Ok(());
    }
    if args.json {
        let all: Vec<Value> = figures.iter().map(record).collect();
        print_json(&Value::from(all));
        return Ok(());
    }
    let width = figures.iter().map(|figure| figure.info.id.len()).max().unwrap_or(0);
    let mut text = String::new();
    for Figure { info, experiment, .. } in &figures {
        let mut line = |words: std::fmt::Arguments<'_>| {
            writeln!(text, "{words}").expect("writing to a String cannot fail");
        };
        line(format_args!("{:<width$}  {} ({}, {})", info.id, info.title, info.paper, info.source));
        if !args.scores {
            continue;
        }
        line(format_args!("{:<width$}  {}", "", info.shows));
        for score in &experiment.scenario.scores {
            line(format_args!("{:<width$}  · {}", "", score.says));
        }
    }
    if !args.scores {
        text.push_str("What each must show: farhaul lab list --scores. ");
    }
    text.push_str("Run some of them: farhaul lab run ID…. Run all in their quick form: farhaul lab run --quick.\n");
    print(&text);
    Ok(())
}

/// Prints the scores that the shipped results do not meet, by figure.
fn list_misses(figures: &[Figure], as_json: bool) {
    let mut text = String::new();
    let mut records = Vec::new();
    let all: usize = figures.iter().map(|figure| figure.experiment.scenario.scores.len()).sum();
    for figure in figures {
        let info = &figure.info;
        let page = shipped().iter().find(|shipped| shipped.id == info.id).map(Shipped::page).unwrap_or_default();
        let missed: Vec<Miss<'_>> = misses().filter(|miss| miss.figure == info.id).collect();
        if !missed.is_empty() {
            text.push_str(&format!("{}  {}: {page}\n", info.id, info.title));
        }
        let scores = &figure.experiment.scenario.scores;
        for score in scores.iter().filter(|score| missed.iter().any(|miss| miss.score == score.id)) {
            text.push_str(&format!("    {}: {}\n", score.id, score.says));
            records.push(json!({
                "figure": info.id,
                "score": score.id,
                "says": score.says,
                "source": source(score),
                "page": page,
            }));
        }
    }
    if as_json {
        print_json(&Value::from(records));
        return;
    }
    text.push_str(&format!(
        "{} of {all} scores are not met by the shipped results, which are full runs in the simulator. The pages say why; \
         `farhaul lab report` shows each beside your run.\n",
        records.len()
    ));
    print(&text);
}

/// Who states the bound of a score.
fn source(score: &ScoreSpec) -> &'static str {
    if score.source == ScoreSource::Paper { "paper" } else { "ours" }
}

fn record(figure: &Figure) -> Value {
    let scenario = &figure.experiment.scenario;
    let score = |score: &ScoreSpec| json!({ "id": score.id, "says": score.says, "source": source(score) });
    let scores: Vec<Value> = scenario.scores.iter().map(score).collect();
    let curves: Vec<&str> = scenario.curves.iter().map(|curve| curve.name.as_str()).collect();
    json!({
        "id": figure.info.id,
        "paper": figure.info.paper,
        "source": figure.info.source,
        "title": figure.info.title,
        "shows": figure.info.shows,
        "curves": curves,
        "scores": scores,
    })
}
