//! One run: a world is built, goes through its time, and is asked what happened.

mod build;
mod marks;
mod metrics;
pub mod pcap;
mod series;

use std::path::Path;

use farhaul_units::{Duration, Instant};

use crate::clock::Stopwatch;
use crate::error::LabError;
use crate::record::Record;
use crate::scenario::Job;
use build::Built;
use marks::{Marks, Row};

/// Runs a job of the scenario that is called `figure`; writes every packet that a host sends or gets to `capture`, if wanted.
///
/// # Errors
/// It needs what this build does not have, or the capture cannot be written.
pub fn run(figure: &str, job: &Job, capture: Option<&Path>) -> Result<Record, LabError> {
    let watch = Stopwatch::start();
    let setup = &job.setup;
    let mut built = build::world(setup, job.seed)?;
    let capture = capture.map(|path| pcap::Writer::create(path)).transpose()?;
    if let Some(writer) = &capture {
        built.world.set_capture(Some(writer.sink()));
    }
    let rows = observe(&mut built, job);
    if let Some(writer) = capture {
        built.world.set_capture(None);
        writer.finish()?;
    }
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
fn observe(built: &mut Built, job: &Job) -> Vec<Row> {
    let setup = &job.setup;
    let mut rows = Vec::new();
    for time in marks::times(setup) {
        built.world.run_until(Instant::ZERO + time);
        rows.push(row(built, time));
    }
    rows
}

fn row(built: &mut Built, time: Duration) -> Row {
    let bottleneck = built.world.link_counters(built.bottleneck);
    let flows = built.flows.iter().map(|flow| flow.look(&built.world, built.bottleneck)).collect();
    Row { at: time, flows, bottleneck }
}
