//! `lab arena`: congestion controllers on random paths.

mod report;

use std::fs;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::thread::available_parallelism;

use clap::Args;
use farhaul_lab::arena::{self, Cell, Family, IDEAL, Results};
use farhaul_lab::store::{RECORDS, Store};
use farhaul_lab::sweep::{Options, Work, sweep};
use farhaul_lab::world::Venue;
use farhaul_lab::{LabError, Record, folder};

use super::{fault_of, file_fault};
use crate::cmd::Context;
use crate::exit::Fault;
use crate::output::{Output, print, progress};

/// Default folder of results.
const OUT: &str = "farhaul-lab/arena";
/// The page's name in the folder.
const PAGE: &str = "arena.html";
/// The page about all laws.
const FIELD: &str = "field.html";
/// The file with the key of the program whose records the folder holds.
const BUILD: &str = "build";
/// The most seeds of one range, and the most cells of a seed: a day of a machine.
const MAX_SEEDS: u64 = 1_000;
const MAX_CELLS: u64 = 10_000;

/// Compare congestion controllers on random paths, with goals by stated formulas
///
/// A seed decides the paths, and every goal follows from its path. The controller "ideal" knows its fair share:
///
///     farhaul lab arena
///     farhaul lab arena union udt bbr ideal --seed 1..4
///     farhaul lab arena --family loss,fair --misses
///     farhaul lab arena --cell 7 --show > cell.toml
///     farhaul lab arena all --seed 1..4        # every law, with field.html
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct ArenaArgs {
    /// Controllers, as --controller takes them, "ideal", or "all" for all that need no option
    #[arg(value_name = "CONTROLLER", default_value = "union", value_parser = controller)]
    controllers: Vec<String>,
    /// Seeds of the cells: numbers and ranges, such as 1..4 for 1, 2, 3 and 4
    #[arg(long = "seed", value_name = "NUMBER|A..B", default_value = "1", value_delimiter = ',', value_parser = seeds)]
    seeds: Vec<Seeds>,
    /// Cells of each seed
    #[arg(long, value_name = "NUMBER", default_value_t = 46, value_parser = clap::value_parser!(u64).range(1..=MAX_CELLS))]
    cells: u64,
    /// Only these families
    #[arg(long = "family", value_name = "NAME,…", value_delimiter = ',')]
    families: Vec<Family>,
    /// Only the cells with these numbers
    #[arg(long = "cell", value_name = "NUMBER,…", value_delimiter = ',')]
    places: Vec<usize>,
    /// Print the scenarios of the first controller, and run nothing
    #[arg(long)]
    show: bool,
    /// List the cells that the last controller misses, with their marks
    #[arg(long)]
    misses: bool,
    /// Print one JSON record per line: start, cell, end
    #[arg(long, conflicts_with_all = ["show", "misses"])]
    pub(super) json: bool,
    /// Folder for the page and the records
    #[arg(long, value_name = "DIR", default_value = OUT)]
    out: PathBuf,
    /// Number of concurrent runs [default: one per core]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..=1024))]
    jobs: Option<u64>,
}

/// Seeds in a row.
#[derive(Clone, Copy, Debug)]
struct Seeds {
    first: u64,
    last: u64,
}

fn seeds(text: &str) -> Result<Seeds, String> {
    let number = |text: &str| text.trim().parse::<u64>().ok().filter(|seed| *seed <= i64::MAX as u64);
    let wrong = || format!("'{text}' is neither a seed nor a range such as 1..4");
    let (first, last) =
        text.split_once("..").map_or((text, text), |(first, last)| (first, last.trim_start_matches('=')));
    let (first, last) = (number(first).ok_or_else(wrong)?, number(last).ok_or_else(wrong)?);
    if last < first || last - first >= MAX_SEEDS {
        return Err(format!("'{text}' has no seed or more than {MAX_SEEDS}"));
    }
    Ok(Seeds { first, last })
}

fn controller(text: &str) -> Result<String, String> {
    if text == arena::ALL {
        return Ok(text.to_owned());
    }
    arena::check(text).map(|()| text.to_owned()).map_err(|wrong| format!("{wrong}; or use {IDEAL}"))
}

impl ArenaArgs {
    fn seeds(&self) -> Vec<u64> {
        let mut seeds: Vec<u64> = Vec::new();
        for seed in self.seeds.iter().flat_map(|range| range.first..=range.last) {
            if !seeds.contains(&seed) {
                seeds.push(seed);
            }
        }
        seeds
    }

