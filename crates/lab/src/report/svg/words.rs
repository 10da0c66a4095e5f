//! Names for readers in drawings: metrics, flows, axes and their values. The scenario's `[labels]` come first.

use super::data::PlotSource;
use crate::aggregate::Point;
use crate::expression::Unit;
use crate::metric::{Quantity, RunMetric, numbered};
use crate::record::AxisValue;
use crate::scenario::{Axis, Curve, Scenario};

/// Names of axes, flows and statistics that are terms of the field. Quantities have their own words.
const TERMS: [(&str, &str); 6] = [
    ("rate", "Link rate"),
    ("time", "Time"),
    ("udt", "UDT"),
    ("tcp", "TCP"),
    ("cbr", "CBR"),
    ("p99", "99th percentile"),
];

impl Scenario {
    /// The label of an id, if the scenario has one.
    fn label(&self, id: &str) -> Option<String> {
        self.labels.get(id).cloned()
    }

    /// An axis in words: `Round-trip time`.
    pub(crate) fn axis_words(&self, axis: &Axis) -> String {
        self.label(&axis.name).unwrap_or_else(|| words(&axis.name))
    }

    /// A value of an axis for readers: `100 Mbit/s` for `100mbit`.
    pub(crate) fn value_words(&self, axis: &Axis, value: &AxisValue) -> String {
        self.label(&value.text).unwrap_or_else(|| printed(value, unit_of(axis, value)))
    }

    /// A point in words, such as `link rate 1 Gbit/s, DropTail`; empty for no axes. Words stand without their axis.
    pub(crate) fn point_words(&self, point: &Point) -> String {
        let value = |axis: &Axis| {
            let value = point.get(&axis.name)?;
            let words = self.value_words(axis, value);
            let speaks = value.number.is_none() || self.labels.contains_key(&value.text);
            Some(if speaks { words } else { format!("{} {words}", uncapital(&self.axis_words(axis))) })
        };
        self.axes.iter().filter_map(value).collect::<Vec<_>>().join(", ")
    }

    /// A curve's label.
    pub(crate) fn curve_label(&self, name: &str) -> &str {
        self.curves.iter().find(|curve| curve.name == name).map_or("", |curve| &curve.label)
    }

    /// A flow for readers: its label, the law of a flow that is named by its protocol alone, or its name. `curve` is
    /// `None` where a name stands for several curves.
    fn flow_words(&self, flow: &str, curve: Option<&Curve>) -> String {
        if let Some(label) = self.label(flow) {
            return label;
        }
        let (stem, number) = match flow.rsplit_once('-') {
            Some((stem, number)) if number.parse::<u32>().is_ok() => (stem, Some(number)),
            _ => (flow, None),
        };
        let law = curve.and_then(|curve| curve.laws.get(stem)).cloned();
        let words = self.label(stem).or(law).or_else(|| term(stem).map(str::to_owned));
        let words = words.unwrap_or_else(|| stem.to_owned());
        number.map_or(words.clone(), |number| format!("{words} {number}"))
    }

    /// Whether all flows are one, or of the same kind, so that its name says nothing.
    fn has_one_flow(&self) -> bool {
        let stem = |flow: &String| numbered(flow).0.trim_end_matches('-').to_owned();
        self.flows.windows(2).all(|pair| stem(&pair[0]) == stem(&pair[1]))
    }
}

