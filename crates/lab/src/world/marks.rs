//! Samples of a run: their instants and their counters.

use std::collections::BTreeSet;

use farhaul_netem::Counters;
use farhaul_proto::Stats;
use farhaul_sim::FlowTally;
use farhaul_units::Duration;

use crate::scenario::flow::FlowSpec;
use crate::scenario::setup::Setup;

/// The length of the samples for stability and convergence: one second, as in the papers.
pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// All counters at one instant.
#[derive(Clone, Debug)]
pub(crate) struct MarksRow {
    pub(crate) at: Duration,
    /// In the order of the setup's flows.
    pub(crate) flows: Vec<FlowRow>,
    pub(crate) bottleneck: Counters,
}

/// One flow at one instant.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FlowRow {
    pub(crate) sender: Stats,
    pub(crate) receiver: Stats,
    /// The counters of the flow at the bottleneck's exit.
    pub(crate) tally: FlowTally,
    /// The processor time of the sender and of the receiver so far; `None` in the simulator.
    pub(crate) cpu: [Option<Duration>; 2],
}

/// The instants of samples, in order: every sample, every second, and each beginning and end.
pub(crate) fn times(setup: &Setup) -> BTreeSet<Duration> {
    let mut times = BTreeSet::from([setup.warmup, setup.duration]);
    for period in [setup.sample, SECOND] {
        let mut at = Duration::ZERO;
        while at < setup.duration {
            times.insert(at);
            at += period;
        }
    }
    for flow in &setup.flows {
        let (begin, end) = active(setup, flow);
        times.extend([begin, end]);
    }
    times
}

/// The time in which a flow is measured: after the warm-up, while it sends.
pub(crate) fn active(setup: &Setup, flow: &FlowSpec) -> (Duration, Duration) {
    let end = flow.stop.unwrap_or(setup.duration).min(setup.duration);
    let begin = flow.start.max(setup.warmup).min(end);
    (begin, end)
}

/// All rows of a run.
pub(crate) struct Marks<'a> {
    pub(crate) setup: &'a Setup,
    pub(crate) rows: &'a [MarksRow],
}

impl Marks<'_> {
    /// The row of a sampled instant.
    pub(crate) fn at(&self, time: Duration) -> &MarksRow {
        let place = self.rows.partition_point(|row| row.at < time);
        &self.rows[place.min(self.rows.len() - 1)]
    }

    /// Rows whose instants are multiples of `period`, from one instant to another.
    pub(crate) fn every(&self, period: Duration, from: Duration, to: Duration) -> impl Iterator<Item = &MarksRow> {
        let inside = self.rows.iter().filter(move |row| row.at >= from && row.at <= to);
        inside.filter(move |row| row.at.as_nanos() % period.as_nanos() == 0)
    }

    /// The rate of a counter per second, for each period between two instants, with the end of the period.
    pub(crate) fn rates(
        &self,
        period: Duration,
        (from, to): (Duration, Duration),
        count: impl Fn(&MarksRow) -> u64,
    ) -> Vec<(Duration, f64)> {
        let mut rates = Vec::new();
        let mut before: Option<(Duration, u64)> = None;
        for row in self.every(period, from, to) {
            let now = (row.at, count(row));
            if let Some((at, old)) = before {
                rates.push((row.at, now.1.saturating_sub(old) as f64 / (row.at - at).as_secs_f64()));
            }
            before = Some(now);
        }
        rates
    }
}
