//! What must be reached, measured beside the peers in the same runs: medians, with the machine they were made on.
//!
//! | to | open |
//! | --- | --- |
//! | add a row, or change what must hold | `rows.rs`, and its file under `rows/` |
//! | measure with another program | `tools.rs` |
//! | change how children are started, bounded and ended | `process.rs` |
//! | change what is printed | `report.rs` |

mod machine;
mod process;
mod report;
mod rows;
mod samples;
mod tools;

use anyhow::{Context, Result, bail, ensure};

use crate::workspace::Workspace;
use rows::{ROWS, Row};
use samples::Samples;
use tools::Tools;

/// Enough for a median that one disturbed run does not move.
const DEFAULT_RUNS: usize = 5;
const USAGE: &str = "bench [--rows NAME,…] [--runs N] [--json] [--strict] [--list]";

/// What was asked for.
struct Options {
    rows: Vec<&'static Row>,
    runs: usize,
    /// One JSON object a line on stdout in place of the table.
    json: bool,
    /// An unmet requirement is an error.
    strict: bool,
    /// Only say what there is.
    list: bool,
}

/// The verb.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let options = Options::parse(arguments)?;
    if options.list {
        options.rows.iter().for_each(|row| report::describe(row));
        return Ok(());
    }
    let tools = Tools::build(workspace)?;
    let machine = machine::describe(workspace);
    let mut report = report::Report::new(options.json, &machine, options.runs);
    for row in &options.rows {
        let mut samples = Samples::default();
        for run in 1..=options.runs {
            eprintln!("{}: run {run} of {}", row.name, options.runs);
            (row.measure)(&tools, &mut samples);
        }
        report.row(row, &samples);
    }
    let unmet = report.finish();
    ensure!(unmet == 0 || !options.strict, "{unmet} requirements do not hold");
    Ok(())
}

impl Options {
    fn parse(arguments: &[String]) -> Result<Self> {
        let mut options =
            Self { rows: ROWS.iter().collect(), runs: DEFAULT_RUNS, json: false, strict: false, list: false };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().with_context(|| format!("{argument} needs a value; {USAGE}"));
            match argument.as_str() {
                "--rows" => options.rows = value()?.split(',').map(row).collect::<Result<_>>()?,
                "--runs" => options.runs = value()?.parse().context("--runs takes a number")?,
                "--json" => options.json = true,
                "--strict" => options.strict = true,
                "--list" => options.list = true,
                _ => bail!("'{argument}' is not known; {USAGE}"),
            }
        }
        ensure!(options.runs > 0, "no run, no figures: --runs takes 1 or more");
        Ok(options)
    }
}

fn row(name: &str) -> Result<&'static Row> {
    ROWS.iter().find(|row| row.name == name).with_context(|| {
        let names: Vec<_> = ROWS.iter().map(|row| row.name).collect();
        format!("there is no row '{name}', there are {}", names.join(", "))
    })
}
