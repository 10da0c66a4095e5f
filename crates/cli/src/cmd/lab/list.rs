//! `lab list`: the list of figures.

use std::fmt::Write as _;

use clap::Args;
use farhaul_lab::figures::shipped;
use farhaul_lab::scenario::ScoreSource;
use farhaul_lab::{Figure, LabError, Overrides};
use serde_json::{Value, json};

use crate::exit::{Code, Fault};
use crate::output::{print, print_json};

/// List the figures with their papers, and by choice their required scores
#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// Print what each figure shows, and the scores that it must meet
    #[arg(long)]
    scores: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &ListArgs) -> Result<(), Fault> {
    let read = shipped().iter().map(|figure| figure.read(&Overrides::default()));
    let figures = read.collect::<Result<Vec<Figure>, LabError>>();
    let figures = figures.map_err(|error| Fault::new(Code::Failed, error.to_string()))?;
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

fn record(figure: &Figure) -> Value {
    let scenario = &figure.experiment.scenario;
    let scores: Vec<Value> = scenario
        .scores
        .iter()
        .map(|score| {
            let source = if score.source == ScoreSource::Paper { "paper" } else { "ours" };
            json!({ "id": score.id, "says": score.says, "source": source })
        })
        .collect();
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
