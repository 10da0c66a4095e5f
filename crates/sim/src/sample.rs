//! Time series of what a run records: every connection's counters and every link's, at regular instants.

use farhaul_netem::Counters;
use farhaul_proto::{ConnectionId, Stats};
use farhaul_units::{Duration, Instant};

use crate::network::NodeId;

/// One connection at one instant.
#[derive(Clone, Copy, Debug)]
pub struct FlowSample {
    /// At which host.
    pub host: NodeId,
    /// Which connection of it.
    pub id: ConnectionId,
    /// Counters and estimates.
    pub stats: Stats,
}

/// Everything at one instant.
#[derive(Clone, Debug)]
pub struct Sample {
    /// When.
    pub at: Instant,
    /// The connections that exist, by host and then in the order of their beginning.
    pub flows: Vec<FlowSample>,
    /// The links, in the order in which they were added.
    pub links: Vec<Counters>,
}

/// The samples of a run, one every period.
#[derive(Clone, Debug)]
pub struct Samples {
    period: Duration,
    rows: Vec<Sample>,
}

impl Samples {
    pub(crate) fn every(period: Duration) -> Self {
        Self { period, rows: Vec::new() }
    }

    /// Keeps a sample and says when the next one is due.
    pub(crate) fn add(&mut self, sample: Sample) -> Instant {
        let next = sample.at + self.period;
        self.rows.push(sample);
        next
    }

    /// The samples in order.
    pub fn rows(&self) -> &[Sample] {
        &self.rows
    }

    /// How one connection fared: `(when, counters)`, while it existed.
    pub fn flow(&self, host: NodeId, id: ConnectionId) -> impl Iterator<Item = (Instant, &Stats)> {
        self.rows.iter().filter_map(move |row| {
            let flow = row.flows.iter().find(|flow| (flow.host, flow.id) == (host, id))?;
            Some((row.at, &flow.stats))
        })
    }

    /// How many packets waited for a link: `(when, packets)`.
    pub fn queue(&self, link: usize) -> impl Iterator<Item = (Instant, u64)> {
        self.rows.iter().map(move |row| (row.at, row.links[link].queue.waiting.packets))
    }
}
