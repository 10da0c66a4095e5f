//! The report of an emulation, for people and for scripts.

use farhaul_emu::EmulationReport;
use farhaul_emu::capture::BrokenCapture;
use farhaul_netem::Counters;
use farhaul_transfer::internal::limit::share;
use farhaul_transfer::internal::report::micros;
use serde_json::{Value, json};

use super::near::Ended;
use crate::cmd::link_report;
use crate::exit::Fault;
use crate::output::human::{percent, plural, reason, time};
use crate::output::json::end_record;

/// Counters of both links, the one from the near host first.
fn directions(report: &EmulationReport) -> [Counters; 2] {
    [0, 1].map(|index| report.links.get(index).copied().unwrap_or_default())
}

/// The report for people.
pub(super) fn lines(report: &EmulationReport) -> Vec<String> {
    let line = |name: &str, of: &Counters| link_report::line(name, of, of.delivered.packets);
    let [up, down] = directions(report);
    let mut lines = vec![
        line("to the far host  ", &up),
        line("to the near host ", &down),
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
    format!("lateness           {}", link_report::lateness(late))
}

/// The problem of a capture.
pub(super) fn broken(capture: &BrokenCapture) -> String {
    let (file, error) = (capture.file.display(), reason(&capture.error));
    format!("packets are missing at the end of {file}: {error}")
}

/// The verdict in words: whether the emulator kept up with the path.
pub(crate) fn verdict(report: &EmulationReport) -> String {
    link_report::verdict("emulator", &report.flaws)
}

/// Share of the time for which the emulator's thread ran.
fn busy(report: &EmulationReport) -> f64 {
    share(report.cpu.as_secs_f64(), report.elapsed.as_secs_f64())
}

/// The figures of the emulation, without those of the command.
pub(crate) fn figures(report: &EmulationReport) -> Value {
    let [up, down] = directions(report).map(|of| link_report::record(&of, of.delivered.packets));
    json!({
        "seconds": report.elapsed.as_secs_f64(),
        "up": up,
        "down": down,
        "lateness_us": link_report::lateness_record(&report.lateness),
        "gaps_us": { "p99": micros(report.p99_gap), "max": micros(report.longest_gap) },
        "unroutable": report.unroutable,
        "uncaptured": report.uncaptured,
        "processor_share": busy(report),
        "valid": report.valid,
        "flaws": link_report::words(&report.flaws),
    })
}

/// The `end` record.
pub(super) fn record(report: &EmulationReport, ended: &Ended, fault: Option<&Fault>) -> Value {
    let mut record = figures(report);
    record["signal"] = ended.signal().into();
    end_record(record, ended.exit_code(), fault)
}
