//! `lab run` and `lab sweep`: runs of figures and scenario files, on all cores.

mod tally;

use std::collections::BTreeMap;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::thread::available_parallelism;

use clap::Args;
use farhaul_lab::folder::{self, Settings};
use farhaul_lab::store::Store;
use farhaul_lab::sweep::{Options, Work, sweep as run_all};
use farhaul_lab::world::Venue;
use farhaul_lab::{Figure, FigureResult, Job, LabError, Overrides, Record};

use super::{RunOptions, fault_of, no_networks};
use crate::cmd::{Context, capacity, drawing};
use crate::exit::Fault;
use crate::output::{Output, progress};
use tally::{FigureTally, run_record};

/// Run figures or scenario files, and print their tables and scores
#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    /// Ids of figures, in any case, or .toml files; "all", or none with --quick, runs all figures
    #[arg(value_name = "FIGURE|FILE.toml", required_unless_present = "quick")]
    names: Vec<String>,
    /// Write the packets of the first run to this file, for Wireshark
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    #[command(flatten)]
    pub(super) options: RunOptions,
}

/// Run one scenario over a grid, on all cores; a repeated sweep resumes
#[derive(Args, Debug)]
pub(crate) struct SweepArgs {
    /// Scenario file, or id of a figure
    #[arg(value_name = "FILE.toml|FIGURE")]
    name: String,
    /// Values of a named axis, or of a key by its path: --axis rate=1mbit,10mbit --axis flow.udt.count=1,2,4
    #[arg(long = "axis", value_name = "KEY=V1,V2…", value_parser = axis)]
    axes: Vec<(String, Vec<String>)>,
    #[command(flatten)]
    pub(super) options: RunOptions,
}

fn axis(text: &str) -> Result<(String, Vec<String>), String> {
    let (key, values) = text.split_once('=').ok_or("write an axis as KEY=V1,V2…, such as link.rate=1mbit,10mbit")?;
    let values: Vec<String> = values.split(',').map(|value| value.trim().to_owned()).collect();
    if key.is_empty() || values.iter().any(String::is_empty) {
        return Err(format!("'{text}' lacks a name or a value"));
    }
    Ok((key.to_owned(), values))
}

pub(super) fn run(args: &RunArgs, context: &Context) -> Result<(), Fault> {
    let all = args.names.is_empty() || args.names.iter().any(|name| name.eq_ignore_ascii_case("all"));
    let names: Vec<String> = match all {
        true => farhaul_lab::figures::shipped().iter().map(|figure| figure.id.to_owned()).collect(),
        false => args.names.clone(),
    };
    let venue = args.options.venue()?;
    if args.pcap.is_some() && !venue.world().is_simulated() {
        return Err(Fault::usage("--pcap writes packets of simulated runs only: remove it, or use --world sim"));
    }
    let session = Session { options: &args.options, venue, axes: &[], verb: "run", context };
    session.figures(&names, args.pcap.as_deref())
}

pub(super) fn sweep(args: &SweepArgs, context: &Context) -> Result<(), Fault> {
    let venue = args.options.venue()?;
    let session = Session { options: &args.options, venue, axes: &args.axes, verb: "sweep", context };
    session.figures(std::slice::from_ref(&args.name), None)
}

/// A figure, its settings, and its runs.
type Planned = (Figure, Settings, Vec<Job>);

/// Advice for a path that is too fast.
const ADVICE: &str = "use lower rates or larger packets, and check for runs marked invalid";

struct Session<'a> {
    options: &'a RunOptions,
    venue: Venue,
    axes: &'a [(String, Vec<String>)],
    verb: &'static str,
    context: &'a Context,
}