    /// The cells of all seeds.
    fn cells(&self) -> Vec<Cell> {
        let of_seed = |seed: u64| arena::cells(seed, self.cells as usize, &self.families);
        let mut cells: Vec<Cell> = self.seeds().into_iter().flat_map(of_seed).collect();
        cells.retain(|cell| self.places.is_empty() || self.places.contains(&cell.place));
        cells
    }

    /// The command that makes the same results.
    fn command(&self) -> String {
        let mut command = format!("farhaul lab arena {}", self.controllers.join(" "));
        let range = |range: &Seeds| match range.last == range.first {
            true => range.first.to_string(),
            false => format!("{}..{}", range.first, range.last),
        };
        let seeds: Vec<String> = self.seeds.iter().map(range).collect();
        command.push_str(&format!(" --seed {} --cells {}", seeds.join(","), self.cells));
        if !self.families.is_empty() {
            let names: Vec<&str> = self.families.iter().map(|family| family.name()).collect();
            command.push_str(&format!(" --family {}", names.join(",")));
        }
        if !self.places.is_empty() {
            let places: Vec<String> = self.places.iter().map(usize::to_string).collect();
            command.push_str(&format!(" --cell {}", places.join(",")));
        }
        command
    }
}

pub(super) fn run(args: &ArenaArgs, context: &Context) -> Result<(), Fault> {
    let output = Output::from_flag(args.json);
    let cells = args.cells();
    if cells.is_empty() {
        return Err(Fault::usage("no cell has this number: --cells and --family decide which there are"));
    }
    if args.show {
        let shown: Vec<String> = cells.iter().map(|cell| cell.scenario(&arena::named(&args.controllers)[0])).collect();
        print(&shown.join("\n"));
        return Ok(());
    }
    report::start(&args.out, &output);
    let done = measure(args, cells, &output, context).map_err(|error| fault_of(&error, context));
    output.detach();
    let done = done.and_then(|results| {
        let page = args.out.join(PAGE);
        fs::write(&page, arena::page(&results)).map_err(|source| file_fault(&page, &source))?;
        if args.controllers.iter().any(|name| name == arena::ALL) {
            let field = args.out.join(FIELD);
            fs::write(&field, arena::field(&results)).map_err(|source| file_fault(&field, &source))?;
        }
        Ok((results, page))
    });
    if args.json {
        report::records(&done, &output);
    } else if let Ok((results, page)) = &done {
        report::table(results, page, args.misses);
    }
    done.map(drop)
}

/// Makes all runs.
fn measure(args: &ArenaArgs, cells: Vec<Cell>, output: &Output, context: &Context) -> Result<Results, LabError> {
    let build = folder::build()?;
    let controllers = arena::named(&args.controllers);
    let jobs = arena::jobs(&cells, &controllers, &build)?;
    let store = Some(store(&args.out, &build)?);
    let mut works = [Work { figure: "arena".to_owned(), jobs, store }];
    let bar = progress::runs();
    output.attach(bar.clone());
    let stop = context.interrupt.stopping();
    let mut records: Vec<Record> = Vec::new();
    let options = Options {
        venue: &Venue::Simulator,
        threads: args.jobs.map_or_else(|| available_parallelism().map_or(1, NonZero::get), |jobs| jobs as usize),
        stop: &stop,
        progress: &mut |done, all| {
            bar.set_length(all as u64);
            bar.set_position(done as u64);
        },
        ran: &mut |_| {},
        finished: &mut |_, all| {
            records = all;
            Ok(())
        },
    };
    sweep(&mut works, options)?;
    Ok(Results::new(args.seeds(), controllers, cells, &records, args.command()))
}

/// The finished runs of this program in a folder. Those of another program are removed, because their keys never match
/// again.
fn store(out: &Path, build: &str) -> Result<Store, LabError> {
    let mark = out.join(BUILD);
    fs::create_dir_all(out).map_err(|source| LabError::file(out, source))?;
    if fs::read_to_string(&mark).ok().as_deref() != Some(build) {
        let records = out.join(RECORDS);
        match fs::remove_file(&records) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                return Err(LabError::file(records, source));
            }
            _ => fs::write(&mark, build).map_err(|source| LabError::file(&mark, source))?,
        }
    }
    Store::claim(out)
}
