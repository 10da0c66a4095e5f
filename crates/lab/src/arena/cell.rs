//! A cell: its parameters, its scenario and its goals.

use std::fmt::Write as _;

use super::draw::{self, Draw, digits, rounded};
use super::family::Family;
use super::goal::{Goal, Measure, Metrics, PAYLOAD, Verdict};
use super::{chain, crowd, hosts, single};

/// Bits of a full packet on the wire.
pub(super) const PACKET: f64 = 12_000.0;
/// Packets of a cell at most, which take a core one or two seconds to simulate.
pub(super) const BUDGET: f64 = 1e6;
/// The pseudo controller that knows its fair share from the first packet on.
pub const IDEAL: &str = "ideal";
/// The share of its fair share at which [`IDEAL`] sends. The rest is room for headers and repairs.
const IDEAL_SHARE: f64 = 0.97;
/// The initial window that the start of every cell allows, in packets.
const FIRST_WINDOW: f64 = 16.0;
/// The share of a cell's time after which flows that share must have converged.
pub(super) const CONVERGED: f64 = 0.4;

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

/// One `[[flow]]` of a cell.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Flow {
    pub(super) name: &'static str,
    /// The number of flows; one is called by the name alone.
    count: Option<u64>,
    /// The fair share of each, in bit/s on the wire; `None` for a competitor with a controller of its own.
    share: Option<f64>,
    /// Further keys with their values.
    keys: Vec<(&'static str, String)>,
}

impl Flow {
    /// A flow of the controller that is judged. Its fair share is an even one until [`Flow::worth`].
    pub(super) fn judged(name: &'static str) -> Self {
        Self { name, count: None, share: Some(0.0), keys: Vec::new() }
    }

    /// A competitor.
    pub(super) fn competitor(name: &'static str) -> Self {
        Self { name, count: None, share: None, keys: Vec::new() }
    }

    pub(super) fn times(mut self, count: u64) -> Self {
        self.count = Some(count);
        self
    }

    /// Sets the fair share of each, in bit/s on the wire.
    pub(super) fn worth(mut self, share: f64) -> Self {
        self.share = Some(share);
        self
    }

    /// Adds a key with a text.
    pub(super) fn with(mut self, key: &'static str, text: impl AsRef<str>) -> Self {
        self.keys.push((key, format!("\"{}\"", text.as_ref())));
        self
    }

    /// Adds a key with a value in TOML.
    pub(super) fn with_value(mut self, key: &'static str, value: String) -> Self {
        self.keys.push((key, value));
        self
    }

    /// The names in metrics.
    pub(super) fn names(&self) -> Vec<String> {
        match self.count {
            None => vec![self.name.to_owned()],
            Some(count) => (1..=count).map(|index| format!("{}-{index}", self.name)).collect(),
        }
    }

    fn is_judged(&self) -> bool {
        self.share.is_some()
    }
}

