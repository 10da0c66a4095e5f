//! The drawings of a scenario without plots: goodput, RTT and queue over time, or goodput and utilisation over its
//! grid.

use super::{PlotAxis, PlotKind, PlotSpec, Scale};
use crate::metric::{Quantity, RunMetric};
use crate::scenario::Axis;
use crate::scenario::vocabulary::Vocabulary;

/// The most flows of one drawing. Readers cannot tell more lines apart.
const MAX_FLOWS: usize = 12;
/// The most flows of a drawing over an axis. For more flows, it shows the total.
const MAX_FLOWS_OVER_AXIS: usize = 6;
/// An axis is logarithmic if its greatest value is this many times its least.
const LOG_FROM: f64 = 50.0;

/// The default drawings of a scenario with these axes and flows. `vocabulary` is that of its first run.
pub(in crate::scenario) fn by_default(axes: &[Axis], flows: &[&str], vocabulary: &Vocabulary) -> Vec<PlotSpec> {
    let mut plots = Vec::new();
    if let Some(axis) = widest(axes) {
        plots.extend(over_axis(axis, flows, vocabulary));
    }
    if !vocabulary.series.is_empty() {
        plots.extend(over_time(flows, vocabulary));
    }
    if plots.is_empty() {
        plots.push(PlotSpec::usual(PlotKind::Bars, "goodput", vec![Quantity::Goodput.of_all_flows()]));
    }
    plots
}

fn over_time(flows: &[&str], vocabulary: &Vocabulary) -> Vec<PlotSpec> {
    let mut plots = Vec::new();
    for (quantity, name, title) in
        [(Quantity::Goodput, "goodput", "Goodput"), (Quantity::Rtt, "rtt", "Round-trip time")]
    {
        let series = flows.iter().map(|flow| quantity.of_flow(flow));
        let mut series: Vec<String> = series.filter(|key| vocabulary.series.contains(key)).collect();
        let all = series.len();
        if all == 0 {
            continue;
        }
        let title = if all > MAX_FLOWS {
            series.truncate(MAX_FLOWS);
            format!("{title} of the first {MAX_FLOWS} of {all} flows, over time")
        } else {
            series = vec![quantity.of_all_flows()];
            format!("{title} of each flow over time")
        };
        plots.push(PlotSpec { title: Some(title), ..PlotSpec::usual(PlotKind::Time, name, series) });
    }
    let queue = vec![Quantity::Queue.name().to_owned()];
    let title = Some("Queue at the bottleneck over time".to_owned());
    plots.push(PlotSpec { title, ..PlotSpec::usual(PlotKind::Time, "queue", queue) });
    plots
}

fn over_axis(axis: &Axis, flows: &[&str], vocabulary: &Vocabulary) -> Vec<PlotSpec> {
    let total = RunMetric::GoodputTotal.key();
    let goodput = match flows.len() > MAX_FLOWS_OVER_AXIS && vocabulary.metrics.contains(total) {
        true => total.to_owned(),
        false => Quantity::Goodput.of_all_flows(),
    };
    let utilisation = Some(RunMetric::Utilisation.key()).filter(|key| vocabulary.metrics.contains(*key));
    let drawn = [("goodput", "Goodput", Some(goodput)), ("utilisation", "Utilisation", utilisation.map(str::to_owned))];
    let plot = |(name, title, y): (&str, &str, Option<String>)| {
        Some(PlotSpec {
            title: Some(format!("{title} over {}", words(&axis.name))),
            x: Some(axis.name.clone()),
            x_axis: PlotAxis { scale: spacing(axis), ..PlotAxis::default() },
            ..PlotSpec::usual(PlotKind::Lines, name, vec![y?])
        })
    };
    drawn.into_iter().filter_map(plot).collect()
}

/// An axis in the words of its quantity: `round-trip time`.
fn words(axis: &str) -> String {
    Quantity::named(axis).map_or(axis.to_owned(), |quantity| quantity.words().to_lowercase())
}

