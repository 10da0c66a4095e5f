//! Results as tables of runs and of flows.

mod csv;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::aggregate::{FigurePlace, Measurements, Point, grid};
use crate::expression::Expression;
use crate::figures::FigureResult;
use crate::metric::{Quantity, RunMetric, flows_of};
use crate::scenario::{PlotKind, Scenario};

pub use csv::csv;

/// The most columns with metrics, for the width of a screen.
const MAX_COLUMNS: usize = 14;
/// The most flows with a line each. Of more flows, those of a `count` have one line with their mean.
const MAX_FLOWS: usize = 24;
/// Metrics of the run in the table of a scenario without plots.
const OF_RUN: [RunMetric; 8] = [
    RunMetric::GoodputTotal,
    RunMetric::Utilisation,
    RunMetric::Jain,
    RunMetric::QueueMean,
    RunMetric::QueueMax,
    RunMetric::Drops,
    RunMetric::Completed,
    RunMetric::CompletionMean,
];
/// Metrics of a flow in the table of a scenario without plots.
const OF_FLOW: [Quantity; 7] = [
    Quantity::Goodput,
    Quantity::Loss,
    Quantity::Retransmitted,
    Quantity::Rtt,
    Quantity::Utilisation,
    Quantity::Completion,
    Quantity::CpuPerGigabyte,
];

/// The head of the column with the names of curves.
pub(crate) const CURVE: &str = "curve";

/// The head of the column with the names of flows.
pub(crate) const FLOW: &str = "flow";

/// A table: labels first, then numbers with their units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// The names of the columns: labels, then the keys of metrics.
    pub head: Vec<String>,
    /// The number of columns with labels.
    pub labels: usize,
    /// The lines.
    pub rows: Vec<Vec<String>>,
}

/// The tables of a figure: means over the seeds with their 95 % interval, a line for each curve at each point.
///
/// The columns are the metrics that the figure draws. A scenario without plots has a table of its runs and one of their
/// flows. `measurements` holds the figure and those to which it refers.
#[must_use]
pub fn tables(result: &FigureResult, measurements: &Measurements<'_>) -> Vec<Table> {
    if result.scenario.draws_by_default {
        let tables = [of_runs(result, measurements, &run_columns(result)), of_flows(result, measurements)];
        return tables.into_iter().filter(|table| table.head.len() > table.labels).collect();
    }
    let mut columns = drawn_columns(result);
    if columns.is_empty() {
        let keys = keys(result);
        let goodputs = result.scenario.flows.iter().map(|flow| Quantity::Goodput.of_flow(flow));
        columns = run_columns(result);
        columns.extend(goodputs.filter(|key| keys.contains(&**key)));
    }
    columns.truncate(MAX_COLUMNS);
    vec![of_runs(result, measurements, &columns)]
}

/// The tables as text in columns.
#[must_use]
pub fn text(result: &FigureResult, measurements: &Measurements<'_>) -> String {
    let texts: Vec<String> = tables(result, measurements).iter().map(Table::text).collect();
    texts.join("\n")
}

