//! Goals as data, and the judge.

use std::collections::BTreeMap;
use std::fmt;

/// The metrics of a run by key, as in [`Record`](crate::Record).
pub(super) type Metrics = BTreeMap<String, f64>;

/// The share of a full packet that carries the application's bytes: 1456 of 1500.
pub(super) const PAYLOAD: f64 = 1456.0 / 1500.0;

/// A quantity of a run that a goal is about.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Measure {
    /// The goodput of all flows together, in bit/s.
    Goodput,
    /// Retransmitted packets as a share of the packets sent, of the flows of these names together.
    Waste(Vec<String>),
    /// The mean queue of the bottleneck, in packets.
    Queue,
    /// Jain's index of the goodputs.
    Jain,
    /// The goodput of the flow of this name as a share of all.
    Share(String),
    /// The least ratio of a flow's goodput to its max-min share; each flow with its share in bit/s of goodput.
    MaxMin(Vec<(String, f64)>),
    /// The least utilisation of a link: the goodput of these flows, divided by the goodput that fits the link.
    Utilisation(Vec<(Vec<String>, f64)>),
}

impl Measure {
    /// The name in records and on the page.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Goodput => "goodput",
            Self::Waste(_) => "waste",
            Self::Queue => "queue",
            Self::Jain => "jain",
            Self::Share(_) => "share",
            Self::MaxMin(_) => "max-min",
            Self::Utilisation(_) => "utilisation",
        }
    }

    /// The value in a run; `None` if the run lacks a metric of it.
    fn value(&self, metrics: &Metrics) -> Option<f64> {
        let get = |key: &str| metrics.get(key).copied();
        let goodput = |flow: &String| get(&format!("goodput.{flow}"));
        match self {
            Self::Goodput => get("goodput.total"),
            Self::Queue => get("queue.mean"),
            Self::Jain => get("jain"),
            Self::Share(flow) => Some(goodput(flow)? / get("goodput.total").filter(|total| *total > 0.0)?),
            Self::Waste(flows) => {
                // A flow that never sent has neither.
                let of =
                    |flow: &String| Some((get(&format!("packets.{flow}"))?, get(&format!("retransmitted.{flow}"))?));
                let (sent, again) = flows
                    .iter()
                    .filter_map(of)
                    .fold((0.0, 0.0), |(sent, again), (packets, share)| (sent + packets, again + packets * share));
                (sent > 0.0).then(|| again / sent)
            }
            Self::MaxMin(flows) => least(flows.iter().map(|(flow, share)| Some(goodput(flow)? / share))),
            Self::Utilisation(links) => least(links.iter().map(|(flows, rate)| {
                let goodputs: Option<f64> = flows.iter().map(goodput).sum();
                Some(goodputs? / rate)
            })),
        }
    }
}

/// The least value; `None` if one is missing.
fn least(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    values.reduce(|left, right| Some(left?.min(right?))).flatten()
}

/// A goal: a measure with a least value, a most value, or both.
#[derive(Clone, Debug, PartialEq)]
pub struct Goal {
    /// The quantity.
    pub measure: Measure,
    /// The least value that is good enough, in the measure's unit.
    pub least: Option<f64>,
    /// The most that is good enough.
    pub most: Option<f64>,
    /// The formula of the limits, with this cell's factors.
    pub formula: String,
}

impl Goal {
    pub(super) fn at_least(measure: Measure, least: f64, formula: impl Into<String>) -> Self {
        Self { measure, least: Some(least), most: None, formula: formula.into() }
    }

    pub(super) fn at_most(measure: Measure, most: f64, formula: impl Into<String>) -> Self {
        Self { measure, least: None, most: Some(most), formula: formula.into() }
    }

    pub(super) fn between(measure: Measure, least: f64, most: f64, formula: impl Into<String>) -> Self {
        Self { measure, least: Some(least), most: Some(most), formula: formula.into() }
    }

    /// Judges a run by this goal.
    #[must_use]
    pub fn judge(&self, metrics: &Metrics) -> Mark {
        let Some(value) = self.measure.value(metrics) else {
            return Mark { name: self.measure.name(), value: None, met: false, score: 0.0, ratio: 0.0 };
        };
        let short = self.least.filter(|least| value < *least).map(|least| value / least);
        let over = self.most.filter(|most| value > *most).map(|most| match self.measure {
            // Of a share, what is left to the others counts.
            Measure::Share(_) => (1.0 - value) / (1.0 - most),
            _ => most / value,
        });
        let miss = short.or(over);
        let ratio = self.least.or(self.most).map_or(1.0, |limit| value / limit);
        let score = miss.unwrap_or(1.0).clamp(0.0, 1.0);
        Mark { name: self.measure.name(), value: Some(value), met: miss.is_none(), score, ratio }
    }
}

/// A goal's result in a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mark {
    /// The measure's name.
    pub name: &'static str,
    /// The value, in the measure's unit; `None` if the run has none, as when no flow ever connected.
    pub value: Option<f64>,
    /// Whether the goal is met.
    pub met: bool,
    /// How near it came, 0 to 1: 1 if met.
    pub score: f64,
    /// The value divided by the limit.
    pub ratio: f64,
}

