//! Output of `bench`: tables with a summary in Markdown at the end, or one JSON object per line.

mod comparison;
mod summary;

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::options::Options;
use super::requirement::Comparison;
use super::rows::{Measurement, Row};
use super::samples::{Key, LostKind, Samples};
use summary::Line;

/// Describes a row without measuring it.
pub(super) fn describe(row: &Row) {
    let by = row.by;
    let settings = if by.in_settings { " in each setting of the socket buffers" } else { "" };
    println!("{}: {}", row.name, row.what);
    println!("  measured: {}", by.how);
    println!("  {} runs of about {} s{settings}", by.runs, by.seconds);
    row.must.iter().for_each(|requirement| println!("  must hold: {requirement}"));
}

/// The report under construction.
pub(super) struct Report {
    json: bool,
    /// Only cases with this in their names were measured.
    case: String,
    /// Whether the runs are too short to judge.
    quick: bool,
    machine: Vec<(&'static str, String)>,
    lines: Vec<Line>,
    /// The measurement of the previous row. Its method and lost runs are printed once.
    last: Option<&'static Measurement>,
}

impl Report {
    /// Starts with the machine.
    pub(super) fn new(options: &Options, machine: &[(&'static str, String)]) -> Self {
        let mut machine = machine.to_vec();
        if options.quick {
            machine.push(("quick", "runs too short for a comparison".into()));
        }
        if options.json {
            let machine: Map<String, Value> =
                machine.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
            println!("{}", json!({ "event": "start", "machine": machine }));
        } else {
            machine.iter().for_each(|(name, value)| println!("{name:<10} {value}"));
        }
        Self {
            json: options.json,
            case: options.case.clone(),
            quick: options.quick,
            machine,
            lines: Vec::new(),
            last: None,
        }
    }

    /// Adds a row that was measured in `settings`.
    pub(super) fn row(&mut self, row: &Row, settings: &[&'static str], samples: &Samples) {
        let same = self.last.replace(row.by).is_some_and(|last| std::ptr::eq(last, row.by));
        if !self.json {
            println!("\n{}: {}", row.name, row.what);
            println!("  {}", if same { "same runs as above" } else { row.by.how });
        }
        for &setting in settings {
            if self.json {
                figures_as_json(row, setting, samples);
            } else {
                if !setting.is_empty() {
                    println!("  {setting}");
                }
                print!("\n{}", comparison::markdown(row.shows, setting, samples));
            }
            match (same, self.json) {
                (true, _) => {}
                (false, true) => circumstances_as_json(row, setting, samples),
                (false, false) => circumstances(setting, samples),
            }
            for requirement in row.must.iter().filter(|requirement| requirement.case.contains(&self.case)) {
                let judged = requirement.judge(samples, setting).map_err(|error| format!("{error:#}"));
                let key = Key {
                    setting,
                    case: requirement.case,
                    program: requirement.program,
                    quantity: requirement.quantity,
                };
                let (lost, counts) = (samples.lost_runs(&key), !self.quick);
                if self.json {
                    comparison_as_json(row, setting, &requirement.to_string(), &judged, counts);
                } else if counts {
                    println!("    {:<5}  {requirement}", if holds(&judged) { "met" } else { "UNMET" });
                }
                self.lines.push(Line { row: row.name, setting, requirement: *requirement, judged, lost, counts });
            }
        }
    }

    /// Ends the report and returns the number of unmet requirements.
    pub(super) fn finish(&self, took: Duration) -> usize {
        let met = self.lines.iter().filter(|line| line.counts && holds(&line.judged)).count();
        let unmet = self.lines.len() - met;
        if self.json {
            println!("{}", json!({ "event": "end", "met": met, "unmet": unmet, "seconds": took.as_secs() }));
        } else {
            print!("\n{}", summary::markdown(&self.machine, &self.lines));
            println!("\n{met} of {} requirements are met; measured in {} s", self.lines.len(), took.as_secs());
        }
        unmet
    }
}

fn holds(judged: &Result<Comparison, String>) -> bool {
    matches!(judged, Ok(comparison) if comparison.holds)
}

/// Runs that do not count, and notes on those that do.
fn circumstances(setting: &str, samples: &Samples) {
    for lost in samples.lost.iter().filter(|lost| lost.setting == setting) {
        let word = if lost.kind == LostKind::Failed { "failed: " } else { "" };
        println!("    {:<18} {:<17} {word}{}", lost.case, lost.program, lost.why);
    }
    for (_, program, note) in samples.notes.iter().filter(|(its, ..)| *its == setting) {
        println!("    {program}: {note}");
    }
}

fn figures_as_json(row: &Row, setting: &str, samples: &Samples) {
    for (key, summary) in samples.summaries() {
        if key.setting != setting || !row.shows.contains(&key.quantity) {
            continue;
        }
        let figure = json!({
            "event": "figure", "row": row.name, "setting": setting, "case": key.case, "program": key.program,
            "quantity": key.quantity.name(), "unit": key.quantity.unit(), "median": summary.median,
            "least": summary.least, "most": summary.most, "runs": summary.runs,
        });
        println!("{figure}");
    }
}

fn circumstances_as_json(row: &Row, setting: &str, samples: &Samples) {
    for lost in samples.lost.iter().filter(|lost| lost.setting == setting) {
        let event = match lost.kind {
            LostKind::Invalid => "invalid",
            LostKind::Skipped => "skipped",
            LostKind::Failed => "failure",
        };
        let record = json!({
            "event": event, "row": row.name, "setting": setting,
            "case": lost.case, "program": lost.program, "why": lost.why,
        });
        println!("{record}");
    }
    for (_, program, note) in samples.notes.iter().filter(|(its, ..)| *its == setting) {
        let record = json!({ "event": "note", "row": row.name, "setting": setting, "program": program, "note": note });
        println!("{record}");
    }
}

fn comparison_as_json(row: &Row, setting: &str, text: &str, judged: &Result<Comparison, String>, counts: bool) {
    let by = judged.as_ref().ok().map(|comparison| {
        let peer = comparison.peer.map(|(program, figure)| json!({ "program": program, "figure": figure }));
        json!({ "figure": comparison.ours.median, "limit": comparison.limit, "peer": peer })
    });
    let record = json!({
        "event": "must", "row": row.name, "setting": setting, "text": text, "holds": counts && holds(judged), "by": by,
        "why": judged.as_ref().err().map_or(if counts { "" } else { "too short" }, String::as_str),
    });
    println!("{record}");
}
