//! Time series of a run: the counters of every connection and link at regular instants.

use farhaul_netem::Counters;
use farhaul_proto::{ConnectionId, Stats};
use farhaul_units::{Duration, Instant};

use crate::network::NodeId;

/// One connection at one instant.
#[derive(Clone, Copy, Debug)]
pub struct FlowSample {
    /// Index of the agent.
    pub host: NodeId,
    /// The connection at that agent.
    pub id: ConnectionId,
    /// Counters and estimates.
    pub stats: Stats,
}

/// All counters at one instant.
#[derive(Clone, Debug)]
pub struct Sample {
    /// When.
    pub at: Instant,
    /// The existing connections, ordered by agent and then by age.
    pub flows: Vec<FlowSample>,
    /// The links, in the order of creation.
    pub links: Vec<Counters>,
}

/// The samples of a run, one per period.
#[derive(Clone, Debug)]
pub struct Samples {
    period: Duration,
    rows: Vec<Sample>,
}

impl Samples {
    pub(crate) fn every(period: Duration) -> Self {
        Self { period, rows: Vec::new() }
    }

    /// Adds a sample and returns when the next one is due.
    pub(crate) fn add(&mut self, sample: Sample) -> Instant {
        let next = sample.at + self.period;
        self.rows.push(sample);
        next
    }

    /// The samples in order.
    pub fn rows(&self) -> &[Sample] {
        &self.rows
    }

    /// Counters of one connection while it existed: `(when, counters)`.
    pub fn flow(&self, host: NodeId, id: ConnectionId) -> impl Iterator<Item = (Instant, &Stats)> {
        self.rows.iter().filter_map(move |row| {
            let flow = row.flows.iter().find(|flow| (flow.host, flow.id) == (host, id))?;
            Some((row.at, &flow.stats))
        })
    }

    /// Packets waiting for a link: `(when, packets)`.
    pub fn queue(&self, link: usize) -> impl Iterator<Item = (Instant, u64)> {
        self.rows.iter().map(move |row| (row.at, row.links[link].queue.waiting.packets))
    }
}
