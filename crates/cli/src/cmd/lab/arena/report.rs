//! The results of an arena on the terminal and as records.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use farhaul_lab::arena::{Cell, Family, Goal, Mark, Results, Tally, Verdict};
use serde_json::{Map, Value, json};

use crate::exit::Fault;
use crate::output::json::start_record;
use crate::output::{has_written, print, print_json};

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
pub(super) fn start(out: &Path) {
    has_written("start");
    print_json(&start_record("lab arena", json!({ "out": out.to_string_lossy() })));
}

/// A record for each cell and controller, and the last record.
pub(super) fn records(done: &Result<(Results, PathBuf), Fault>) {
    let mut end = Map::new();
    if let Ok((results, page)) = done {
        for (cell, verdicts) in results.of(None) {
            for (controller, verdict) in results.controllers.iter().zip(verdicts) {
                print_json(&of_cell(cell, controller, verdict));
            }
        }
        end.insert("seeds".to_owned(), json!(results.seeds));
        end.insert("controllers".to_owned(), summary(results));
        end.insert("page".to_owned(), page.to_string_lossy().into());
    }
    has_written("end");
    let error = done.as_ref().err();
    end.insert("event".to_owned(), "end".into());
    end.insert("exit_code".to_owned(), error.map_or(0, |fault| fault.code.exit()).into());
    let words = error.map(|fault| json!({ "code": fault.code.symbol(), "message": fault.message }));
    end.insert("error".to_owned(), words.into());
    print_json(&Value::Object(end));
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
