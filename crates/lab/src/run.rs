//! One run: it takes place in its world, and its metrics are computed afterwards.

mod metrics;
mod series;
#[cfg(test)]
mod tests;

use std::path::Path;

use farhaul_udp::Clock;
use farhaul_units::Instant;

use crate::error::LabError;
use crate::record::Record;
use crate::scenario::Job;
use crate::world::marks::Marks;
use crate::world::{Venue, emu, sim};

/// Runs a job of the scenario `figure`, and stops once `over` says so. In the simulator, the packets of all hosts go to
/// `capture` if it is given.
///
/// # Errors
/// The capture cannot be written, or the run was stopped. In the emulator also whatever this machine lacks.
pub fn run(
    figure: &str,
    job: &Job,
    venue: &Venue,
    capture: Option<&Path>,
    over: &dyn Fn() -> bool,
) -> Result<Record, LabError> {
    let clock = Clock::start();
    let setup = &job.setup;
    let observed = match venue {
        Venue::Simulator => sim::observe(job, capture, over)?,
        Venue::Emulator(choices) => emu::observe(figure, job, choices, over)?,
    };
    let marks = Marks { setup, rows: &observed.rows };
    let metrics = metrics::all(&marks, &observed.endings);
    let series = if job.series { series::all(&marks) } else { Default::default() };
    Ok(Record {
        figure: figure.to_owned(),
        curve: job.curve.clone(),
        point: job.point.clone(),
        seed: job.seed,
        world: venue.world(),
        emulation: observed.emulation,
        metrics,
        series,
        key: job.key.clone(),
        trace: observed.trace,
        simulated_seconds: setup.duration.as_secs_f64(),
        real_seconds: (clock.now() - Instant::ZERO).as_secs_f64(),
        packet_hops: observed.packet_hops,
    })
}
