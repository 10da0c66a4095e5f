//! The report of figures as they finish: tables and scores in words, or records.

use std::fs;
use std::path::Path;

use farhaul_lab::aggregate::Measurements;
use farhaul_lab::figures::shipped;
use farhaul_lab::misses::{self, Miss};
use farhaul_lab::report::drawings;
use farhaul_lab::score::{self, ScoreResult};
use farhaul_lab::store::RECORDS;
use farhaul_lab::{FigureResult, LabError, Record, World, folder, table};
use serde_json::{Value, json};

use crate::cmd::drawing::Format;
use crate::cmd::lab::{RunOptions, file_fault};
use crate::exit::{Code, Fault};
use crate::output::json::{end_record, start_record};
use crate::output::{Output, print};

/// Suffix of files about the emulated world.
const EMULATED: &str = "-emulated";

/// Name of the CSV file of runs, in a figure's folder.
fn csv(world: World) -> String {
    format!("records{}.csv", suffix(world))
}

/// Suffix of files about `world`, so that each world has its own.
fn suffix(world: World) -> &'static str {
    if world.is_simulated() { "" } else { EMULATED }
}

/// Scores of the figures so far.
pub(super) struct FigureTally {
    output: Output,
    /// Formats of drawings.
    formats: Vec<Format>,
    met: usize,
    scores: usize,
    /// Scores that are not met: figure and score.
    unmet: Vec<(String, String)>,
    /// Finished figures that refer to unfinished ones.
    waiting: Vec<usize>,
}

/// The record of a run that is finished and kept.
pub(super) fn run_record(run: &Record) -> Value {
    json!({
        "event": "run",
        "figure": run.figure,
        "curve": run.curve,
        "point": run.point,
        "seed": run.seed,
        "world": run.world,
        "emulation": run.emulation,
        "metrics": run.metrics,
        "real_seconds": run.real_seconds,
    })
}

impl FigureTally {
    pub(super) fn begin(verb: &str, out: &Path, formats: &[Format], output: &Output) -> Self {
        output.record_value(&start_record(&format!("lab {verb}"), json!({ "out": out.to_string_lossy() })));
        let (output, formats) = (output.clone(), formats.to_vec());
        Self { output, formats, met: 0, scores: 0, unmet: Vec::new(), waiting: Vec::new() }
    }

    /// Takes a finished figure. Evaluates it once all figures that it refers to are finished.
    pub(super) fn figure(&mut self, results: &[FigureResult], place: usize, out: &Path) -> Result<(), LabError> {
        self.waiting.push(place);
        let ready = |place: usize| {
            let others = results[place].refers_to();
            results.iter().all(|other| !other.records.is_empty() || !others.contains(&other.info.id))
        };
        let (now, later) = self.waiting.iter().partition(|place| ready(**place));
        self.waiting = later;
        let now: Vec<usize> = now;
        now.into_iter().try_for_each(|place| self.write_and_print(results, place, out))
    }

    fn write_and_print(&mut self, results: &[FigureResult], place: usize, out: &Path) -> Result<(), LabError> {
        let result = &results[place];
        let folder = out.join(&result.info.id);
        let csv = folder.join(csv(result.world));
        fs::write(&csv, table::csv(result)).map_err(|source| LabError::file(&csv, source))?;
        let others = others(results, place, out);
        let measurements =
            Measurements::new(others.iter().chain(results.iter().filter(|other| !other.records.is_empty())));
        let scores = score::evaluate(result, &measurements);
        for drawing in drawings(result, &measurements) {
            let stem = folder.join(format!("{}{}", drawing.name, suffix(result.world)));
            let written = self.formats.iter().try_for_each(|format| format.write(&stem, &drawing.svg));
            written.map_err(|(path, source)| LabError::file(path, source))?;
        }
        let (met, all) = score::count(&scores);
        self.met += met;
        self.scores += all;
        let unmet = scores.iter().filter(|score| score.applies && !score.met);
        self.unmet.extend(unmet.map(|score| (result.info.id.clone(), score.id.clone())));
        if self.output.is_json() {
            self.output.record_value(&record(result, &scores, &folder));
        } else {
            self.print(result, &table::text(result, &measurements), &scores, &folder);
        }
        Ok(())
    }

