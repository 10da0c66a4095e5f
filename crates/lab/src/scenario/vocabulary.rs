//! The metrics and series that a run can have, known before the run.
//!
//! This mirrors `run/metrics.rs` and `run/series.rs`. A record may still lack a metric of the vocabulary. Flows need
//! not converge, and transfers need not finish. The simulator's hosts have no processor time.

use std::collections::BTreeSet;

use farhaul_netem::Discipline;

use super::flow::{FlowSpec, Protocol};
use super::setup::Setup;
use crate::metric::{Quantity, RunMetric};

/// Metrics of every flow.
const OF_EVERY_FLOW: [Quantity; 3] = [Quantity::Goodput, Quantity::Loss, Quantity::Packets];
/// Metrics of flows that are no cross traffic.
const OF_CONNECTIONS: [Quantity; 12] = [
    Quantity::Ack2s,
    Quantity::Acks,
    Quantity::CpuOfReceiver,
    Quantity::CpuOfSender,
    Quantity::CpuPerGigabyte,
    Quantity::Dips,
    Quantity::LightAcks,
    Quantity::Naks,
    Quantity::Retransmitted,
    Quantity::Rtt,
    Quantity::Sent,
    Quantity::Timeouts,
];
/// Series of flows that are no cross traffic, beside the goodput.
const SERIES_OF_CONNECTIONS: [Quantity; 4] = [Quantity::Losses, Quantity::Period, Quantity::Rtt, Quantity::Window];
/// Metrics of every run.
const OF_EVERY_RUN: [RunMetric; 5] =
    [RunMetric::Drops, RunMetric::Errors, RunMetric::QueueMax, RunMetric::QueueMean, RunMetric::QueueP99];
/// Metrics of runs with flows that are no cross traffic.
const OF_FLOWS_TOGETHER: [RunMetric; 5] =
    [RunMetric::GoodputMax, RunMetric::GoodputMin, RunMetric::GoodputTotal, RunMetric::Jain, RunMetric::Stability];
/// Metrics of runs with transfers.
const OF_TRANSFERS: [RunMetric; 5] = [
    RunMetric::Completed,
    RunMetric::CompletionAll,
    RunMetric::CompletionMax,
    RunMetric::CompletionMean,
    RunMetric::CompletionP99,
];

/// Keys of metrics and series.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vocabulary {
    /// Keys of metrics.
    pub metrics: BTreeSet<String>,
    /// Keys of series over time; empty if the run keeps none.
    pub series: BTreeSet<String>,
}

impl Vocabulary {
    /// The keys of a setup's runs.
    pub(crate) fn of(setup: &Setup, keeps_series: bool) -> Self {
        let mut found = Self::default();
        let bottleneck = setup.bottleneck();
        let has_rate = bottleneck.nominal_rate().is_some();
        for flow in &setup.flows {
            found.add_flow(flow, has_rate, keeps_series);
        }
        let competing = setup.flows.iter().filter(|flow| !flow.protocol.is_cross_traffic()).count();
        found.add(true, &OF_EVERY_RUN);
        found.add(has_rate, &[RunMetric::Utilisation]);
        found.add(matches!(bottleneck.discipline, Discipline::Red(_)), &[RunMetric::RedAverage]);
        found.add(competing > 0, &OF_FLOWS_TOGETHER);
        found.add(competing > 1, &[RunMetric::Convergence]);
        found.add(setup.flows.iter().any(|flow| flow.bytes.is_some()), &OF_TRANSFERS);
        if keeps_series {
            found.series.insert(Quantity::Queue.name().to_owned());
        }
        found
    }

    /// Adds the keys of another vocabulary.
    pub fn merge(&mut self, other: Self) {
        self.metrics.extend(other.metrics);
        self.series.extend(other.series);
    }

    fn add(&mut self, applies: bool, metrics: &[RunMetric]) {
        self.metrics.extend(metrics.iter().filter(|_| applies).map(|metric| metric.key().to_owned()));
    }

    fn add_flow(&mut self, flow: &FlowSpec, has_rate: bool, keeps_series: bool) {
        let is_connection = !flow.protocol.is_cross_traffic();
        let mut quantities = OF_EVERY_FLOW.to_vec();
        quantities.extend(has_rate.then_some(Quantity::Utilisation));
        if is_connection {
            quantities.extend(OF_CONNECTIONS);
            quantities.extend(flow.bytes.is_some().then_some(Quantity::Completion));
            quantities.extend(matches!(flow.protocol, Protocol::Bulk(_)).then_some(Quantity::Capacity));
            quantities.extend(matches!(flow.protocol, Protocol::Measured(_)).then_some(Quantity::Jitter));
            quantities.extend(has_model(&flow.protocol).then_some(Quantity::Model));
        }
        for quantity in quantities {
            self.metrics.extend([&flow.name, &flow.group].map(|name| quantity.of_flow(name)));
        }
        if keeps_series {
            self.series.insert(Quantity::Goodput.of_flow(&flow.name));
            let own = SERIES_OF_CONNECTIONS.iter().filter(|_| is_connection);
            self.series.extend(own.map(|quantity| quantity.of_flow(&flow.name)));
        }
    }
}

/// Whether an analytic model predicts the goodput.
fn has_model(protocol: &Protocol) -> bool {
    matches!(protocol, Protocol::Bulk(bulk) if bulk.protocol.entry().name == "rbudp")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::run;
    use crate::scenario::{Experiment, Overrides};
    use crate::world::Venue;

    #[test]
    fn every_metric_and_series_of_a_run_is_known_before_it() {
        let link = "title = 'x'\nduration = '4s'\n[link]\nrate = '12mbit'\nrtt = '10ms'\n";
        let scenarios = [
            "[[flow]]\n[[flow]]\nprotocol = 'udt-2004'\n[[flow]]\nprotocol = 'tcp'\ncount = 2\n",
            "queue = { kind = 'red' }\n[[flow]]\nprotocol = 'cbr'\nrate = '1mbit'\n[[flow]]\nbytes = '100kB'\n",
            "[[flow]]\nprotocol = 'tcp'\nbytes = '10kB'\ntransfers = 5\nconcurrent = 2\n",
            "[[flow]]\nprotocol = 'rbudp:rate=10mbit'\nbytes = '1MB'\n",
            "[[flow]]\nprotocol = 'stable'\ntarget = '1mbit'\n[[flow]]\nprotocol = 'probe'\nsleep = '10ms'\n",
        ];
        let mut seen = Vocabulary::default();
        for flows in scenarios {
            let experiment = Experiment::read("x", "x.toml", &format!("{link}{flows}"), &Overrides::default()).unwrap();
            let job = experiment.jobs("").unwrap().remove(0);
            let known = Vocabulary::of(&job.setup, true);
            let record = run("x", &job, &Venue::Simulator, None, &|| false).unwrap();
            let found = Vocabulary {
                metrics: record.metrics.keys().cloned().collect(),
                series: record.series.keys().cloned().collect(),
            };
            assert_eq!(found.metrics.difference(&known.metrics).next(), None);
            assert_eq!(found.series, known.series);
            seen.merge(found);
        }
        let unseen = RunMetric::ALL.into_iter().filter(|metric| !seen.metrics.contains(metric.key()));
        assert_eq!(unseen.collect::<Vec<_>>(), [], "these scenarios have every metric of a run");
    }
}
