//! Metrics of each flow, and means over the flows of a `count`.

use std::collections::BTreeMap;

use farhaul_proto::Stats;
use farhaul_sim::measure::interval::mean;
use farhaul_sim::measure::quantile::quantile;
use farhaul_units::{Duration, Rate};

use super::Metrics;
use crate::metric::{Quantity, RunMetric};
use crate::run::series::losses;
use crate::scenario::flow::{FlowSpec, Protocol};
use crate::world::Ending;
use crate::world::marks::{FlowRow, Marks, SECOND, active};

/// A rate has a dip if it falls by this share from one second to the next. A single cut of UDT, by an eighth or a
/// ninth, counts.
const DIP: f64 = 0.1;
/// Bytes.
const GIGABYTE: f64 = 1e9;

/// Adds `METRIC.FLOW` for each flow, and the mean for flows with a `count`.
pub(super) fn add(marks: &Marks<'_>, endings: &[Ending], metrics: &mut Metrics) {
    let mut completions = Vec::new();
    // The values of each flow of a group, by quantity and group.
    let mut groups: BTreeMap<(Quantity, &str), Vec<f64>> = BTreeMap::new();
    for (index, flow) in marks.setup.flows.iter().enumerate() {
        let mut own = of_flow(marks, index);
        let ending = &endings[index];
        let finished = ending.finished.filter(|_| flow.bytes.is_some());
        let taken = finished.map(|at| at.saturating_sub(flow.start).as_secs_f64());
        let done: Vec<f64> = match flow.transfers {
            Some(_) => ending.transfers.iter().map(Duration::as_secs_f64).collect(),
            None => taken.into_iter().collect(),
        };
        if !done.is_empty() {
            own.insert(Quantity::Completion, mean(&done));
        }
        if let Some(taken) = taken.filter(|taken| *taken > 0.0) {
            // A finished transfer has the rate of its whole size, from its start to its end.
            own.insert(Quantity::Goodput, 8.0 * flow.bytes.unwrap_or(0) as f64 * done.len() as f64 / taken);
        }
        completions.extend(done);
        for (quantity, value) in own {
            metrics.insert(quantity.of_flow(&flow.name), value);
            if flow.group != flow.name {
                groups.entry((quantity, &flow.group)).or_default().push(value);
            }
        }
    }
    for ((quantity, group), values) in groups {
        metrics.insert(quantity.of_flow(group), mean(&values));
    }
    let transfers = transfers(&marks.setup.flows);
    if transfers > 0 {
        metrics.insert(RunMetric::Completed.key().into(), completions.len() as f64 / f64::from(transfers));
    }
    if !completions.is_empty() {
        metrics.insert(RunMetric::CompletionMean.key().into(), mean(&completions));
        metrics.insert(RunMetric::CompletionP99.key().into(), quantile(&completions, 0.99));
        metrics.insert(RunMetric::CompletionMax.key().into(), completions.iter().copied().fold(0.0, f64::max));
    }
    if completions.len() as f64 == f64::from(transfers)
        && let Some(all) = all_done(marks, endings)
    {
        metrics.insert(RunMetric::CompletionAll.key().into(), all);
    }
}

/// The number of transfers of all flows. Flows that share a list count it once.
fn transfers(flows: &[FlowSpec]) -> u32 {
    let sized = || flows.iter().filter(|flow| flow.bytes.is_some());
    let lists: BTreeMap<&str, u32> = sized().filter_map(|flow| Some((flow.group.as_str(), flow.transfers?))).collect();
    sized().filter(|flow| flow.transfers.is_none()).count() as u32 + lists.values().sum::<u32>()
}

/// Seconds from the first start of a transfer to the end of the last one.
fn all_done(marks: &Marks<'_>, endings: &[Ending]) -> Option<f64> {
    let sized = || marks.setup.flows.iter().enumerate().filter(|(_, flow)| flow.bytes.is_some());
    let begin = sized().map(|(_, flow)| flow.start).min()?;
    let end = sized().filter_map(|(index, _)| endings[index].finished).max()?;
    Some(end.saturating_sub(begin).as_secs_f64())
}