impl Table {
    fn text(&self) -> String {
        let lines = || std::iter::once(&self.head).chain(&self.rows);
        let width = |column: usize| lines().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.head.len()).map(width).collect();
        let mut text = String::new();
        for row in lines() {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(&widths) {
                let _ = write!(line, "{cell:<width$}  ");
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// A line for each curve at each point.
fn of_runs(result: &FigureResult, measurements: &Measurements<'_>, columns: &[String]) -> Table {
    let mut table = empty(&result.scenario);
    table.head.extend(columns.iter().cloned());
    for (labels, curve, point) in lines(&result.scenario) {
        let place = measurements.at(&result.info.id, curve, &point);
        let cells = columns.iter().map(|column| cell(column, &place));
        table.rows.push(labels.into_iter().chain(cells).collect());
    }
    table
}

/// A line for each flow of each curve at each point.
fn of_flows(result: &FigureResult, measurements: &Measurements<'_>) -> Table {
    let keys = keys(result);
    let flows = flows(&keys);
    let columns =
        OF_FLOW.iter().filter(|quantity| flows.iter().any(|(flow, _)| keys.contains(&*quantity.of_flow(flow))));
    let columns: Vec<Quantity> = columns.copied().collect();
    let mut table = empty(&result.scenario);
    table.head.push(FLOW.to_owned());
    table.labels += 1;
    table.head.extend(columns.iter().map(|quantity| quantity.name().to_owned()));
    for (labels, curve, point) in lines(&result.scenario) {
        let place = measurements.at(&result.info.id, curve, &point);
        for (flow, label) in &flows {
            let cells: Vec<String> = columns.iter().map(|quantity| cell(&quantity.of_flow(flow), &place)).collect();
            // A curve may lack a flow.
            if cells.iter().any(|cell| cell != NO_VALUE && cell != NO_CPU) {
                table.rows.push(labels.iter().cloned().chain([label.clone()]).chain(cells).collect());
            }
        }
    }
    table
}

/// The flows in the keys of metrics, with their labels.
fn flows(keys: &BTreeSet<&str>) -> Vec<(String, String)> {
    let single = flows_of(Quantity::Goodput, keys.iter().copied());
    let flow = |name: &str| (name.to_owned(), name.to_owned());
    if single.len() <= MAX_FLOWS {
        return single.into_iter().map(flow).collect();
    }
    let mut found: Vec<(String, String)> = Vec::new();
    for name in &single {
        let group = name.rsplit_once('-').map(|(group, _)| group);
        match group.filter(|group| keys.contains(&*Quantity::Goodput.of_flow(group))) {
            None => found.push(flow(name)),
            Some(group) if found.iter().any(|(known, _)| known == group) => {}
            Some(group) => {
                let of_group = |name: &&&str| name.rsplit_once('-').is_some_and(|(other, _)| other == group);
                let count = single.iter().filter(of_group).count();
                found.push((group.to_owned(), format!("{group} (mean of {count})")));
            }
        }
    }
    found
}

/// A table with the columns of labels and no lines.
fn empty(scenario: &Scenario) -> Table {
    let curve = (scenario.curves.len() > 1).then(|| CURVE.to_owned());
    let head: Vec<String> = curve.into_iter().chain(scenario.axes.iter().map(|axis| axis.name.clone())).collect();
    Table { labels: head.len(), head, rows: Vec::new() }
}

/// The labels, curve and point of each line.
fn lines(scenario: &Scenario) -> Vec<(Vec<String>, &str, Point)> {
    let mut lines = Vec::new();
    for curve in &scenario.curves {
        for point in grid(scenario) {
            let name = (scenario.curves.len() > 1).then(|| curve.name.clone());
            let values = scenario.axes.iter().filter_map(|axis| Some(point.get(&axis.name)?.text.clone()));
            lines.push((name.into_iter().chain(values).collect(), curve.name.as_str(), point));
        }
    }
    lines
}

/// The cell of a value that was not measured.
const NO_VALUE: &str = "-";
/// The cell of a processor time that was not measured. Hosts of the simulator have none.
const NO_CPU: &str = "no CPU";

fn cell(column: &str, place: &FigurePlace<'_>) -> String {
    let Ok(expression) = Expression::parse(column) else { return "?".to_owned() };
    let missing = if expression.is_processor_time() { NO_CPU } else { NO_VALUE };
    place.estimate(&expression).map_or(missing.to_owned(), |estimate| estimate.print(expression.unit(place)))
}

/// The keys of all metrics of all runs.
fn keys(result: &FigureResult) -> BTreeSet<&str> {
    result.records.iter().flat_map(|record| record.metrics.keys()).map(String::as_str).collect()
}

/// The usual metrics of the run that were measured.
fn run_columns(result: &FigureResult) -> Vec<String> {
    let keys = keys(result);
    OF_RUN.iter().map(|metric| metric.key()).filter(|key| keys.contains(key)).map(str::to_owned).collect()
}

/// The metrics that the figure draws, except over time.
fn drawn_columns(result: &FigureResult) -> Vec<String> {
    let mut columns = Vec::new();
    let mut add = |name: &str| {
        if !columns.iter().any(|column| column == name) {
            columns.push(name.to_owned());
        }
    };
    let keys = keys(result);
    for y in drawn(&result.scenario) {
        match y.strip_suffix('*') {
            Some(prefix) => keys.iter().filter(|key| key.starts_with(prefix)).for_each(|key| add(key)),
            None => add(y),
        }
    }
    columns
}

fn drawn(scenario: &Scenario) -> impl Iterator<Item = &str> {
    let plots = scenario.plots.iter().filter(|plot| plot.kind != PlotKind::Time);
    plots.flat_map(|plot| plot.y.iter().map(String::as_str))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::testing::{Grid, figure};

    pub(crate) fn result() -> FigureResult {
        let grid = Grid { rates: &["1mbit", "10mbit"], rtts: &[], seeds: 2 };
        figure("a3", grid, Vec::new(), |run| {
            vec![("utilisation".to_owned(), 0.9 + 0.01 * run.seed as f64), ("goodput.total".to_owned(), run.rate)]
        })
    }

    #[test]
    fn a_table_has_a_line_for_each_curve_at_each_point() {
        let result = result();
        let text = text(&result, &Measurements::new([&result]));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 1 + 4, "{text}");
        assert!(lines[0].starts_with("curve     rate    goodput.total  utilisation"), "{text}");
        assert!(lines[1].contains("1\u{a0}Mbit/s") && lines[1].contains("91.5") && lines[1].contains('±'), "{text}");
    }

    #[test]
    fn a_processor_time_that_was_not_measured_is_no_number() {
        let mut result = result();
        let mut plot = crate::testing::gallery()[0].scenario.plots[0].clone();
        plot.y = vec!["cpu_per_gigabyte.udt".to_owned(), "goodput.udt".to_owned()];
        result.scenario.plots = vec![plot];
        let text = text(&result, &Measurements::new([&result]));
        assert!(text.lines().skip(1).all(|line| line.contains("no CPU") && line.ends_with('-')), "{text}");
    }

    #[test]
    fn a_scenario_that_draws_by_default_has_a_table_of_runs_and_one_of_flows() {
        let mut result = figure("mine", Grid { rates: &["1mbit", "10mbit"], rtts: &[], seeds: 2 }, Vec::new(), |run| {
            let flows = [("a", 0.1), ("b", 0.2)].into_iter().chain((1..=30).map(|_| ("c", 0.3)));
            let mut metrics = vec![("jain".to_owned(), 0.9), ("goodput.total".to_owned(), run.rate)];
            for (number, (flow, loss)) in flows.enumerate() {
                let name = if flow == "c" { format!("c-{}", number - 1) } else { flow.to_owned() };
                metrics.push((format!("goodput.{name}"), run.rate / 2.0));
                metrics.push((format!("loss.{name}"), loss));
            }
            metrics.push(("goodput.c".to_owned(), run.rate / 2.0));
            metrics
        });
        result.scenario.draws_by_default = true;
        let measurements = Measurements::new([&result]);
        let tables = tables(&result, &measurements);
        assert_eq!(tables.len(), 2);
        assert_eq!(
            (&*tables[0].head, tables[0].labels),
            (&["curve", "rate", "goodput.total", "jain"].map(str::to_owned)[..], 2)
        );
        assert_eq!(
            (&*tables[1].head, tables[1].labels),
            (&["curve", "rate", "flow", "goodput", "loss"].map(str::to_owned)[..], 3)
        );
        assert_eq!(tables[1].rows.len(), 2 * 2 * 3, "{:?}", tables[1].rows);
        let cells = ["udt-2004", "1mbit", "a", "500\u{a0}kbit/s", "10\u{a0}%"];
        assert_eq!(tables[1].rows[0], cells);
        assert_eq!(tables[1].rows[2][2], "c (mean of 30)");
        let text = text(&result, &measurements);
        assert!(text.contains("\n\ncurve"), "an empty line between them: {text}");
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
