//! What an emulated path carried in each direction, for people and for scripts: the reports of `relay` and `emulate`.

use farhaul_emu::{Flaw, LatenessReport};
use farhaul_netem::Counters;
use farhaul_transfer::internal::limit::share;
use farhaul_transfer::internal::report::micros;
use serde_json::{Value, json};

use crate::output::human::{count, percent, time};

/// One direction in a line. `packets_out` is the number of packets that reached its end.
pub(super) fn line(name: &str, counters: &Counters, packets_out: u64) -> String {
    let policed = counters.dropped_policer.packets;
    let policed = if policed > 0 { format!(", {} by the policer", count(policed)) } else { String::new() };
    format!(
        "{name}  {} packets in, {} out, {} lost on the link, {} dropped by the queue{policed} ({})",
        count(counters.pushed.packets),
        count(packets_out),
        count(counters.dropped_loss.packets),
        count(counters.dropped_queue.packets),
        percent(share(counters.dropped() as f64, counters.pushed.packets as f64)),
    )
}

/// The same in a record.
pub(super) fn record(counters: &Counters, packets_out: u64) -> Value {
    json!({
        "packets_in": counters.pushed.packets,
        "packets_out": packets_out,
        "lost": counters.dropped_loss.packets,
        "refused_by_queue": counters.dropped_queue.packets,
        "refused_early": counters.dropped_early.packets,
        "refused_by_policer": counters.dropped_policer.packets,
        "duplicated": counters.duplicated.packets,
        "reordered": counters.reordered.packets,
        "corrupted": counters.corrupted.packets,
        "queue_high_water_packets": counters.queue.high_water.packets,
    })
}

/// How late packets left the path, in words.
pub(super) fn lateness(late: &LatenessReport) -> String {
    format!("half of the packets up to {}, 99 % up to {}, the last {}", time(late.p50), time(late.p99), time(late.max))
}

/// The same in a record.
pub(super) fn lateness_record(late: &LatenessReport) -> Value {
    json!({ "p50": micros(late.p50), "p99": micros(late.p99), "max": micros(late.max) })
}

/// Whether `who` kept up with the path, in words.
pub(super) fn verdict(who: &str, flaws: &[Flaw]) -> String {
    if flaws.is_empty() {
        return format!("the {who} kept up: the measurements are the path's");
    }
    let flaws = words(flaws).join("; ");
    format!("the {who} did not keep up, so do not trust the measurements: {flaws}")
}

/// The reasons against a run, in words.
pub(super) fn words(flaws: &[Flaw]) -> Vec<String> {
    flaws.iter().map(Flaw::to_string).collect()
}
