//! What was asked for on the command line.

use anyhow::{Context, Result, bail, ensure};

use super::buffers::Buffers;
use super::rows::{Measurement, ROWS, Row};

const USAGE: &str =
    "bench [--list] [--only ROW,…] [--runs N] [--quick] [--buffers raised,default,forced] [--json] [--strict]";

/// What was asked for.
#[derive(Debug)]
pub(super) struct Options {
    pub(super) rows: Vec<&'static Row>,
    /// In place of what each measurement has by itself.
    runs: Option<usize>,
    /// One short run of everything: shows that the procedure works, and no figures worth keeping.
    pub(super) quick: bool,
    /// Settings for the rows to which socket buffers matter.
    pub(super) buffers: Vec<Buffers>,
    /// One JSON object a line on stdout in place of the tables.
    pub(super) json: bool,
    /// An unmet requirement is an error.
    pub(super) strict: bool,
    /// Only say what there is.
    pub(super) list: bool,
}

impl Options {
    pub(super) fn parse(arguments: &[String]) -> Result<Self> {
        let mut options = Self {
            rows: ROWS.iter().collect(),
            runs: None,
            quick: false,
            buffers: vec![Buffers::Raised, Buffers::KernelDefault],
            json: false,
            strict: false,
            list: false,
        };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().with_context(|| format!("{argument} needs a value; {USAGE}"));
            match argument.as_str() {
                "--only" => options.rows = value()?.split(',').map(row).collect::<Result<_>>()?,
                "--runs" => options.runs = Some(value()?.parse().context("--runs takes a number")?),
                "--buffers" => options.buffers = value()?.split(',').map(Buffers::parse).collect::<Result<_>>()?,
                "--quick" => options.quick = true,
                "--json" => options.json = true,
                "--strict" => options.strict = true,
                "--list" => options.list = true,
                _ => bail!("'{argument}' is not known; {USAGE}"),
            }
        }
        ensure!(options.runs != Some(0), "no run, no figures: --runs takes 1 or more");
        Ok(options)
    }

    /// What the rows need, each once, in the order of the rows.
    pub(super) fn measurements(&self) -> Vec<&'static Measurement> {
        let mut needed: Vec<&'static Measurement> = Vec::new();
        for row in &self.rows {
            if !needed.iter().any(|there| std::ptr::eq(*there, row.by)) {
                needed.push(row.by);
            }
        }
        needed
    }

    /// How often that is done in each setting.
    pub(super) fn runs_of(&self, measurement: &Measurement) -> usize {
        self.runs.unwrap_or(if self.quick { 1 } else { measurement.runs })
    }
}

fn row(name: &str) -> Result<&'static Row> {
    ROWS.iter().find(|row| row.name == name).with_context(|| {
        let names: Vec<_> = ROWS.iter().map(|row| row.name).collect();
        format!("there is no row '{name}', there are {}", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options> {
        Options::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn rows_that_share_a_measurement_need_it_once() {
        let options = parse("--only cpu,memory,idle --runs 2").unwrap();
        let names: Vec<_> = options.measurements().iter().map(|measurement| measurement.name).collect();
        assert_eq!(names.len(), 2, "{names:?}");
        assert_eq!(options.runs_of(options.measurements()[0]), 2);
    }

    #[test]
    fn a_quick_run_is_a_single_one_unless_told_otherwise() {
        let quick = parse("--quick").unwrap();
        assert!(quick.measurements().iter().all(|measurement| quick.runs_of(measurement) == 1));
        let quick = parse("--quick --runs 3").unwrap();
        assert!(quick.measurements().iter().all(|measurement| quick.runs_of(measurement) == 3));
    }

    #[test]
    fn mistakes_are_named() {
        for (line, word) in [("--only nosuch", "nosuch"), ("--runs 0", "--runs"), ("--runs", "value"), ("--x", "--x")] {
            let message = format!("{:#}", parse(line).unwrap_err());
            assert!(message.contains(word), "{message}");
        }
        assert!(parse("--buffers huge").is_err());
    }
}