impl Session<'_> {
    fn figures(&self, names: &[String], pcap: Option<&Path>) -> Result<(), Fault> {
        let output = Output::from_flag(self.options.json);
        let mut tally = FigureTally::begin(self.verb, &self.options.out, &self.options.format, &output);
        let fault = |error: LabError| fault_of(&error, self.context);
        let done = self.read(names, &output).map_err(fault).and_then(|figures| {
            self.permitted()?;
            drawing::possible(&self.options.format)?;
            self.warn_of_speed(&figures, &output)?;
            self.try_figures(figures, pcap, &output, &mut tally).map_err(fault)
        });
        output.detach();
        tally.end(done, self.options)
    }

    /// Checks that this machine has the world, before a folder for results exists.
    fn permitted(&self) -> Result<(), Fault> {
        if self.venue.world().is_simulated() {
            return Ok(());
        }
        self.context.networks.as_ref().map_err(no_networks).copied()
    }

    /// Warns of paths above the capacity of this machine. They still run, since flows may use less.
    fn warn_of_speed(&self, figures: &[Planned], output: &Output) -> Result<(), Fault> {
        if self.venue.world().is_simulated() {
            return Ok(());
        }
        let mut known = BTreeMap::new();
        for (figure, _, jobs) in figures {
            let Some((rate, packet)) = jobs.iter().filter_map(Job::demand).max() else { continue };
            let carries = match known.get(&packet) {
                Some(carries) => Some(*carries),
                None => capacity::carried(Some(rate), packet).map_err(|error| no_networks(&error))?,
            };
            let Some(carries) = carries else { continue };
            known.insert(packet, carries);
            if let Some(warning) = capacity::too_fast(Some(rate), carries, packet, ADVICE) {
                output.warn(&format!("{}: {warning}", figure.info.id));
            }
        }
        Ok(())
    }

    fn try_figures(
        &self,
        figures: Vec<Planned>,
        pcap: Option<&Path>,
        output: &Output,
        tally: &mut FigureTally,
    ) -> Result<(), LabError> {
        let mut works = Vec::new();
        let mut results = Vec::new();
        for (figure, settings, jobs) in figures {
            let folder = folder::begin(&self.options.out, &figure, &settings)?;
            let store = Some(Store::claim(&folder)?);
            works.push(Work { figure: figure.info.id.clone(), jobs, store });
            results.push(FigureResult::of(figure, settings.world, settings.quick, settings.command));
        }
        if let (Some(path), Some(work)) = (pcap, works.first_mut()) {
            capture(path, work, &self.context.interrupt.stopping())?;
        }
        let bar = progress::runs();
        output.attach(bar.clone());
        let threads = self.options.jobs.map_or_else(cores, |jobs| jobs as usize);
        let stop = self.context.interrupt.stopping();
        run_all(
            &mut works,
            Options {
                venue: &self.venue,
                threads,
                stop: &stop,
                progress: &mut |done, all| {
                    bar.set_length(all as u64);
                    bar.set_position(done as u64);
                },
                ran: &mut |run| output.record_value(&run_record(run)),
                finished: &mut |place: usize, records: Vec<Record>| {
                    results[place].records = records;
                    tally.figure(&results, place, &self.options.out)
                },
            },
        )
    }

    /// All figures with their runs. Reports all errors before anything runs.
    fn read(&self, names: &[String], output: &Output) -> Result<Vec<Planned>, LabError> {
        let build = folder::build()? + &self.venue.mark();
        let overrides = Overrides {
            quick: self.options.quick,
            emulated: !self.venue.world().is_simulated(),
            seeds: self.options.seed.into_iter().collect(),
            axes: self.axes.to_vec(),
            ..Overrides::default()
        };
        let mut figures: Vec<Planned> = Vec::new();
        for name in names {
            let figure = Figure::find(name, &overrides)?;
            if figures.iter().any(|(other, ..)| other.info.id == figure.info.id) {
                continue;
            }
            let (jobs, refusals) = self.venue.possible(&figure.experiment, figure.experiment.jobs(&build)?);
            // With several figures or curves, the others still run.
            if let ([refusal, ..], [], [_]) = (refusals.as_slice(), jobs.as_slice(), names) {
                return Err(refusal.clone().into());
            }
            refusals.iter().for_each(|refusal| output.warn(&format!("{refusal}; left out")));
            if jobs.is_empty() {
                continue;
            }
            let settings = self.settings(name, &figure, &build);
            figures.push((figure, settings, jobs));
        }
        farhaul_lab::check(&figures.iter().map(|(figure, ..)| figure).collect::<Vec<_>>(), &self.options.out)?;
        Ok(figures)
    }

    fn settings(&self, name: &str, figure: &Figure, build: &str) -> Settings {
        // Repeat a shipped figure by its id, even if it was named by its file.
        let name = if figure.is_shipped() { &figure.info.id } else { name };
        let mut command = format!("farhaul lab {} {name}", self.verb);
        for (key, values) in self.axes {
            command.push_str(&format!(" --axis {key}={}", values.join(",")));
        }
        if self.options.quick {
            command.push_str(" --quick");
        }
        if !self.venue.world().is_simulated() {
            command.push_str(" --world emu");
        }
        if let Some(law) = &self.options.tcp {
            command.push_str(&format!(" --tcp {law}"));
        }
        if let Some(seed) = self.options.seed {
            command.push_str(&format!(" --seed {seed}"));
        }
        Settings {
            figure: figure.info.id.clone(),
            command,
            quick: self.options.quick,
            seeds: self.options.seed.into_iter().collect(),
            axes: self.axes.to_vec(),
            build: build.to_owned(),
            world: self.venue.world(),
            ..Settings::default()
        }
    }
}

fn cores() -> usize {
    available_parallelism().map_or(1, NonZero::get)
}

/// Makes the first run, with its packets in a file.
fn capture(path: &Path, work: &mut Work, stop: &std::sync::atomic::AtomicBool) -> Result<(), LabError> {
    let over = || stop.load(std::sync::atomic::Ordering::Relaxed);
    let record = farhaul_lab::run::run(&work.figure, &work.jobs[0], &Venue::Simulator, Some(path), &over)?;
    match &mut work.store {
        Some(store) => store.add(&record),
        None => Ok(()),
    }
}
