//! `lab`: experiments in virtual time or on an emulated network, and the figures of the papers.

mod arena;
mod list;
mod report;
mod run;

use std::io::ErrorKind;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use farhaul_emu::EmulateError;
use farhaul_lab::LabError;
use farhaul_lab::world::{Choices, Venue};

use super::Context;
use super::drawing::Format;
use crate::exit::{Code, Fault};
use crate::fault;
use crate::output::human::reason;

/// Default folder of results.
const OUT: &str = "farhaul-lab";

/// Run experiments of the papers or of your own, in virtual time or on an emulated network
///
/// The simulator runs the code that ships. Name a figure by its id, and your own experiment by its file:
///
///     farhaul lab list
///     farhaul lab run a5 b3
///     farhaul lab run --quick
///     farhaul lab run my-link.toml
///     farhaul lab run a14 --world emu
///     farhaul lab arena udt ideal
///     farhaul lab report farhaul-lab
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct LabArgs {
    #[command(subcommand)]
    verb: LabVerb,
}

#[derive(Subcommand, Debug)]
enum LabVerb {
    /// List the figures with their papers and required scores
    List(list::ListArgs),
    /// Run figures or scenario files, and print their tables and scores
    Run(run::RunArgs),
    /// Run one scenario over a grid, on all cores; a repeated sweep resumes
    Sweep(run::SweepArgs),
    /// Compare congestion controllers on random paths, with goals by stated formulas
    Arena(arena::ArenaArgs),
    /// Write one page about all results in a folder
    Report(report::ReportArgs),
}

/// The world of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum World {
    /// Simulator, in virtual time
    Sim,
    /// Real sockets on an emulated network, in real time; needs root or user namespaces
    Emu,
}

/// Options of `lab run` and `lab sweep`.
#[derive(Args, Clone, Debug)]
struct RunOptions {
    /// Seed instead of the scenario's
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    seed: Option<u64>,
    /// Folder for the results, with one subfolder per figure
    #[arg(long, value_name = "DIR", default_value = OUT)]
    out: PathBuf,
    /// Formats of the drawings; pdf and png need rsvg-convert
    #[arg(long, value_enum, value_delimiter = ',', value_name = "FORMAT,…", default_value = "svg")]
    format: Vec<Format>,
    /// Run the quick form of each scenario
    #[arg(long)]
    quick: bool,
    /// Fail if a score is not met
    #[arg(long)]
    strict: bool,
    /// Print one JSON record per line: start, run, figure, end
    #[arg(long)]
    json: bool,
    /// Number of concurrent runs [default: one per core]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..=1024))]
    jobs: Option<u64>,
    /// World of the scenario
    #[arg(long, value_enum, default_value = "sim")]
    world: World,
    /// With --world emu: congestion control of the kernel's TCP flows, such as cubic or bbr [default: reno or cubic, as in the scenario]
    #[arg(long, value_name = "NAME")]
    tcp: Option<String>,
    /// With --world emu: program at both ends of libudt flows, built by interop/build.sh
    #[arg(long, env = "FARHAUL_LIBUDT_PEER", value_name = "PROGRAM")]
    libudt: Option<PathBuf>,
}

impl RunOptions {
    /// Whether the runs use an emulated network.
    fn emulates(&self) -> bool {
        self.world == World::Emu
    }

    /// The world of the runs, with its options.
    fn venue(&self) -> Result<Venue, Fault> {
        let tcp = self.tcp.clone();
        match self.world {
            World::Sim if tcp.is_some() => {
                Err(Fault::usage("--tcp chooses the kernel's congestion control, and needs --world emu"))
            }
            World::Sim => Ok(Venue::Simulator),
            World::Emu if self.jobs.is_some_and(|jobs| jobs > 1) => Err(Fault::usage(
                "--world emu makes one run at a time, since runs would disturb each other: remove --jobs",
            )),
            World::Emu => Ok(Venue::Emulator(Choices { tcp, libudt: self.libudt.clone() })),
        }
    }
}

impl LabArgs {
    /// Whether any run uses an emulated network.
    pub(crate) fn emulates(&self) -> bool {
        match &self.verb {
            LabVerb::List(_) | LabVerb::Arena(_) | LabVerb::Report(_) => false,
            LabVerb::Run(args) => args.options.emulates(),
            LabVerb::Sweep(args) => args.options.emulates(),
        }
    }

    /// Whether stdout carries records.
    pub(crate) fn json(&self) -> bool {
        match &self.verb {
            LabVerb::List(_) | LabVerb::Report(_) => false,
            LabVerb::Arena(args) => args.json,
            LabVerb::Run(args) => args.options.json,
            LabVerb::Sweep(args) => args.options.json,
        }
    }
}

pub(crate) fn run(args: &LabArgs, context: &Context) -> Result<(), Fault> {
    match &args.verb {
        LabVerb::List(args) => list::run(args),
        LabVerb::Run(args) => run::run(args, context),
        LabVerb::Sweep(args) => run::sweep(args, context),
        LabVerb::Arena(args) => arena::run(args, context),
        LabVerb::Report(args) => report::run(args),
    }
}

/// The fault of an error of the lab.
fn fault_of(error: &LabError, context: &Context) -> Fault {
    match error {
        LabError::NoFigure { .. } => Fault::usage(error.to_string()),
        LabError::Stopped => {
            let fault = context.interrupt.fault().unwrap_or_else(|| Fault::new(Code::Failed, "stopped"));
            fault.and("finished runs are kept: the same command resumes there")
        }
        LabError::File { path, source } => file_fault(path, source),
        LabError::Emulate(error) => no_networks(error),
        LabError::Controller { .. } => Fault::new(Code::ControllerFailed, error.to_string()),
        _ => Fault::new(Code::Failed, error.to_string()),
    }
}

/// The fault of a machine that refuses emulated networks.
fn no_networks(error: &EmulateError) -> Fault {
    fault::of_emulation_or(error, "--world sim needs neither")
}

fn file_fault(path: &std::path::Path, source: &std::io::Error) -> Fault {
    let words = reason(source);
    match source.kind() {
        ErrorKind::NotFound => Fault::usage(format!("there is no {}; check the name", path.display())),
        ErrorKind::StorageFull => {
            Fault::new(Code::DiskFull, format!("{}: {words}; make room and start again", path.display()))
        }
        _ => Fault::new(Code::LocalIo, format!("{}: {words}", path.display())),
    }
}
