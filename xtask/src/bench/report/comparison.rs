//! A row as a table in Markdown: programs beside each other.

use std::fmt::Write as _;

use super::super::quantity::Quantity;
use super::super::samples::{Key, Samples, Summary};

/// A line for each case and program, with the quantities `shows` as columns.
pub(super) fn markdown(shows: &[Quantity], setting: &str, samples: &Samples) -> String {
    let names: Vec<&str> = shows.iter().map(|quantity| quantity.name()).collect();
    let mut text = format!("| case | program | {} | runs |\n| --- | --- |", names.join(" | "));
    text.push_str(&" --- |".repeat(shows.len() + 1));
    text.push('\n');
    let mut last = None;
    for (key, _) in samples.summaries().filter(|(key, _)| key.setting == setting) {
        if last.replace((key.case, key.program)) == Some((key.case, key.program)) {
            continue;
        }
        let summary = |quantity| samples.summary(&Key { quantity, ..key.clone() }).ok();
        let cells: Vec<String> = shows
            .iter()
            .map(|&quantity| summary(quantity).map_or_else(String::new, |summary| cell(quantity, summary)))
            .collect();
        let runs = shows.iter().filter_map(|&quantity| summary(quantity)).map(|summary| summary.runs).max();
        let lost = match samples.lost_runs(key) {
            0 => String::new(),
            lost => format!(", {lost} not counted"),
        };
        let (case, program, runs) = (key.case, key.program, runs.unwrap_or(0));
        // Writing to a string cannot fail.
        let _ = writeln!(text, "| {case} | {program} | {} | {runs}{lost} |", cells.join(" | "));
    }
    text
}

fn cell(quantity: Quantity, Summary { median, least, most, .. }: Summary) -> String {
    let show = |value| quantity.show(value);
    format!("{} ({} … {})", show(median), show(least), show(most))
}

#[cfg(test)]
mod tests {
    use super::super::super::samples::{Invalid, Measured};
    use super::*;

    #[test]
    fn each_program_of_a_case_has_a_line() {
        let mut samples = Samples::default();
        for (program, goodput) in [("cubic", 4e8), ("union", 8e8), ("union", 6e8)] {
            samples.add("loopback", program, Ok(Measured::of([(Quantity::Goodput, goodput)])));
        }
        samples.add("loopback", "union", Ok(Measured::of([(Quantity::OfCubic, 2.0)])));
        samples.add("loopback", "union", Err(Invalid("the emulator was late".into()).into()));
        let text = markdown(&[Quantity::Goodput, Quantity::OfCubic], "", &samples);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[..2], ["| case | program | goodput | of cubic | runs |", "| --- | --- | --- | --- | --- |"]);
        assert_eq!(lines[2], "| loopback | cubic | 400.0 Mbit/s (400.0 Mbit/s … 400.0 Mbit/s) |  | 1 |");
        let union =
            "| loopback | union | 700.0 Mbit/s (600.0 Mbit/s … 800.0 Mbit/s) | 2.00 (2.00 … 2.00) | 2, 1 not counted |";
        assert_eq!(lines[3..], [union]);
    }
}