impl Cell {
    /// The cell of a family in a round of an arena's seed. `place` is its place in the table.
    pub(super) fn draw(seed: u64, round: usize, family: Family, place: usize) -> Self {
        let mut sketch = Sketch::new(Draw::of_cell(seed, round, family));
        match family {
            Family::Clean => single::clean(&mut sketch),
            Family::Loss => single::loss(&mut sketch),
            Family::Burst => single::burst(&mut sketch),
            Family::Jitter => single::jitter(&mut sketch),
            Family::Reorder => single::reorder(&mut sketch),
            Family::Shallow => single::shallow(&mut sketch),
            Family::Deep => single::deep(&mut sketch),
            Family::Slow => single::slow(&mut sketch),
            Family::Fall => single::fall(&mut sketch),
            Family::Fair => crowd::fair(&mut sketch),
            Family::Mix => crowd::mix(&mut sketch),
            Family::LateComer => crowd::late_comer(&mut sketch),
            Family::Tcp => crowd::tcp(&mut sketch),
            Family::Many => crowd::many(&mut sketch),
            Family::LateHosts => hosts::late_hosts(&mut sketch),
            Family::MultiBottleneck => chain::multi_bottleneck(&mut sketch),
        }
        sketch.finish(family, seed, place)
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

/// A cell that is being drawn. Rates are in bit/s on the wire, times in seconds.
pub(super) struct Sketch {
    pub(super) draw: Draw,
    pub(super) rate: f64,
    pub(super) rtt: f64,
    pub(super) time: f64,
    pub(super) warmup: f64,
    /// The share of packets that the path loses.
    pub(super) loss: f64,
    /// What a label says beside rate and RTT.
    pub(super) note: String,
    /// Keys of `[link]`, with their values in TOML.
    pub(super) link: Vec<(&'static str, String)>,
    /// The network, if it is not one link.
    pub(super) links: Option<String>,
    pub(super) flows: Vec<Flow>,
    pub(super) goals: Vec<Goal>,
}

impl Sketch {
    pub(super) fn new(draw: Draw) -> Self {
        let (rate, rtt, time, warmup, loss) = (0.0, 0.0, 0.0, 0.0, 0.0);
        let (note, link, links, flows, goals) = (String::new(), Vec::new(), None, Vec::new(), Vec::new());
        Self { draw, rate, rtt, time, warmup, loss, note, link, links, flows, goals }
    }

    /// Draws rate and RTT. The run lasts until its packets are used up, at least and at most for these seconds.
    pub(super) fn path(&mut self, rates: (f64, f64), rtts: (f64, f64), seconds: (f64, f64)) {
        self.rate = rounded(self.draw.log_between(rates.0, rates.1));
        self.rtt = rounded(self.draw.log_between(rtts.0, rtts.1));
        self.time = rounded((BUDGET * PACKET / self.rate).min(seconds.1).max(seconds.0));
    }

    /// The bandwidth-delay product in packets.
    pub(super) fn product(&self) -> f64 {
        self.rate * self.rtt / PACKET
    }

    /// The time that a start may take: a handshake, and fourfold growth per RTT from 16 packets to one BDP.
    pub(super) fn start(&self) -> f64 {
        let growth = libm::log2((self.product() / FIRST_WINDOW).max(1.0)) / 2.0;
        (2.0 + growth) * self.rtt + 0.02
    }

    pub(super) fn link(&mut self, key: &'static str, value: impl Into<String>) {
        self.link.push((key, value.into()));
    }

    /// A queue of so many BDP, at least 20 packets.
    pub(super) fn queue(&mut self, products: f64) {
        self.link("queue", format!("{{ limit = \"{}bdp\", at_least = 20 }}", digits(products)));
    }

    /// The goal of a flow from its start on: a share of I.
    pub(super) fn goodput(&mut self, factor: f64, formula: &str) {
        self.goodput_of(self.rate, factor, &format!("≥ {formula}·I, I = f·R·(1 − p)·(1 − t0/T)"));
    }

    /// The same with a mean rate of its own.
    pub(super) fn goodput_of(&mut self, rate: f64, factor: f64, formula: &str) {
        let ideal = PAYLOAD * rate * (1.0 - self.loss) * (1.0 - self.start() / self.time);
        self.goals.push(Goal::at_least(Measure::Goodput, factor * ideal, formula));
    }

    /// The goal of flows that have started: a share of what the link carries.
    pub(super) fn goodput_after(&mut self, factor: f64) {
        let ideal = PAYLOAD * self.rate * (1.0 - self.loss);
        self.goals.push(Goal::at_least(Measure::Goodput, factor * ideal, format!("≥ {factor}·f·R·(1 − p)")));
    }

    /// The goal of waste, with this share more.
    pub(super) fn waste(&mut self, more: f64, formula: &str) {
        let packets = self.rate * (self.time - self.warmup) / PACKET;
        let most = self.loss * 1.25 + 3.0 * (self.loss / packets).sqrt() + 0.005 + 16.0 / packets + more;
        let judged = self.flows.iter().filter(|flow| flow.is_judged()).flat_map(Flow::names).collect();
        let formula = format!("≤ 1.25·p + 3·√(p/N) + 0.005 + 16/N{formula}");
        self.goals.push(Goal::at_most(Measure::Waste(judged), most, formula));
    }

    /// One flow, with the goals of goodput and waste.
    pub(super) fn alone(&mut self, factor: f64, formula: &str, (more, words): (f64, &str)) {
        self.flows = vec![Flow::judged("a")];
        self.goodput(factor, formula);
        self.waste(more, words);
    }

    /// Rate and RTT in a label.
    pub(super) fn place(&self) -> String {
        format!("{} {}", draw::short(self.rate), draw::millis(self.rtt))
    }

    pub(super) fn finish(mut self, family: Family, seed: u64, place: usize) -> Cell {
        let label = format!("{family} {}", self.note);
        let mut network = format!("title = \"{label}\"\nduration = \"{}\"\n", draw::seconds(self.time));
        if self.warmup > 0.0 {
            let _ = writeln!(network, "warmup = \"{}\"", draw::seconds(self.warmup));
        }
        let _ = writeln!(network, "seeds = [{}]\nsample = \"500ms\"\nseries = false", self.draw.seed());
        match self.links {
            Some(links) => network.push_str(&links),
            None => {
                let (rate, rtt) = (draw::rate(self.rate), draw::millis(self.rtt));
                let _ = writeln!(network, "\n[link]\nrate = \"{rate}\"\nrtt = \"{rtt}\"");
                for (key, value) in &self.link {
                    let _ = writeln!(network, "{key} = {value}");
                }
            }
        }
        let all: f64 = self.flows.iter().map(|flow| flow.count.unwrap_or(1) as f64).sum();
        for flow in self.flows.iter_mut().filter(|flow| flow.share == Some(0.0)) {
            flow.share = Some(self.rate / all);
        }
        Cell { family, seed, place, label, goals: self.goals, network, flows: self.flows }
    }
}