impl PlotSource<'_> {
    fn scenario(&self) -> &Scenario {
        &self.figure.scenario
    }

    /// The flow of a series of a curve.
    pub(super) fn flow_words(&self, flow: &str, curve: &Curve) -> String {
        self.scenario().flow_words(flow, Some(curve))
    }

    /// A metric in words: `goodput.udt` is "Goodput, UDT", and "Goodput" where there is one flow.
    fn metric_words(&self, metric: &str) -> String {
        let flow = metric.split_once('.').filter(|_| is_name(metric) && RunMetric::with_key(metric).is_none());
        match flow.and_then(|(kind, flow)| Some((Quantity::named(kind)?, flow))) {
            Some((kind, _)) if self.scenario().has_one_flow() => kind.words().to_owned(),
            Some((kind, flow)) => format!("{}, {}", kind.words(), self.scenario().flow_words(flow, None)),
            None => words(metric),
        }
    }

    /// Whether several quantities share the vertical axis, such as an index and a share.
    fn mixed(&self) -> bool {
        let kind = |metric: &String| metric.split_once('.').map_or(metric.clone(), |(kind, _)| kind.to_owned());
        self.plot.y.windows(2).any(|pair| kind(&pair[0]) != kind(&pair[1]))
    }

    /// A metric in words for a legend. If all metrics have the same quantity, only the flow or the statistic.
    pub(super) fn short_words(&self, metric: &str, curve: Option<&Curve>) -> String {
        let several = self.plot.y.len() > 1 || self.plot.y.iter().any(|metric| metric.ends_with('*'));
        match metric.split_once('.') {
            Some((_, flow)) if several && !self.mixed() => self.scenario().flow_words(flow, curve),
            _ => self.metric_words(metric),
        }
    }

    /// The name of the vertical axis, without its unit.
    pub(super) fn y_words(&self) -> String {
        capital(&self.plot.y_axis.label.clone().unwrap_or_else(|| {
            if self.mixed() {
                let mut kinds: Vec<String> = Vec::new();
                for metric in &self.plot.y {
                    let kind = words(metric.split_once('.').map_or(metric, |(kind, _)| kind));
                    let kind = if kinds.is_empty() { kind } else { uncapital(&kind) };
                    if !kinds.contains(&kind) {
                        kinds.push(kind);
                    }
                }
                return kinds.join(", ");
            }
            let first = self.plot.y.first().map_or("", String::as_str);
            match first.split_once('.') {
                Some((base, _)) if self.plot.y.len() > 1 || first.ends_with('*') => words(base),
                _ => self.metric_words(first),
            }
        }))
    }

    /// The name of the horizontal axis, without its unit; `x` is the axis or metric, or `time`.
    pub(super) fn x_words(&self, x: &str) -> String {
        let axis = |axis| self.scenario().axis_words(axis);
        let label = self.plot.x_axis.label.clone();
        capital(&label.unwrap_or_else(|| self.axis(x).map_or_else(|| self.metric_words(x), axis)))
    }

    /// The names of the axes with one line for each value, such as `Link rate`.
    pub(super) fn by_words(&self) -> String {
        let axes = self.plot.by.iter().filter_map(|axis| self.axis(axis));
        let words: Vec<String> = axes.map(|axis| uncapital(&self.scenario().axis_words(axis))).collect();
        words.join(", ")
    }

    /// A value of an axis.
    pub(super) fn value_words(&self, axis: &Axis, value: &AxisValue) -> String {
        self.scenario().value_words(axis, value)
    }

    /// A point of the grid, such as `link rate 1 Gbit/s`; empty for no axes.
    pub(super) fn describe(&self, point: &Point) -> String {
        self.scenario().point_words(point)
    }
}

/// The unit of the numbers of an axis.
pub(super) fn axis_unit(axis: &Axis) -> Unit {
    axis.values.first().map_or(Unit::Number, |value| unit_of(axis, value))
}

/// The unit of a value: as it is written. A bare number has that of the key that the axis sets.
fn unit_of(axis: &Axis, value: &AxisValue) -> Unit {
    let key = axis.set.first().and_then(|path| path.rsplit('.').next());
    match (Unit::of_quantity(&value.text), key) {
        (Unit::Number, Some("loss" | "share")) => Unit::Share,
        (Unit::Number, Some("queue")) => Unit::Packets,
        (written, _) => written,
    }
}