/// The axis of the lines: the one with the most numbers, or with the most values if none has numbers.
fn widest(axes: &[Axis]) -> Option<&Axis> {
    let numbers = |axis: &Axis| axis.values.iter().all(|value| value.number.is_some());
    // Of equal axes the last one, which changes fastest.
    axes.iter().max_by_key(|axis| (numbers(axis), axis.values.len()))
}

fn spacing(axis: &Axis) -> Scale {
    let numbers: Option<Vec<f64>> = axis.values.iter().map(|value| value.number).collect();
    let numbers = numbers.unwrap_or_default();
    let least = numbers.iter().copied().fold(f64::INFINITY, f64::min);
    let greatest = numbers.iter().copied().fold(0.0, f64::max);
    if least > 0.0 && greatest / least >= LOG_FROM { Scale::Log } else { Scale::Linear }
}

impl PlotSpec {
    /// A drawing of all curves with default settings.
    fn usual(kind: PlotKind, name: &str, y: Vec<String>) -> Self {
        Self { name: name.to_owned(), kind, y, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Experiment, Overrides};

    const LINK: &str = "title = 'x'\nduration = '4s'\n[link]\nrate = '12mbit'\nrtt = '10ms'\n";

    /// The kinds and first metrics of the default drawings.
    fn drawn(text: &str) -> Vec<(PlotKind, String)> {
        let experiment = Experiment::read("x", "x.toml", text, &Overrides::default()).unwrap();
        assert!(experiment.scenario.draws_by_default);
        let plots = experiment.scenario.plots.iter();
        plots.map(|plot| (plot.kind, plot.y[0].clone())).collect()
    }

    #[test]
    fn a_scenario_without_plots_draws_its_flows_over_time() {
        let time = |y: &str| (PlotKind::Time, y.to_owned());
        let usual = [time("goodput.*"), time("rtt.*"), time("queue")];
        assert_eq!(drawn(&format!("{LINK}[[flow]]\n[[flow]]\nprotocol = 'tcp'\n")), usual);
        let cross = format!("{LINK}[[flow]]\nprotocol = 'cbr'\nrate = '1mbit'\n");
        assert_eq!(drawn(&cross), [time("goodput.*"), time("queue")]);
        assert_eq!(drawn(&format!("{LINK}[[flow]]\ncount = 100\n"))[0], time("goodput.udt-1"));
        let bars = drawn(&format!("series = false\n{LINK}[[flow]]\n"));
        assert_eq!(bars, [(PlotKind::Bars, "goodput.*".to_owned())]);
    }

    #[test]
    fn a_grid_without_plots_is_drawn_along_its_axis_of_most_numbers() {
        let axis =
            |name: &str, values: &str| format!("[[axis]]\nname = '{name}'\nset = 'link.{name}'\nvalues = {values}\n");
        let axes = axis("rate", "['1mbit', '100mbit']") + &axis("rtt", "['1ms', '2ms', '3ms']");
        let text = format!("{LINK}[[flow]]\n{axes}");
        let experiment = Experiment::read("x", "x.toml", &text, &Overrides::default()).unwrap();
        let plots = &experiment.scenario.plots;
        let drawn: Vec<_> = plots.iter().map(|plot| (plot.kind, plot.x.as_deref(), plot.y[0].as_str())).collect();
        let lines = |y| (PlotKind::Lines, Some("rtt"), y);
        assert_eq!(drawn, [lines("goodput.*"), lines("utilisation")]);
        assert_eq!(plots[0].x_axis.scale, Scale::Linear);
        let many = format!("{LINK}[[flow]]\ncount = 10\n{}", axis("rate", "['1mbit', '100mbit']"));
        let experiment = Experiment::read("x", "x.toml", &many, &Overrides::default()).unwrap();
        assert_eq!(
            (&*experiment.scenario.plots[0].y[0], experiment.scenario.plots[0].x_axis.scale),
            ("goodput.total", Scale::Log)
        );
    }
}