impl fmt::Display for Mark {
    /// A few letters: `0.98g` is 0.98 of the goodput's goal. Letters: g goodput, w waste in percent, q queue, j Jain,
    /// s share, m max-min, u utilisation. `!` marks a miss.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match (self.value, self.name) {
            (None, name) => format!("no {name}"),
            // A miss must not look like 1.00.
            (Some(_), "goodput") if !self.met && self.ratio > 0.99 => format!("{:.4}g", self.ratio),
            (Some(_), "goodput") => format!("{:.2}g", self.ratio),
            (Some(value), "waste") => format!("{:.2}%w", 100.0 * value),
            (Some(_), "queue") => format!("{:.2}q", self.ratio),
            (Some(value), name) => format!("{value:.3}{}", &name[..1]),
        };
        write!(f, "{text}{}", if self.met { "" } else { "!" })
    }
}

/// The result of one controller in one cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The marks, in the order of the cell's goals.
    pub marks: Vec<Mark>,
    /// Whether all goals are met.
    pub passed: bool,
    /// The least score of all goals, 0 to 1.
    pub score: f64,
}

impl Verdict {
    /// Judges a run by all goals of its cell.
    #[must_use]
    pub fn of(goals: &[Goal], metrics: &Metrics) -> Self {
        let marks: Vec<Mark> = goals.iter().map(|goal| goal.judge(metrics)).collect();
        let passed = marks.iter().all(|mark| mark.met);
        let score = marks.iter().map(|mark| mark.score).fold(1.0, f64::min);
        Self { marks, passed, score }
    }

    /// The marks in a few letters each.
    #[must_use]
    pub fn words(&self) -> String {
        self.marks.iter().map(Mark::to_string).collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metrics(pairs: &[(&str, f64)]) -> Metrics {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), *value)).collect()
    }

    #[test]
    fn a_goal_is_met_at_its_limit_and_missed_by_a_ratio() {
        let goal = Goal::at_least(Measure::Goodput, 80e6, "");
        let of = |bits: f64| goal.judge(&metrics(&[("goodput.total", bits)]));
        assert_eq!((of(80e6).met, of(80e6).score), (true, 1.0));
        assert_eq!([of(79.99e6), of(80e6), of(60e6)].map(|mark| mark.to_string()), ["0.9999g!", "1.00g", "0.75g!"]);
        assert_eq!((of(60e6).met, of(60e6).score, of(60e6).ratio), (false, 0.75, 0.75));
        let queue = Goal::at_most(Measure::Queue, 30.0, "");
        let of = |packets: f64| queue.judge(&metrics(&[("queue.mean", packets)]));
        assert_eq!((of(30.0).met, of(120.0).met, of(120.0).score), (true, false, 0.25));
        let missing = goal.judge(&Metrics::new());
        assert_eq!((missing.met, missing.score, missing.to_string()), (false, 0.0, "no goodput!".to_owned()));
    }

    #[test]
    fn a_share_is_too_small_or_too_large() {
        let goal = Goal::between(Measure::Share("a".to_owned()), 0.33, 0.67, "");
        let of = |share: f64| goal.judge(&metrics(&[("goodput.a", share * 50.0), ("goodput.total", 50.0)]));
        assert!(of(0.5).met && of(0.34).met && of(0.66).met);
        assert!((of(0.11).score - 1.0 / 3.0).abs() < 1e-9);
        assert!((of(0.89).score - 1.0 / 3.0).abs() < 1e-9, "a third of what the other should have");
        assert_eq!(of(0.89).to_string(), "0.890s!");
    }

    #[test]
    fn waste_counts_packets_and_not_flows() {
        let measure = Measure::Waste(vec!["a-1".to_owned(), "a-2".to_owned(), "b".to_owned()]);
        let metrics = metrics(&[
            ("packets.a-1", 900.0),
            ("retransmitted.a-1", 0.01),
            ("packets.a-2", 100.0),
            ("retransmitted.a-2", 0.5),
            ("packets.b", 0.0),
        ]);
        assert!((measure.value(&metrics).unwrap() - 0.059).abs() < 1e-12);
        assert_eq!(measure.value(&Metrics::new()), None);
    }

    #[test]
    fn the_worst_flow_and_the_worst_link_count() {
        let metrics = metrics(&[("goodput.a", 20.0), ("goodput.b", 70.0), ("goodput.c", 30.0)]);
        let flow = |name: &str, share: f64| (name.to_owned(), share);
        let share = Measure::MaxMin(vec![flow("a", 25.0), flow("b", 75.0), flow("c", 25.0)]);
        assert!((share.value(&metrics).unwrap() - 0.8).abs() < 1e-12);
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let used = Measure::Utilisation(vec![(names(&["a", "b"]), 100.0), (names(&["a", "c"]), 60.0)]);
        assert!((used.value(&metrics).unwrap() - 50.0 / 60.0).abs() < 1e-12);
        assert_eq!(Measure::MaxMin(vec![flow("a", 25.0), flow("z", 1.0)]).value(&metrics), None);
    }

    #[test]
    fn a_cell_has_its_worst_score() {
        let goals = [Goal::at_least(Measure::Goodput, 100.0, ""), Goal::at_least(Measure::Jain, 0.9, "")];
        let verdict = Verdict::of(&goals, &metrics(&[("goodput.total", 98.0), ("jain", 0.45)]));
        assert_eq!((verdict.passed, verdict.score), (false, 0.5));
        assert_eq!(verdict.words(), "0.98g! 0.450j!");
    }
}
