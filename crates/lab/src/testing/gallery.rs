//! One figure of every kind, made by formulas.

use super::{Grid, TestRun, figure, score};
use crate::expression::quantity_in_base_units;
use crate::figures::FigureResult;
use crate::paper::{Bound, Published};
use crate::record::AxisValue;
use crate::scenario::{Demand, PlotKind, PlotSpec, Scale};

/// A figure of every kind of drawing: `a3` map, `a5` time, `a10` bars, `b1` lines, `b3` lines by an axis.
pub(crate) fn gallery() -> Vec<FigureResult> {
    vec![map(), over_time(), bars(), lines(), lines_by_queue()]
}

fn plot(kind: PlotKind, x: Option<&str>, y: &str, by: &[&str]) -> PlotSpec {
    PlotSpec {
        name: "plot".to_owned(),
        kind,
        x: x.map(str::to_owned),
        y: vec![y.to_owned()],
        by: by.iter().map(|axis| (*axis).to_owned()).collect(),
        ..PlotSpec::default()
    }
}

fn published(metric: &str, text: &str, bound: Bound, point: &[(&str, &str)]) -> Published {
    let value = |text: &str| AxisValue { text: text.to_owned(), number: quantity_in_base_units(text) };
    Published {
        curve: None,
        point: point.iter().map(|(axis, text)| ((*axis).to_owned(), value(text))).collect(),
        metric: metric.to_owned(),
        value: quantity_in_base_units(text).unwrap_or(0.0),
        text: text.to_owned(),
        bound,
        note: String::new(),
        line: 1,
    }
}

fn holds(expression: &str, share: f64) -> Demand {
    Demand::Holds { expression: expression.to_owned(), share }
}

/// A deviation of ±1 that differs between seeds.
fn wobble(seed: u64) -> f64 {
    [-1.0, 0.2, 0.8][(seed % 3) as usize]
}

fn map() -> FigureResult {
    let grid = Grid {
        rates: &["100kbit", "1mbit", "10mbit", "100mbit", "500mbit"],
        rtts: &["10us", "100us", "1ms", "10ms", "100ms"],
        seeds: 3,
    };
    let scores = vec![
        score("fills", holds("utilisation >= 0.98", 0.9), Some("rate >= 1mbit or rtt <= 10ms")),
        score("fills-all", holds("utilisation >= 0.98", 1.0), None),
    ];
    let mut result = figure("a3", grid, scores, |run: &TestRun<'_>| {
        let slow = if run.rate < 1e6 && run.rtt > 0.01 { 0.17 } else { 0.0 };
        let curve = if run.curve == "udt" { 0.004 } else { 0.0 };
        vec![("utilisation".to_owned(), 0.985 - slow + curve - 0.01 * run.rtt + 0.001 * wobble(run.seed))]
    });
    result.scenario.plots = vec![plot(PlotKind::Heat, Some("rtt"), "utilisation", &["rate"])];
    result.scenario.plots[0].y_axis.range = Some([0.5, 1.0]);
    result.info.published = vec![
        published("utilisation", "98%", Bound::AtLeast, &[("rate", "100mbit"), ("rtt", "10ms")]),
        published("utilisation", "94.4%", Bound::AtLeast, &[]),
    ];
    result.info.readme = "# A3\n\n## Choices\n- The *grid* is that of B2, because the paper's is lost.\n- Queue of 1000 packets.\n\n## Departures\nBelow 1 Mbit/s and over 10 ms the utilisation falls to 81.5 %, where the paper's text speaks of an exception **without a number**.\n".to_owned();
    result
}

