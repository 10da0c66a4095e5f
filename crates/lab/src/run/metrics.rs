//! The metrics of a run.

mod flows;

use std::collections::BTreeMap;

use farhaul_netem::{Counters, Discipline};
use farhaul_sim::measure::convergence::first_fair;
use farhaul_sim::measure::fairness::jain;
use farhaul_sim::measure::interval::mean;
use farhaul_sim::measure::quantile::quantile;
use farhaul_sim::measure::stability::stability;
use farhaul_units::Duration;

use crate::metric::{Quantity, RunMetric};
use crate::world::Ending;
use crate::world::marks::{Marks, MarksRow, SECOND, active};

/// Flows have converged when Jain's index of one second stays at or above this. This is our reading of figure 5 of the
/// 2004 paper.
const FAIR: f64 = 0.95;
/// The least number of seconds for which it stays there.
const FOR_SECONDS: usize = 2;

/// Metrics by name.
pub(super) type Metrics = BTreeMap<String, f64>;

/// All metrics of a run.
pub(super) fn all(marks: &Marks<'_>, endings: &[Ending]) -> Metrics {
    let mut metrics = Metrics::new();
    flows::add(marks, endings, &mut metrics);
    fairness(marks, &mut metrics);
    if let Some(total) = total(marks, endings) {
        metrics.insert(RunMetric::GoodputTotal.key().into(), total);
    }
    bottleneck(marks, &mut metrics);
    metrics.retain(|_, value| value.is_finite());
    metrics
}

/// Flows that compete. Cross traffic does not adapt.
fn competing<'a>(marks: &Marks<'a>) -> impl Iterator<Item = (usize, &'a str)> {
    let flows = marks.setup.flows.iter().enumerate();
    flows.filter(|(_, flow)| !flow.protocol.is_cross_traffic()).map(|(index, flow)| (index, flow.name.as_str()))
}

fn fairness(marks: &Marks<'_>, metrics: &mut Metrics) {
    let goodputs: Vec<f64> =
        competing(marks).filter_map(|(_, name)| metrics.get(&Quantity::Goodput.of_flow(name)).copied()).collect();
    if goodputs.is_empty() {
        return;
    }
    metrics.insert(RunMetric::GoodputMin.key().into(), goodputs.iter().copied().fold(f64::INFINITY, f64::min));
    metrics.insert(RunMetric::GoodputMax.key().into(), goodputs.iter().copied().fold(0.0, f64::max));
    metrics.insert(RunMetric::Jain.key().into(), jain(&goodputs));
    let setup = marks.setup;
    let per_second = |index: usize, span: (Duration, Duration)| -> Vec<f64> {
        let rates = marks.rates(SECOND, span, |row| row.flows[index].receiver.totals.bytes_read);
        rates.into_iter().map(|(_, rate)| rate).collect()
    };
    let samples: Vec<Vec<f64>> =
        competing(marks).map(|(index, _)| per_second(index, active(setup, &setup.flows[index]))).collect();
    if samples.iter().all(|flow| flow.len() >= 2) {
        metrics.insert(RunMetric::Stability.key().into(), stability(&slices(&samples)));
    }
    // The last start, and the first full second after it.
    let begin = competing(marks).map(|(index, _)| setup.flows[index].start).max().unwrap_or_default();
    let first = SECOND * u32::try_from(begin.as_nanos().div_ceil(SECOND.as_nanos())).unwrap_or(u32::MAX);
    let together: Vec<Vec<f64>> =
        competing(marks).map(|(index, _)| per_second(index, (first, setup.duration))).collect();
    if together.len() > 1
        && let Some(place) = first_fair(&slices(&together), 1, FAIR, FOR_SECONDS)
    {
        metrics.insert(RunMetric::Convergence.key().into(), (first - begin).as_secs_f64() + place as f64);
    }
}

/// The goodput of all competing flows together, in one window, so that it never exceeds the link.
///
/// The window begins with the first flow, or at the end of the warm-up if that is later. It ends with the last flow. A
/// finished transfer ends when its last byte is acknowledged. `None` if no flow sends in the window.
fn total(marks: &Marks<'_>, endings: &[Ending]) -> Option<f64> {
    let setup = marks.setup;
    let lifetimes = competing(marks).map(|(index, _)| {
        let (begin, end) = active(setup, &setup.flows[index]);
        (begin, endings[index].finished.map_or(end, |finished| finished.min(end)))
    });
    let lifetimes: Vec<(Duration, Duration)> = lifetimes.filter(|(begin, end)| begin < end).collect();
    let begin = lifetimes.iter().map(|(begin, _)| *begin).min()?;
    let end = lifetimes.iter().map(|(_, end)| *end).max()?;
    let read = |time: Duration| -> u64 {
        let flows = &marks.at(time).flows;
        competing(marks).map(|(index, _)| flows[index].receiver.totals.bytes_read).sum()
    };
    Some(8.0 * read(end).saturating_sub(read(begin)) as f64 / (end - begin).as_secs_f64())
}

fn slices(rows: &[Vec<f64>]) -> Vec<&[f64]> {
    rows.iter().map(Vec::as_slice).collect()
}

fn bottleneck(marks: &Marks<'_>, metrics: &mut Metrics) {
    let setup = marks.setup;
    let (first, last) = (marks.at(setup.warmup), marks.at(setup.duration));
    let window = (setup.duration - setup.warmup).as_secs_f64();
    if let Some(rate) = setup.bottleneck().nominal_rate() {
        let sum = |row: &MarksRow| -> u64 { row.flows.iter().map(|flow| flow.tally.new.bytes).sum() };
        let bits = 8.0 * (sum(last) - sum(first)) as f64;
        metrics.insert(RunMetric::Utilisation.key().into(), bits / window / rate.bits_per_second() as f64);
    }
    let waiting: Vec<f64> = marks
        .every(setup.sample, setup.warmup, setup.duration)
        .map(|row| row.bottleneck.queue.waiting.packets as f64)
        .collect();
    let span = setup.duration - setup.warmup;
    metrics.insert(
        RunMetric::QueueMean.key().into(),
        last.bottleneck.queue.mean_packets_since(&first.bottleneck.queue, span),
    );
    metrics.insert(RunMetric::QueueP99.key().into(), quantile(&waiting, 0.99));
    metrics.insert(RunMetric::QueueMax.key().into(), last.bottleneck.queue.high_water.packets as f64);
    let dropped = |row: &MarksRow| {
        // Early drops are among those of the queue.
        let Counters { dropped_queue, dropped_policer, .. } = row.bottleneck;
        dropped_queue.packets + dropped_policer.packets
    };
    metrics.insert(RunMetric::Drops.key().into(), (dropped(last) - dropped(first)) as f64);
    if let Discipline::Red(_) = setup.bottleneck().discipline {
        let rows = marks.every(setup.sample, setup.warmup, setup.duration);
        let averages: Vec<f64> = rows.map(|row| row.bottleneck.queue.average).collect();
        metrics.insert(RunMetric::RedAverage.key().into(), mean(&averages));
    }
    let lost = |row: &MarksRow| row.bottleneck.dropped_loss.packets;
    metrics.insert(RunMetric::Errors.key().into(), (lost(last) - lost(first)) as f64);
}
