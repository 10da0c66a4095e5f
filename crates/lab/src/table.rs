//! Results as a table for people, and as CSV for other programs.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::aggregate::{Estimate, Measurements, grid};
use crate::expression::{Expression, Unit};
use crate::figures::FigureResult;
use crate::metric::{Quantity, RunMetric};
use crate::scenario::{PlotKind, Scenario};

/// Columns of metrics that are shown at most: what fits on a screen.
const MAX_COLUMNS: usize = 14;
/// Metrics of the run in the table of a scenario that draws none.
const OF_RUN: [RunMetric; 3] = [RunMetric::Utilisation, RunMetric::Jain, RunMetric::QueueMean];

/// A table with a line for each curve at each point: what the figure draws, as means over the seeds with their 95 % interval.
/// `measurements` holds it and the figures that it refers to.
#[must_use]
pub fn text(result: &FigureResult, measurements: &Measurements<'_>) -> String {
    let rows = rows(result, measurements);
    let widths: Vec<usize> = (0..rows[0].len())
        .map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0))
        .collect();
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(line, "{cell:<width$}  ");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// The head of the table and its lines.
fn rows(result: &FigureResult, measurements: &Measurements<'_>) -> Vec<Vec<String>> {
    let scenario = &result.scenario;
    let columns = columns(result);
    let mut rows = Vec::new();
    for curve in &scenario.curves {
        for point in grid(scenario) {
            let place = measurements.at(&result.info.id, &curve.name, &point);
            let mut row = Vec::new();
            if scenario.curves.len() > 1 {
                row.push(curve.name.clone());
            }
            row.extend(scenario.axes.iter().filter_map(|axis| Some(point.get(&axis.name)?.text.clone())));
            let cells = columns.iter().map(|column| {
                let Ok(expression) = Expression::parse_number(column) else { return "?".to_owned() };
                place.estimate(&expression).map_or("-".to_owned(), |estimate| cell(estimate, expression.unit(&place)))
            });
            row.extend(cells);
            rows.push(row);
        }
    }
    let mut head = Vec::new();
    if scenario.curves.len() > 1 {
        head.push("curve".to_owned());
    }
    head.extend(scenario.axes.iter().map(|axis| axis.name.clone()));
    head.extend(columns);
    rows.insert(0, head);
    rows
}

fn cell(estimate: Estimate, unit: Unit) -> String {
    let mean = unit.print(estimate.mean);
    match estimate.half_width {
        Some(half_width) if half_width > 0.0 => format!("{mean} ±{}", unit.print(half_width)),
        _ => mean,
    }
}

/// The metrics that the figure draws, or those that everybody looks at first.
fn columns(result: &FigureResult) -> Vec<String> {
    let mut columns = Vec::new();
    let mut add = |name: &str| {
        if !columns.iter().any(|column| column == name) {
            columns.push(name.to_owned());
        }
    };
    let names: BTreeSet<&str> =
        result.records.iter().flat_map(|record| record.metrics.keys()).map(String::as_str).collect();
    for y in drawn(&result.scenario) {
        match y.strip_suffix('*') {
            Some(prefix) => names.iter().filter(|name| name.starts_with(prefix)).for_each(|name| add(name)),
            None => add(y),
        }
    }
    if columns.is_empty() {
        let flows = result.scenario.flows.iter().map(|flow| Quantity::Goodput.of_flow(flow));
        let shown: Vec<String> = flows.chain(OF_RUN.map(|metric| metric.key().to_owned())).collect();
        columns.extend(shown.into_iter().filter(|name| names.contains(name.as_str())));
    }
    columns.truncate(MAX_COLUMNS);
    columns
}

fn drawn(scenario: &Scenario) -> impl Iterator<Item = &str> {
    let plots = scenario.plots.iter().filter(|plot| plot.kind != PlotKind::Time);
    plots.flat_map(|plot| plot.y.iter().map(String::as_str))
}

/// One line for each run, with all its metrics in base units.
#[must_use]
pub fn csv(result: &FigureResult) -> String {
    let metrics: BTreeSet<&str> =
        result.records.iter().flat_map(|record| record.metrics.keys()).map(String::as_str).collect();
    let axes: Vec<&str> = result.scenario.axes.iter().map(|axis| axis.name.as_str()).collect();
    let mut text = String::from("figure,curve");
    axes.iter().for_each(|axis| text.extend([",", &field(axis)]));
    text.push_str(",seed");
    metrics.iter().for_each(|metric| text.extend([",", &field(metric)]));
    text.push('\n');
    for record in &result.records {
        let _ = write!(text, "{},{}", field(&record.figure), field(&record.curve));
        for axis in &axes {
            let value = record.point.get(*axis).map_or(String::new(), |value| field(&value.text));
            let _ = write!(text, ",{value}");
        }
        let _ = write!(text, ",{}", record.seed);
        for metric in &metrics {
            let value = record.metrics.get(*metric).map_or(String::new(), f64::to_string);
            let _ = write!(text, ",{value}");
        }
        text.push('\n');
    }
    text
}

/// A field of CSV (RFC 4180).
fn field(text: &str) -> String {
    if text.contains([',', '"', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Grid, figure};

    fn result() -> FigureResult {
        let grid = Grid { rates: &["1mbit", "10mbit"], rtts: &[], seeds: 2 };
        figure("a3", grid, Vec::new(), |run| {
            vec![("utilisation".to_owned(), 0.9 + 0.01 * run.seed as f64), ("goodput.total".to_owned(), run.rate)]
        })
    }

    #[test]
    fn csv_has_a_line_for_each_run() {
        let csv = csv(&result());
        let lines: Vec<&str> = csv.lines().collect();
        assert_eq!(lines.len(), 1 + 2 * 2 * 2);
        assert_eq!(lines[0], "figure,curve,rate,seed,goodput.total,utilisation");
        assert_eq!(lines[1], "a3,udt-2004,1mbit,1,1000000,0.91");
        assert_eq!((field("a"), field("a,\"b\"")), ("a".to_owned(), "\"a,\"\"b\"\"\"".to_owned()));
    }

    #[test]
    fn a_table_has_a_line_for_each_curve_at_each_point() {
        let mut result = result();
        result.scenario.plots.clear();
        let text = text(&result, &Measurements::new([&result]));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 1 + 4, "{text}");
        assert!(lines[0].starts_with("curve     rate    utilisation"), "{text}");
        assert!(lines[1].contains("91.5") && lines[1].contains('±'), "{text}");
    }
    #[test]
    fn a_column_that_refers_to_another_figure_has_its_values() {
        let mut result = result();
        let mut plot = crate::testing::gallery()[0].scenario.plots[0].clone();
        plot.y = vec!["utilisation / utilisation[udt]@b2".to_owned()];
        result.scenario.plots = vec![plot];
        let grid = Grid { rates: &["1mbit", "10mbit"], rtts: &[], seeds: 2 };
        let other = figure("b2", grid, Vec::new(), |_| vec![("utilisation".to_owned(), 0.5)]);
        let lone = text(&result, &Measurements::new([&result]));
        assert!(lone.lines().skip(1).all(|line| line.ends_with('-')), "{lone}");
        let both = text(&result, &Measurements::new([&result, &other]));
        assert!(both.lines().skip(1).all(|line| line.contains("1.83")), "{both}");
    }
}
