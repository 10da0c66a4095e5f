//! A cell that is being drawn: its path, its flows, and the general formulas of goals.

use super::draw::{self, Draw, digits, rounded};
use super::goal::{Goal, Measure, PAYLOAD};

/// Bits of a full packet on the wire.
pub(super) const PACKET: f64 = 12_000.0;
/// Packets of a cell at most, which take a core one or two seconds to simulate.
pub(super) const BUDGET: f64 = 1e6;
/// The initial window that the start of every cell allows, in packets.
const FIRST_WINDOW: f64 = 16.0;
/// The share of a cell's time after which flows that share must have converged.
pub(super) const CONVERGED: f64 = 0.4;

/// One `[[flow]]` of a cell.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Flow {
    pub(super) name: &'static str,
    /// The number of flows; one is called by the name alone.
    pub(super) count: Option<u64>,
    /// The fair share of each, in bit/s on the wire; `None` for a competitor with a controller of its own.
    pub(super) share: Option<f64>,
    /// Further keys with their values.
    pub(super) keys: Vec<(&'static str, String)>,
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

    /// A competitor under a law that others use.
    pub(super) fn of_law(name: &'static str, law: &str) -> Self {
        let flow = Self::competitor(name);
        match law {
            "bbr" => flow.with("protocol", "udt").with("controller", law),
            // Reno with selective acknowledgements, as every kernel has it.
            "reno" => flow.with("protocol", "tcp").with("controller", "sack"),
            law => flow.with("protocol", "tcp").with("controller", law),
        }
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

/// A cell that is being drawn. Rates are in bit/s on the wire, times in seconds.
pub(super) struct Sketch {
    pub(super) draw: Draw,
    pub(super) rate: f64,
    /// The rate of the line, where a policer on it lets `rate` pass.
    pub(super) line: Option<f64>,
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
        Self { draw, rate, line: None, rtt, time, warmup, loss, note, link, links, flows, goals }
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

    /// A queue of a drawn number of BDP.
    pub(super) fn queue_between(&mut self, least: f64, most: f64) {
        let products = self.draw.between(least, most);
        self.queue(products);
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
}
