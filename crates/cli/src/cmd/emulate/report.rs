//! The report of an emulation, for people and for scripts.

use farhaul_emu::capture::BrokenCapture;
use farhaul_emu::{EmulationReport, Flaw};
use farhaul_netem::Counters;
use farhaul_transfer::limit::share;
use farhaul_transfer::report::micros;
use serde_json::{Value, json};

use super::near::Ended;
use crate::exit::Fault;
use crate::output::human::{count, percent, plural, reason, time};
use crate::output::json::ErrorRecord;

/// Counters of both links, the one from the near host first.
fn ways(report: &EmulationReport) -> [Counters; 2] {
    [0, 1].map(|index| report.links().get(index).copied().unwrap_or_default())
}

/// The report for people.
pub(super) fn lines(report: &EmulationReport) -> Vec<String> {
    let way = |name: &str, way: &Counters| {
        let policed = way.dropped_policer.packets;
        let policed = if policed > 0 { format!(", {} by the policer", count(policed)) } else { String::new() };
        format!(
            "{name}  {} packets in, {} out, {} lost on the link, {} dropped by the queue{policed} ({})",
            count(way.pushed.packets),
            count(way.delivered.packets),
            count(way.dropped_loss.packets),
            count(way.dropped_queue.packets),
            percent(share(way.dropped() as f64, way.pushed.packets as f64)),
        )
    };
    let [up, down] = ways(report);
    let mut lines = vec![
        way("to the far host  ", &up),
        way("to the near host ", &down),
        lateness(report),
        format!(
            "emulator           {} of a processor; hosts not polled for {} at most, 99 % of the gaps up to {}",
            percent(busy(report)),
            time(report.longest_gap),
            time(report.p99_gap)
        ),
        verdict(report),
    ];
    if report.uncaptured > 0 {
        lines.push(format!("{} missing in the captures: the disk was too slow", plural(report.uncaptured, "packet")));
    }
    lines
}

fn lateness(report: &EmulationReport) -> String {
    let late = &report.lateness;
    if late.samples == 0 {
        return "lateness           nothing was carried".into();
    }
    format!(
        "lateness           half of the packets up to {}, 99 % up to {}, the last {}",
        time(late.p50),
        time(late.p99),
        time(late.max)
    )
}

/// The problem of a capture.
pub(super) fn broken(capture: &BrokenCapture) -> String {
    let (file, error) = (capture.file.display(), reason(&capture.error));
    format!("packets are missing at the end of {file}: {error}")
}

/// The verdict in words: whether the emulator kept up with the path.
pub(crate) fn verdict(report: &EmulationReport) -> String {
    if report.valid {
        return "the emulator kept up: the measurements are the path's".into();
    }
    let flaws: Vec<String> = report.flaws.iter().map(Flaw::to_string).collect();
    format!("the emulator did not keep up, so do not trust the measurements: {}", flaws.join("; "))
}

/// Share of the time for which the emulator's thread ran.
fn busy(report: &EmulationReport) -> f64 {
    share(report.cpu.as_secs_f64(), report.elapsed.as_secs_f64())
}

/// The figures of the emulation, without those of the command.
pub(crate) fn figures(report: &EmulationReport) -> Value {
    let [up, down] = ways(report).map(|way| {
        json!({
            "packets_in": way.pushed.packets,
            "packets_out": way.delivered.packets,
            "lost": way.dropped_loss.packets,
            "refused_by_queue": way.dropped_queue.packets,
            "refused_early": way.dropped_early.packets,
            "refused_by_policer": way.dropped_policer.packets,
            "duplicated": way.duplicated.packets,
            "reordered": way.reordered.packets,
            "corrupted": way.corrupted.packets,
            "queue_high_water_packets": way.queue.high_water.packets,
        })
    });
    let late = &report.lateness;
    json!({
        "seconds": report.elapsed.as_secs_f64(),
        "up": up,
        "down": down,
        "lateness_us": { "p50": micros(late.p50), "p99": micros(late.p99), "max": micros(late.max) },
        "gaps_us": { "p99": micros(report.p99_gap), "max": micros(report.longest_gap) },
        "unroutable": report.unroutable,
        "uncaptured": report.uncaptured,
        "processor_share": busy(report),
        "valid": report.valid,
        "flaws": report.flaws.iter().map(Flaw::to_string).collect::<Vec<_>>(),
    })
}

/// The `end` record.
pub(super) fn record(report: &EmulationReport, ended: &Ended, fault: Option<&Fault>) -> Value {
    let mut record = figures(report);
    record["event"] = "end".into();
    record["exit_code"] = fault.map_or(ended.exit_code(), |fault| fault.code.exit()).into();
    record["signal"] = ended.signal().into();
    record["error"] = json!(fault.map(ErrorRecord::from));
    record
}
