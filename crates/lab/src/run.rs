//! One run: a world is built, goes through its time, and is asked what happened.

mod build;
mod marks;
mod metrics;
pub mod pcap;
mod series;
#[cfg(test)]
mod tests;

use std::path::Path;

use farhaul_units::{Duration, Instant};

use crate::clock::Stopwatch;
use crate::error::LabError;
use crate::record::Record;
use crate::scenario::Job;
use build::Built;
use marks::{Marks, Row};

/// Runs a job of the scenario that is called `figure`; writes every packet that a host sends to `capture`, if wanted; breaks off
/// once it is `over`.
///
/// # Errors
/// The capture cannot be written, or it was broken off.
pub fn run(figure: &str, job: &Job, capture: Option<&Path>, over: &dyn Fn() -> bool) -> Result<Record, LabError> {
    let watch = Stopwatch::start();
    let setup = &job.setup;
    let mut built = build::world(setup, job.seed);
    let capture = capture.map(pcap::Writer::create).transpose()?;
    if let Some(writer) = &capture {
        built.world.set_capture(Some(writer.sink()));
    }
    let rows = observe(&mut built, job, over);
    if let Some(writer) = capture {
        built.world.set_capture(None);
        writer.finish()?;
    }
    let rows = rows.ok_or(LabError::Stopped)?;
    let marks = Marks { setup, rows: &rows };
    let metrics = metrics::all(&marks, &built);
    let series = if job.series { series::all(&marks) } else { Default::default() };
    Ok(Record {
        figure: figure.to_owned(),
        curve: job.curve.clone(),
        point: job.point.clone(),
        seed: job.seed,
        metrics,
        series,
        key: job.key.clone(),
        trace: format!("{:016x}", built.world.trace_hash().value()),
        simulated_seconds: setup.duration.as_secs_f64(),
        real_seconds: watch.seconds(),
        packet_hops: built.world.network_counters().packet_hops,
    })
}

/// Lets time pass and looks at regular instants, and whenever something begins or ends.
fn observe(built: &mut Built, job: &Job, over: &dyn Fn() -> bool) -> Option<Vec<Row>> {
    let setup = &job.setup;
    let mut rows = Vec::new();
    for time in marks::times(setup) {
        if over() {
            return None;
        }
        built.world.run_until(Instant::ZERO + time);
        let row = row(built, time, rows.last());
        rows.push(row);
    }
    Some(rows)
}

fn row(built: &mut Built, time: Duration, before: Option<&Row>) -> Row {
    let bottleneck = built.world.link_counters(built.bottleneck);
    let before = |index: usize| before.map(|row: &Row| row.flows[index]).unwrap_or_default();
    let flows = built.flows.iter().enumerate();
    let flows = flows.map(|(index, flow)| flow.look(&built.world, built.bottleneck, before(index))).collect();
    Row { at: time, flows, bottleneck }
}