fn of_flow(marks: &Marks<'_>, index: usize) -> BTreeMap<Quantity, f64> {
    let setup = marks.setup;
    let flow = &setup.flows[index];
    let (begin, end) = active(setup, flow);
    let (first, last) = (&marks.at(begin).flows[index], &marks.at(end).flows[index]);
    let seconds = (end - begin).as_secs_f64();
    let mut own = BTreeMap::new();
    if seconds > 0.0 {
        rates(setup.bottleneck().nominal_rate(), seconds, first, last, &mut own);
    }
    let difference = |count: fn(&Stats) -> u64| count(&last.sender).saturating_sub(count(&first.sender)) as f64;
    let sent = difference(|stats| stats.totals.packets_sent);
    own.insert(Quantity::Packets, sent);
    if flow.protocol.is_cross_traffic() {
        own.extend(missing(sent, first, last).map(|share| (Quantity::Loss, share)));
        return own;
    }
    own.extend(processor(first, last));
    if let Protocol::Measured(_) = flow.protocol {
        // Of all its datagrams, so that those in flight at an edge of the window are not missing.
        let whole = &marks.at(setup.duration).flows[index];
        let share = missing(whole.sender.totals.packets_sent as f64, &FlowRow::default(), whole);
        own.extend(share.map(|share| (Quantity::Loss, share)));
    }
    own.insert(Quantity::Sent, sent * 8.0 * f64::from(flow.packet) / seconds);
    if sent > 0.0 {
        own.entry(Quantity::Loss).or_insert(difference(losses) / sent);
        own.insert(Quantity::Retransmitted, difference(|stats| stats.totals.packets_retransmitted) / sent);
    }
    let received = |count: fn(&Stats) -> u64| count(&last.receiver).saturating_sub(count(&first.receiver)) as f64;
    own.insert(Quantity::Acks, received(|stats| stats.totals.acks_sent));
    own.insert(Quantity::LightAcks, received(|stats| stats.totals.light_acks_sent));
    own.insert(Quantity::Naks, received(|stats| stats.totals.naks_sent));
    // The sender answers every full acknowledgement with one ACK2.
    own.insert(Quantity::Ack2s, difference(|stats| stats.totals.acks_received));
    own.insert(Quantity::Timeouts, difference(|stats| stats.totals.timeouts));
    let per_second = marks.rates(SECOND, (begin, end), |row| row.flows[index].receiver.totals.bytes_read);
    if per_second.len() > 1 {
        own.insert(Quantity::Dips, dips(per_second.into_iter().map(|(_, rate)| rate)) as f64);
    }
    // The mean over the samples that have a value.
    let sampled = |value: fn(&Stats) -> Option<f64>| {
        let rows = marks.every(setup.sample, begin, end);
        let values: Vec<f64> = rows.filter_map(|row| value(&row.flows[index].sender)).collect();
        (!values.is_empty()).then(|| mean(&values))
    };
    let round_trip = sampled(|stats| (!stats.rtt.is_zero()).then_some(stats.rtt.as_secs_f64()));
    own.extend(round_trip.map(|mean| (Quantity::Rtt, mean)));
    if matches!(flow.protocol, Protocol::Measured(_))
        && let Some((mean, deviation)) = delays_between(&first.sender, &last.sender)
    {
        own.insert(Quantity::Jitter, deviation / mean);
    }
    let model = sampled(|stats| Some(stats.model?.bits_per_second() as f64));
    own.extend(model.map(|mean| (Quantity::Model, mean)));
    // UDT's estimate of the path's capacity. TCP has none.
    let capacity = sampled(|stats| Some(stats.capacity.packets_per_second()).filter(|rate| *rate > 0.0));
    own.extend(capacity.map(|mean| (Quantity::Capacity, mean * 8.0 * f64::from(flow.packet))));
    own
}

/// The processor time of both sides for each gigabyte that the receiver read; empty without such times or bytes.
fn processor(first: &FlowRow, last: &FlowRow) -> BTreeMap<Quantity, f64> {
    let read = last.receiver.totals.bytes_read.saturating_sub(first.receiver.totals.bytes_read);
    let per_gigabyte = |side: usize| {
        let used = last.cpu[side]?.saturating_sub(first.cpu[side].unwrap_or_default());
        (read > 0).then(|| used.as_secs_f64() * GIGABYTE / read as f64)
    };
    let [sender, receiver] = [0, 1].map(per_gigabyte);
    let both = sender.zip(receiver).map(|(sender, receiver)| sender + receiver);
    let all = [(Quantity::CpuOfSender, sender), (Quantity::CpuOfReceiver, receiver), (Quantity::CpuPerGigabyte, both)];
    all.into_iter().filter_map(|(quantity, value)| Some((quantity, value?))).collect()
}