/// A metric or axis in words: `queue.mean` is "Queue, mean".
pub(crate) fn words(name: &str) -> String {
    let known = |name: &str| Quantity::named(name).map(Quantity::words).or_else(|| term(name)).map(str::to_owned);
    match name.split_once('.') {
        Some((base, of)) if is_name(name) => {
            known(base).map_or_else(|| name.to_owned(), |base| format!("{base}, {}", term(of).unwrap_or(of)))
        }
        _ => known(name).unwrap_or_else(|| name.to_owned()),
    }
}

fn term(name: &str) -> Option<&'static str> {
    TERMS.iter().find(|(term, _)| *term == name).map(|(_, words)| *words)
}

fn is_name(text: &str) -> bool {
    text.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_.".contains(letter))
}

/// A value of an axis with its unit.
pub(super) fn printed(value: &AxisValue, unit: Unit) -> String {
    match (unit, value.number) {
        (Unit::Number, _) | (_, None) => value.text.clone(),
        (unit, Some(number)) => unit.print(number),
    }
}

/// The title of a panel of one curve, at the place in the grid that its other axes have. A scenario without curves has one
/// without a label.
pub(super) fn titled(curve: &Curve, place: &str) -> String {
    match (&*curve.label, place) {
        ("", place) => capital(place),
        (label, "") => label.to_owned(),
        (label, place) => format!("{label}: {place}"),
    }
}

/// Words at the beginning of a line.
pub(crate) fn capital(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// Words within a line. An abbreviation keeps its capitals.
pub(super) fn uncapital(words: &str) -> String {
    let mut letters = words.chars();
    let first = letters.next();
    match first {
        Some(first) if !letters.clone().next().is_some_and(char::is_uppercase) => {
            first.to_lowercase().chain(letters).collect()
        }
        _ => words.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Experiment, Overrides};

    const TEXT: &str = "title = 'x'\nduration = '4s'\n[link]\nrate = '1mbit'\nrtt = '10ms'\n[[flow]]\ncount = 2\n\
        [[flow]]\nname = 'tcp'\nprotocol = 'tcp'\n[[flow]]\nname = 'rtt-1us'\n\
        [[curve]]\nname = 'old'\nset = { \"flow.udt.protocol\" = 'udt-2004' }\n[[curve]]\nname = 'new'\n\
        [[axis]]\nname = 'loss'\nset = 'link.loss'\nvalues = [1e-4, '1%']\n\
        [[axis]]\nname = 'queue'\nset = 'link.queue'\nvalues = ['bdp', 1000]\n\
        [[axis]]\nname = 'rtt'\nset = 'link.rtt'\nvalues = ['10ms']\n\
        [labels]\nbdp = 'one BDP'\nrtt-1us = '1 µs'\n";

    fn scenario() -> Scenario {
        Experiment::read("x", "x.toml", TEXT, &Overrides::default()).unwrap().scenario
    }

    #[test]
    fn a_flow_that_is_named_by_its_protocol_is_called_by_its_law() {
        let scenario = scenario();
        let of = |flow: &str, curve: usize| scenario.flow_words(flow, scenario.curves.get(curve));
        assert_eq!([of("udt-2", 1), of("udt", 1)], ["union 2", "union"], "the default law");
        assert_eq!(of("udt-2", 0), "UDT 2", "the 2004 protocol has its own");
        assert_eq!([of("tcp", 1), of("rtt-1us", 1), of("udt-1", 9)], ["TCP", "1 µs", "UDT 1"]);
    }

    #[test]
    fn a_place_in_the_grid_is_told_in_words_with_units() {
        let scenario = scenario();
        let points = crate::aggregate::grid(&scenario);
        let words: Vec<String> = points.iter().map(|point| scenario.point_words(point)).collect();
        assert_eq!(words[0], "loss 0.01\u{a0}%, one BDP, round-trip time 10\u{a0}ms");
        assert_eq!(words[3], "loss 1\u{a0}%, queue 1000\u{a0}packets, round-trip time 10\u{a0}ms");
        assert_eq!(
            [capital("µs of"), uncapital("MTU (bytes)"), uncapital("Link rate")],
            ["Μs of", "MTU (bytes)", "link rate"]
        );
    }
}