fn over_time() -> FigureResult {
    let grid = Grid { rates: &[], rtts: &[], seeds: 1 };
    let mut result =
        figure("a5", grid, vec![score("jain", holds("jain >= 0.98", 1.0), None)], |_| vec![("jain".to_owned(), 0.993)]);
    result.info.title = "Ten flows join one after another and share".to_owned();
    for record in &mut result.records {
        for flow in 1..=10_u32 {
            let points = (0..=240_u32).map(|step| {
                let time = f64::from(step) / 4.0;
                let started = (time / 5.0).floor().min(9.0) + 1.0;
                let ripple = f64::from((step * 7 + flow * 13) % 11) - 5.0;
                let rate = if time < f64::from(flow - 1) * 5.0 { 0.0 } else { 97e6 / started + ripple * 4e5 };
                (time, rate)
            });
            record.series.insert(format!("goodput.udt-{flow}"), points.collect());
        }
    }
    result.scenario.plots = vec![plot(PlotKind::Time, None, "goodput.*", &[])];
    result.info.published = vec![published("jain", "0.98", Bound::AtLeast, &[])];
    result
}

fn bars() -> FigureResult {
    let paper = [89.1, 5.17, 41.7, 50.8, 4.78, 89.2];
    let grid = Grid { rates: &[], rtts: &[], seeds: 3 };
    let scores = vec![score("sums", holds("goodput.flow-1 + goodput.flow-2 >= 92mbit", 1.0), None)];
    let mut result = figure("a10", grid, scores, |run: &TestRun<'_>| {
        let share = if run.curve == "udt" { 0.97 } else { 0.94 };
        let flows = (1..).zip(paper);
        flows.map(|(n, rate)| (format!("goodput.flow-{n}"), rate * 1e6 * share + 1e6 * wobble(run.seed))).collect()
    });
    result.info.title = "Six flows over a chain of bottlenecks".to_owned();
    result.scenario.plots = vec![plot(PlotKind::Bars, None, "goodput.*", &[])];
    result.info.published = (1..)
        .zip(paper)
        .map(|(n, rate)| published(&format!("goodput.flow-{n}"), &format!("{rate}mbit"), Bound::Is, &[]))
        .collect();
    result
}

fn lines() -> FigureResult {
    let grid = Grid { rates: &[], rtts: &["100us", "1ms", "10ms", "100ms"], seeds: 3 };
    let falls = Demand::Monotone {
        expression: "goodput.tcp".to_owned(),
        along: "rtt".to_owned(),
        direction: crate::scenario::Direction::Falling,
        tolerance: 0.0,
    };
    let mut result = figure("b1", grid, vec![score("tcp-falls", falls, None)], |run: &TestRun<'_>| {
        let rate = if run.curve == "udt" { 9.4e8 } else { 9.4e8 / (1.0 + 40.0 * run.rtt) };
        vec![("goodput.tcp".to_owned(), rate + 2e7 * wobble(run.seed))]
    });
    result.info.paper = "survey".to_owned();
    result.info.title = "UDT holds its rate over the round trip, TCP does not".to_owned();
    let mut lines = plot(PlotKind::Lines, Some("rtt"), "goodput.tcp", &[]);
    lines.x_axis.scale = Scale::Log;
    result.scenario.plots = vec![lines];
    result.info.published = vec![
        published("goodput.tcp", "200mbit", Bound::About, &[("rtt", "100ms")]),
        published("goodput.tcp", "900mbit", Bound::AtMost, &[("rtt", "1ms")]),
    ];
    result
}

fn lines_by_queue() -> FigureResult {
    let grid = Grid { rates: &["10mbit", "100mbit", "1gbit"], rtts: &["100us", "1ms", "10ms", "100ms"], seeds: 3 };
    let mut result = figure("b3", grid, Vec::new(), |run: &TestRun<'_>| {
        vec![(
            "utilisation".to_owned(),
            0.99 - 0.4 * run.rtt * run.rate / 1e8 / (1.0 + run.rtt * run.rate / 1e8) + 0.01 * wobble(run.seed),
        )]
    });
    result.info.paper = "survey".to_owned();
    let mut lines = plot(PlotKind::Lines, Some("rtt"), "utilisation", &["rate"]);
    lines.x_axis.scale = Scale::Log;
    result.scenario.plots = vec![lines];
    result.info.published = vec![published("utilisation", "85%", Bound::Is, &[("rate", "1gbit"), ("rtt", "10ms")])];
    result
}
