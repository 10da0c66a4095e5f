//! Performance requirements, measured beside other programs in the same runs: medians, with a description of the
//! machine.
//!
//! | to | open |
//! | --- | --- |
//! | add a row, or change a requirement | `rows.rs`, and its file under `rows/` |
//! | measure with another program | `tools.rs` |
//! | change how children are started, bounded and ended | `process.rs` |
//! | change the kernel limits during a measurement | `buffers.rs` |
//! | change the output | `report.rs` |
//! | see where the time of a packet goes | `profile.rs`: `bench --profile` |
//! | compare the simulator's TCP with that of ns-2 | `ns2.rs`: `bench tcp`, `interop --ns2` |

mod buffers;
mod machine;
pub(crate) mod ns2;
mod options;
mod process;
mod profile;
mod quantity;
mod report;
mod requirement;
mod rows;
mod samples;
mod shares;
mod tools;

use anyhow::{Result, ensure};

use crate::clock::Stopwatch;
use crate::workspace::Workspace;
use buffers::{Buffers, Limits};
use options::Options;
use report::Report;
use rows::{Measurement, Run};
use samples::Samples;
use tools::Tools;

/// The verb `bench`.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    if let Some((_, arguments)) = arguments.split_first().filter(|(first, _)| *first == "tcp") {
        return ns2::run(workspace, arguments);
    }
    let options = Options::parse(arguments)?;
    if options.list {
        options.listed().for_each(report::describe);
        return Ok(());
    }
    if options.profile {
        return profile::run(workspace, &options);
    }
    let mut tools = Tools::build(workspace, options.needs_peers())?;
    let stopwatch = Stopwatch::start();
    let mut report = Report::new(&options, &machine::describe(workspace));
    for measurement in options.measurements() {
        let (samples, settings) = measure(&mut tools, &options, measurement);
        for row in options.rows.iter().filter(|row| std::ptr::eq(row.by, measurement)) {
            report.row(row, &settings, &samples);
        }
    }
    let unmet = report.finish(stopwatch.elapsed());
    ensure!(unmet == 0 || !options.strict, "{unmet} requirements do not hold");
    Ok(())
}

/// All runs of a measurement, in each setting of the socket buffers if it depends on them.
fn measure(tools: &mut Tools, options: &Options, measurement: &Measurement) -> (Samples, Vec<&'static str>) {
    let (mut samples, mut settings) = (Samples::default(), Vec::new());
    let runs = options.runs_of(measurement);
    let as_found = [Buffers::AsFound];
    for &wanted in if measurement.in_settings { &*options.buffers } else { &as_found } {
        let (buffers, _limits) = enter(wanted);
        if settings.contains(&buffers.label()) {
            continue;
        }
        settings.push(buffers.label());
        samples.enter(buffers.label());
        tools.drop_rights(buffers.drops_rights());
        for index in 0..runs {
            let place = if buffers.label().is_empty() { String::new() } else { format!(", {}", buffers.label()) };
            eprintln!("{}{place}: run {} of {runs}", measurement.name, index + 1);
            (measurement.measure)(tools, &Run { index, quick: options.quick, case: &options.case }, &mut samples);
        }
    }
    tools.drop_rights(false);
    (samples, settings)
}

/// Sets the limits of `buffers` until the guard is dropped. If that is not permitted, leaves them unchanged.
fn enter(buffers: Buffers) -> (Buffers, Option<Limits>) {
    let Some(bytes) = buffers.limit() else { return (buffers, None) };
    let set = || {
        ensure!(!buffers.drops_rights() || buffers::can_drop_rights(), "setpriv (of util-linux) is not installed");
        Limits::set(bytes)
    };
    match set() {
        Ok(limits) => (buffers, Some(limits)),
        Err(error) => {
            eprintln!("socket buffers as found, instead of {}: {error:#}", buffers.label());
            (Buffers::AsFound, None)
        }
    }
}
