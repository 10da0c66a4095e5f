//! The results of an arena on the terminal and as records.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use farhaul_lab::arena::{Cell, Family, Goal, Mark, Results, Tally, Verdict};
use serde_json::{Map, Value, json};

use crate::exit::Fault;
use crate::output::json::{end_record, start_record};
use crate::output::{Output, print};

/// The table of passes, and the missed cells of the last controller if they are wanted.
pub(super) fn table(results: &Results, page: &Path, misses: bool) {
    let mut text = String::new();
    let mut line = |words: String| {
        writeln!(text, "{}", words.trim_end()).expect("writing to a String cannot fail");
    };
    let columns = 0..results.controllers.len();
    let width = |column: usize| results.controllers[column].chars().count().max("100 of 100".len());
    let row = |name: &str, value: &dyn Fn(usize) -> String| {
        let cells: String = columns.clone().map(|column| format!("  {:>1$}", value(column), width(column))).collect();
        format!("{name:<16}{cells}")
    };
    let passed = |family: Option<Family>| {
        move |column: usize| {
            let Tally { passed, cells, .. } = results.tally(column, family);
            format!("{passed} of {cells}")
        }
    };
    line(row("family", &|column| results.controllers[column].clone()));
    for family in results.families() {
        line(row(family.name(), &passed(Some(family))));
    }
    line(row("all", &passed(None)));
    line(row("mean score", &|column| format!("{:.3}", results.tally(column, None).score)));
    if misses && let Some(last) = results.controllers.len().checked_sub(1) {
        line(format!("\nmissed by {}, with marks of all controllers:", results.controllers[last]));
        for (cell, verdicts) in results.of(None).filter(|(_, verdicts)| !verdicts[last].passed) {
            line(format!("seed {} cell {:<3} {}", cell.seed, cell.place, cell.label));
            for (controller, verdict) in results.controllers.iter().zip(verdicts) {
                let sign = if verdict.passed { '+' } else { '-' };
                line(format!("    {sign} {:.3} {controller}: {}", verdict.score, verdict.words()));
            }
        }
    }
    line(format!("written to {}", page.display()));
    print(&text);
}

/// The first record.
pub(super) fn start(out: &Path, output: &Output) {
    output.record_value(&start_record("lab arena", json!({ "out": out.to_string_lossy() })));
}

/// A record for each cell and controller, and the last record.
pub(super) fn records(done: &Result<(Results, PathBuf), Fault>, output: &Output) {
    let mut end = json!({});
    if let Ok((results, page)) = done {
        for (cell, verdicts) in results.of(None) {
            for (controller, verdict) in results.controllers.iter().zip(verdicts) {
                output.record_value(&of_cell(cell, controller, verdict));
            }
        }
        end = json!({ "seeds": results.seeds, "controllers": summary(results), "page": page.to_string_lossy() });
    }
    output.record_value(&end_record(end, 0, done.as_ref().err()));
}

fn of_cell(cell: &Cell, controller: &str, verdict: &Verdict) -> Value {
    let goal = |(goal, mark): (&Goal, &Mark)| {
        json!({
            "name": mark.name,
            "value": mark.value,
            "least": goal.least,
            "most": goal.most,
            "formula": goal.formula,
            "met": mark.met,
            "score": mark.score,
        })
    };
    json!({
        "event": "cell",
        "seed": cell.seed,
        "cell": cell.place,
        "family": cell.family.name(),
        "label": cell.label,
        "controller": controller,
        "passed": verdict.passed,
        "score": verdict.score,
        "goals": cell.goals.iter().zip(&verdict.marks).map(goal).collect::<Vec<_>>(),
    })
}

/// Passes and scores of all controllers, in all and by family.
fn summary(results: &Results) -> Value {
    let tally = |tally: Tally| json!({ "passed": tally.passed, "cells": tally.cells, "score": tally.score });
    let of = |(column, controller): (usize, &String)| {
        let mut whole = tally(results.tally(column, None));
        let families = results.families().into_iter();
        let families: Map<String, Value> =
            families.map(|family| (family.name().to_owned(), tally(results.tally(column, Some(family))))).collect();
        whole["controller"] = controller.as_str().into();
        whole["families"] = families.into();
        whole
    };
    results.controllers.iter().enumerate().map(of).collect()
}
