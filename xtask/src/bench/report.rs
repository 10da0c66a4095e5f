//! What is printed: a table for people, or one JSON object a line.

use serde_json::{Map, Value, json};

use super::rows::Row;
use super::samples::Samples;

/// Says what a row is without measuring it.
pub(super) fn describe(row: &Row) {
    println!("{}: {}\n  measured: {}", row.name, row.what, row.how);
    row.must.iter().for_each(|requirement| println!("  must hold: {requirement}"));
}

/// The report as it grows.
pub(super) struct Report {
    json: bool,
    met: usize,
    unmet: usize,
}

impl Report {
    /// Begins with the machine.
    pub(super) fn new(json: bool, machine: &[(&'static str, String)], runs: usize) -> Self {
        if json {
            let machine: Map<String, Value> =
                machine.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
            println!("{}", json!({ "event": "start", "machine": machine, "runs": runs }));
        } else {
            machine.iter().for_each(|(name, value)| println!("{name:<10} {value}"));
            println!("{:<10} medians of {runs} (least … most)", "figures");
        }
        Self { json, met: 0, unmet: 0 }
    }

    /// Adds a row with its requirements.
    pub(super) fn row(&mut self, row: &Row, samples: &Samples) {
        if self.json {
            self.row_as_json(row, samples);
        } else {
            self.row_as_table(row, samples);
        }
    }

    /// Ends it; how many requirements do not hold.
    pub(super) fn finish(&self) -> usize {
        let Self { met, unmet, .. } = self;
        if self.json {
            println!("{}", json!({ "event": "end", "met": met, "unmet": unmet }));
        } else {
            println!("\n{met} of {} requirements hold", met + unmet);
        }
        *unmet
    }

    fn row_as_table(&mut self, row: &Row, samples: &Samples) {
        println!("\n{}: {}\n  {}", row.name, row.what, row.how);
        let mut last_case = "";
        for ((case, program, quantity), summary) in samples.summaries() {
            let shown = |value| quantity.show(value);
            println!(
                "  {:<18} {program:<15} {:<14} {:>12}  ({} … {}; {} runs)",
                if case == last_case { "" } else { case },
                quantity.name().split(',').next().unwrap_or_default(),
                shown(summary.median),
                shown(summary.least),
                shown(summary.most),
                summary.runs
            );
            last_case = case;
        }
        for (case, program, why) in &samples.failures {
            println!("  {case:<18} {program:<15} failed: {why}");
        }
        for requirement in row.must {
            let verdict = match requirement.judge(samples) {
                Ok((true, ours, _)) => {
                    self.met += 1;
                    format!("holds  {requirement}: {}", requirement.quantity.show(ours))
                }
                Ok((false, ours, limit)) => {
                    self.unmet += 1;
                    let show = |value| requirement.quantity.show(value);
                    format!("UNMET  {requirement}: {} against {}", show(ours), show(limit))
                }
                Err(why) => {
                    self.unmet += 1;
                    format!("UNMET  {requirement}: {why:#}")
                }
            };
            println!("  {verdict}");
        }
    }

    fn row_as_json(&mut self, row: &Row, samples: &Samples) {
        for ((case, program, quantity), summary) in samples.summaries() {
            let figure = json!({
                "event": "figure", "row": row.name, "case": case, "program": program, "quantity": quantity.name(),
                "median": summary.median, "least": summary.least, "most": summary.most, "runs": summary.runs,
            });
            println!("{figure}");
        }
        for (case, program, why) in &samples.failures {
            println!(
                "{}",
                json!({ "event": "failure", "row": row.name, "case": case, "program": program, "why": why })
            );
        }
        for requirement in row.must {
            let judged = requirement.judge(samples);
            let holds = matches!(judged, Ok((true, ..)));
            *(if holds { &mut self.met } else { &mut self.unmet }) += 1;
            let figures = judged.ok().map(|(_, ours, limit)| json!({ "figure": ours, "limit": limit }));
            let text = requirement.to_string();
            println!("{}", json!({ "event": "must", "row": row.name, "text": text, "holds": holds, "by": figures }));
        }
    }
}
