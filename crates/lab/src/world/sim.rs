//! The simulator: builds a world, runs it, and reads the counters of its agents at the times of the samples.

mod build;
mod pcap;

use std::path::Path;

use farhaul_cc::ControllerFailure;
use farhaul_units::{Duration, Instant};

use super::marks::{self, MarksRow};
use super::{Ending, Observed};
use crate::error::LabError;
use crate::scenario::Job;
use crate::scenario::flow::Protocol;
use crate::scenario::setup::Setup;
use build::{Built, BuiltFlow};

/// The reason why a setup cannot be run here, and the line of the scenario.
pub(crate) fn refusal(setup: &Setup) -> Option<(usize, String)> {
    let flow = setup.flows.iter().find(|flow| flow.protocol == Protocol::Libudt)?;
    Some((flow.line, format!("flow '{}' uses libudt, which only the emulated world has: use --world emu", flow.name)))
}

/// Runs a job, and stops once `over` says so. Writes every packet of the hosts to `capture` if it is given.
pub(crate) fn observe(job: &Job, capture: Option<&Path>, over: &dyn Fn() -> bool) -> Result<Observed, LabError> {
    if let Some((_, reason)) = refusal(&job.setup) {
        return Err(LabError::Refused { reason });
    }
    let mut built = build::world(&job.setup, job.seed);
    let capture = capture.map(pcap::Writer::create).transpose()?;
    if let Some(writer) = &capture {
        built.world.set_capture(Some(writer.sink()));
    }
    let rows = rows(&mut built, job, over);
    if let Some(writer) = capture {
        built.world.set_capture(None);
        writer.finish()?;
    }
    let rows = rows.ok_or(LabError::Stopped)?;
    if let Some((index, failure)) = failure(&built) {
        return Err(LabError::Controller { flow: job.setup.flows[index].name.clone(), failure });
    }
    let endings = built.flows.iter().map(|flow| {
        let sender = built.world.agent(flow.sender);
        Ending {
            finished: sender.finished_at().map(|at| at - Instant::ZERO),
            transfers: sender.transfer_times().to_vec(),
        }
    });
    Ok(Observed {
        rows,
        endings: endings.collect(),
        trace: format!("{:016x}", built.world.trace_hash().value()),
        packet_hops: built.world.network_counters().packet_hops,
        emulation: None,
    })
}

/// The first flow with a controller that has failed, at either end. Control streams have none of their own.
fn failure(built: &Built) -> Option<(usize, ControllerFailure)> {
    let of = |flow: &BuiltFlow| {
        [flow.sender, flow.receiver].into_iter().find_map(|agent| built.world.agent(agent).failure())
    };
    let mut flows = built.flows.iter().enumerate().filter(|(_, flow)| !flow.is_control);
    flows.find_map(|(index, flow)| Some((index, of(flow)?)))
}

/// Runs the world, and samples it at regular instants and at each beginning and end. Ends early once a controller has failed.
fn rows(built: &mut Built, job: &Job, over: &dyn Fn() -> bool) -> Option<Vec<MarksRow>> {
    let mut rows = Vec::new();
    for time in marks::times(&job.setup) {
        if over() {
            return None;
        }
        built.world.run_until(Instant::ZERO + time);
        let row = row(built, time, rows.last());
        rows.push(row);
        if failure(built).is_some() {
            break;
        }
    }
    Some(rows)
}

fn row(built: &mut Built, time: Duration, before: Option<&MarksRow>) -> MarksRow {
    let bottleneck = built.world.link_counters(built.bottleneck);
    let before = |index: usize| before.map(|row: &MarksRow| row.flows[index]).unwrap_or_default();
    let flows = built.flows.iter().enumerate();
    let flows = flows.map(|(index, flow)| flow.look(&built.world, built.bottleneck, before(index))).collect();
    MarksRow { at: time, flows, bottleneck }
}
