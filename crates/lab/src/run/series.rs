//! Series over time.

use std::collections::BTreeMap;

use farhaul_proto::Stats;
use farhaul_units::Duration;

use crate::metric::Quantity;
use crate::world::marks::{FlowRow, Marks, MarksRow};

/// Significant digits of stored values. A drawing shows three.
const DIGITS: i32 = 6;

type Series = Vec<(f64, f64)>;

/// `goodput.NAME` (bit/s in each period), `window.NAME` (packets), `period.NAME` and `rtt.NAME` (s), `losses.NAME`
/// (packets so far), and `queue` (packets).
pub(super) fn all(marks: &Marks<'_>) -> BTreeMap<String, Series> {
    let setup = marks.setup;
    let mut all = BTreeMap::new();
    let whole = (Duration::ZERO, setup.duration);
    let queue = marks.every(setup.sample, whole.0, whole.1);
    all.insert(
        Quantity::Queue.name().to_owned(),
        queue.map(|row| (row.at.as_secs_f64(), row.bottleneck.queue.waiting.packets as f64)).collect(),
    );
    for (index, flow) in setup.flows.iter().enumerate() {
        let read = |row: &MarksRow| row.flows[index].receiver.totals.bytes_read;
        let goodput = marks.rates(setup.sample, whole, read);
        let points = goodput.into_iter().map(|(at, bytes)| (at.as_secs_f64(), rounded(8.0 * bytes)));
        all.insert(Quantity::Goodput.of_flow(&flow.name), points.collect());
        if flow.protocol.is_cross_traffic() {
            continue;
        }
        let over_time = |value: fn(&Stats) -> f64| -> Series {
            let rows = marks.every(setup.sample, flow.start, setup.duration);
            rows.map(|row| (row.at.as_secs_f64(), rounded(value(&sender(&row.flows[index]))))).collect()
        };
        all.insert(Quantity::Window.of_flow(&flow.name), over_time(|stats| f64::from(stats.cwnd)));
        all.insert(Quantity::Rtt.of_flow(&flow.name), over_time(|stats| stats.rtt.as_secs_f64()));
        all.insert(
            Quantity::Period.of_flow(&flow.name),
            over_time(|stats| stats.send_period.time_for(1).as_secs_f64()),
        );
        all.insert(Quantity::Losses.of_flow(&flow.name), over_time(|stats| losses(stats) as f64));
    }
    all
}

fn sender(row: &FlowRow) -> Stats {
    row.sender
}

/// Packets reported lost. Where the receiver sends no loss reports, the retransmitted packets.
pub(super) fn losses(stats: &Stats) -> u64 {
    stats.totals.packets_lost_sending.max(stats.totals.packets_retransmitted)
}

/// A value with the stored number of digits.
fn rounded(value: f64) -> f64 {
    format!("{value:.*e}", DIGITS as usize - 1).parse().unwrap_or(value)
}