    fn print(&self, result: &FigureResult, table: &str, scores: &[ScoreResult], folder: &Path) {
        let info = &result.info;
        let mut text = format!("\n{}  {}", info.id, info.title);
        if !info.source.is_empty() {
            text.push_str(&format!(" ({}, {})", info.paper, info.source));
        }
        text.push('\n');
        text.push_str(table);
        for score in scores {
            let mark = match (score.applies, score.met) {
                (false, _) => "open   ",
                (true, true) => "met    ",
                (true, false) => "NOT met",
            };
            text.push_str(&format!("score {}: {mark} {}\n", score.id, score.says));
            text.push_str(&format!("      {}\n", score.measured()));
        }
        for run in result.records.iter().filter(|run| !run.is_valid()) {
            text.push_str(&format!("INVALID {}: {}\n", name(run), run.flaws().join("; ")));
        }
        text.push_str(&format!("written to {}\n", folder.display()));
        self.output.suspend(|| print(&text));
    }

    /// Writes the list of scores that are not met, in the order of the shipped figures.
    fn write_misses(&mut self, options: &RunOptions) -> Result<(), Fault> {
        let place = |figure: &str| shipped().iter().position(|shipped| shipped.id == figure);
        self.unmet.sort_by_key(|(figure, _)| place(figure));
        let missed = self.unmet.iter().map(|(figure, score)| Miss { figure, score });
        let name = if options.emulates() { format!("misses{EMULATED}.csv") } else { misses::FILE.to_owned() };
        let file = options.out.join(name);
        fs::write(&file, misses::csv(missed)).map_err(|source| file_fault(&file, &source))
    }

    /// Prints the last line or record. Returns the failure, if any.
    pub(super) fn end(mut self, done: Result<(), Fault>, options: &RunOptions) -> Result<(), Fault> {
        let (met, all) = (self.met, self.scores);
        let done = done.and_then(|()| self.write_misses(options));
        let unmet: Vec<String> = self.unmet.iter().map(|(figure, score)| format!("{figure}/{score}")).collect();
        let done = done.and_then(|()| {
            if options.strict && !unmet.is_empty() {
                let names = unmet.join(", ");
                return Err(Fault::new(Code::Failed, format!("{} of {all} scores not met: {names}", unmet.len())));
            }
            Ok(())
        });
        if self.output.is_json() {
            let end = json!({ "scores_met": met, "scores": all, "unmet": unmet });
            self.output.record_value(&end_record(end, 0, done.as_ref().err()));
        } else if done.is_ok() || !unmet.is_empty() {
            print(&format!("scores: {met} of {all} met\n"));
        }
        done
    }
}

/// The name of a run in messages.
fn name(run: &Record) -> String {
    let point = run.point.iter().map(|(axis, value)| format!("{axis} {}", value.text));
    let curve = Some(run.curve.clone()).filter(|curve| !curve.is_empty());
    let parts: Vec<String> = curve.into_iter().chain(point).chain([format!("seed {}", run.seed)]).collect();
    parts.join(", ")
}

/// Results of earlier runs that scores may refer to. Unreadable results are ignored.
fn others(results: &[FigureResult], place: usize, out: &Path) -> Vec<FigureResult> {
    if results[place].refers_to().is_empty() {
        return Vec::new();
    }
    let mut others = folder::results(out).unwrap_or_default();
    others.retain(|other| {
        other.world == results[place].world && results.iter().all(|result| result.info.id != other.info.id)
    });
    others
}

fn record(result: &FigureResult, scores: &[ScoreResult], folder: &Path) -> Value {
    let scores: Vec<Value> = scores
        .iter()
        .map(|score| json!({ "id": score.id, "says": score.says, "met": score.applies.then_some(score.met), "measured": score.measured() }))
        .collect();
    json!({
        "event": "figure",
        "id": result.info.id,
        "title": result.info.title,
        "paper": result.info.paper,
        "world": result.world,
        "valid": result.records.iter().all(Record::is_valid),
        "quick": result.quick,
        "runs": result.records.len(),
        "packet_hops": result.records.iter().map(|record| record.packet_hops).sum::<u64>(),
        "real_seconds": result.records.iter().map(|record| record.real_seconds).sum::<f64>(),
        "records": folder.join(RECORDS).to_string_lossy(),
        "csv": folder.join(csv(result.world)).to_string_lossy(),
        "scores": scores,
    })
}
