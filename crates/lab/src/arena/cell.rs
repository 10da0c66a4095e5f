//! A cell: its parameters, its scenario and its goals.

use std::fmt::Write as _;

use super::draw::{self, Draw};
use super::family::Family;
use super::goal::{Goal, Metrics, Verdict};
use super::sketch::{Flow, Sketch};

/// The pseudo controller that knows its fair share from the first packet on.
pub const IDEAL: &str = "ideal";
/// The share of its fair share at which [`IDEAL`] sends. The rest is room for headers and repairs.
const IDEAL_SHARE: f64 = 0.97;

/// One random path with its flows and goals.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// The family.
    pub family: Family,
    /// The seed of the arena.
    pub seed: u64,
    /// The place in the table of that seed, from 0.
    pub place: usize,
    /// Family and parameters in a few words: `loss 93.2M 12.5ms 0.00121`.
    pub label: String,
    /// The goals.
    pub goals: Vec<Goal>,
    /// The scenario up to the flows.
    network: String,
    flows: Vec<Flow>,
}

impl Cell {
    /// The cell of a family in a round of an arena's seed. `place` is its place in the table.
    pub(super) fn draw(seed: u64, round: usize, family: Family, place: usize) -> Self {
        let mut sketch = Sketch::new(Draw::of_cell(seed, round, family as u64));
        family.draw(&mut sketch);
        Self::of(sketch, family, seed, place)
    }

    /// The cell of a finished sketch. Flows without a fair share of their own get an even one.
    pub(super) fn of(mut sketch: Sketch, family: Family, seed: u64, place: usize) -> Self {
        let label = format!("{family} {}", sketch.note);
        let mut network = format!("title = \"{label}\"\nduration = \"{}\"\n", draw::seconds(sketch.time));
        if sketch.warmup > 0.0 {
            let _ = writeln!(network, "warmup = \"{}\"", draw::seconds(sketch.warmup));
        }
        let _ = writeln!(network, "seeds = [{}]\nsample = \"500ms\"\nseries = false", sketch.draw.seed());
        match sketch.links {
            Some(links) => network.push_str(&links),
            None => {
                let (rate, rtt) = (draw::rate(sketch.line.unwrap_or(sketch.rate)), draw::millis(sketch.rtt));
                let _ = writeln!(network, "\n[link]\nrate = \"{rate}\"\nrtt = \"{rtt}\"");
                for (key, value) in &sketch.link {
                    let _ = writeln!(network, "{key} = {value}");
                }
            }
        }
        let all: f64 = sketch.flows.iter().map(|flow| flow.count.unwrap_or(1) as f64).sum();
        for flow in sketch.flows.iter_mut().filter(|flow| flow.share == Some(0.0)) {
            flow.share = Some(sketch.rate / all);
        }
        Self { family, seed, place, label, goals: sketch.goals, network, flows: sketch.flows }
    }

    /// The name of the cell among all: `seed 3, cell 17`.
    #[must_use]
    pub fn id(&self) -> String {
        format!("seed {}, cell {}", self.seed, self.place)
    }

    /// The scenario with this controller, as TOML, with the goals as comments.
    #[must_use]
    pub fn scenario(&self, controller: &str) -> String {
        let mut text = format!("# {}: {}\n", self.id(), self.label);
        for goal in &self.goals {
            let _ = writeln!(text, "# goal: {} {}", goal.measure.name(), goal.formula);
        }
        text.push_str(&self.network);
        for flow in &self.flows {
            let _ = writeln!(text, "\n[[flow]]\nname = \"{}\"", flow.name);
            if let Some(count) = flow.count {
                let _ = writeln!(text, "count = {count}");
            }
            if let Some(share) = flow.share {
                let fixed = || format!("fixed:rate={}bit", (IDEAL_SHARE * share).round());
                let controller = if controller == IDEAL { fixed() } else { controller.to_owned() };
                let _ = writeln!(text, "controller = \"{controller}\"");
            }
            for (key, value) in &flow.keys {
                let _ = writeln!(text, "{key} = {value}");
            }
        }
        text
    }

    /// Judges the metrics of a run.
    #[must_use]
    pub fn judge(&self, metrics: &Metrics) -> Verdict {
        Verdict::of(&self.goals, metrics)
    }
}