/// Mean and standard deviation in seconds of a measured stream's delays between two samples. The statistics of a sample
/// are those of all delays so far. `None` with fewer than two delays.
fn delays_between(first: &Stats, last: &Stats) -> Option<(f64, f64)> {
    // Count, sum, and sum of squares of the deviations from `origin`, which keeps their digits.
    let origin = last.rtt.as_secs_f64();
    let moments = |stats: &Stats| {
        let count = stats.totals.acks_received as f64;
        let (distance, deviation) = (stats.rtt.as_secs_f64() - origin, stats.rtt_var.as_secs_f64());
        (count, count * distance, (count - 1.0).max(0.0) * deviation * deviation + count * distance * distance)
    };
    let ((count_before, sum_before, squares_before), (count, sum, squares)) = (moments(first), moments(last));
    let (count, sum, squares) = (count - count_before, sum - sum_before, squares - squares_before);
    if count < 2.0 {
        return None;
    }
    let variance = (squares - sum * sum / count) / (count - 1.0);
    Some((origin + sum / count, variance.max(0.0).sqrt()))
}

/// The share of `sent` packets that did not arrive; `None` without packets.
fn missing(sent: f64, first: &FlowRow, last: &FlowRow) -> Option<f64> {
    let arrived = last.receiver.totals.packets_received.saturating_sub(first.receiver.totals.packets_received);
    (sent > 0.0).then(|| ((sent - arrived as f64) / sent).max(0.0))
}

/// The number of seconds whose rate is at least a tenth below that of the second before. Falls without a rise between
/// them count once.
fn dips(per_second: impl Iterator<Item = f64>) -> usize {
    let (mut dips, mut falling, mut before) = (0, false, 0.0);
    for rate in per_second {
        let falls = rate <= before * (1.0 - DIP);
        dips += usize::from(falls && !falling && before > 0.0);
        falling = falls || (falling && rate <= before);
        before = rate;
    }
    dips
}

fn rates(capacity: Option<Rate>, seconds: f64, first: &FlowRow, last: &FlowRow, own: &mut BTreeMap<Quantity, f64>) {
    let read = last.receiver.totals.bytes_read.saturating_sub(first.receiver.totals.bytes_read);
    own.insert(Quantity::Goodput, 8.0 * read as f64 / seconds);
    if let Some(capacity) = capacity {
        let bits = 8.0 * (last.tally.new.bytes - first.tally.new.bytes) as f64;
        own.insert(Quantity::Utilisation, bits / seconds / capacity.bits_per_second() as f64);
    }
}

#[cfg(test)]
mod tests {
    use farhaul_units::Duration;

    use super::{dips, processor};
    use crate::metric::Quantity;
    use crate::world::marks::FlowRow;

    #[test]
    fn processor_time_is_for_each_gigabyte_in_the_window_and_needs_times_and_bytes() {
        let row = |millis: Option<u64>, bytes: u64| {
            let mut row =
                FlowRow { cpu: [millis, Some(0)].map(|time| time.map(Duration::from_millis)), ..FlowRow::default() };
            row.receiver.totals.bytes_read = bytes;
            row
        };
        let of = |first: FlowRow, last: FlowRow| processor(&first, &last).get(&Quantity::CpuPerGigabyte).copied();
        assert_eq!(of(row(Some(500), 1_000_000_000), row(Some(1_500), 3_000_000_000)), Some(0.5));
        assert_eq!(of(row(None, 0), row(Some(250), 500_000_000)), Some(0.5));
        assert_eq!(of(row(None, 0), row(None, 500_000_000)), None);
        assert_eq!(of(row(Some(1), 7), row(Some(2), 7)), None);
    }

    #[test]
    fn a_dip_is_a_fall_however_many_seconds_it_takes() {
        let dips = |rates: &[f64]| dips(rates.iter().copied());
        assert_eq!(dips(&[10.0, 50.0, 97.0, 97.0]), 0);
        assert_eq!(dips(&[97.0, 84.0, 57.0, 69.0, 80.0]), 1, "two seconds of falling");
        assert_eq!(dips(&[97.0, 57.0, 57.0, 40.0, 80.0]), 1, "with a pause");
        assert_eq!(dips(&[97.0, 57.0, 60.0, 40.0, 80.0]), 2, "with a rise");
        assert_eq!(dips(&[97.0, 90.0, 83.0, 76.0]), 0, "slowly");
        assert_eq!(dips(&[0.0, 0.0, 10.0, 0.0, 0.0]), 1);
        assert_eq!(dips(&[]), 0);
    }
}
