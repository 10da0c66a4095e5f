//! Command line options of `bench`.

use anyhow::{Context, Result, bail, ensure};

use super::buffers::Buffers;
use super::rows::{Measurement, ROWS, Row};

const USAGE: &str =
    "bench [--list] [--only ROW,…] [--runs N] [--quick] [--buffers raised,default,forced] [--json] [--strict]";

/// The parsed options.
#[derive(Debug)]
pub(super) struct Options {
    pub(super) rows: Vec<&'static Row>,
    /// Overrides the number of runs of each measurement.
    runs: Option<usize>,
    /// One short run of everything, to test the procedure. Its figures are not meaningful.
    pub(super) quick: bool,
    /// Settings for the rows that depend on socket buffers.
    pub(super) buffers: Vec<Buffers>,
    /// Prints one JSON object per line instead of tables.
    pub(super) json: bool,
    /// Treats an unmet requirement as an error.
    pub(super) strict: bool,
    /// Only lists the rows.
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
                _ => bail!("unknown argument '{argument}'; {USAGE}"),
            }
        }
        ensure!(options.runs != Some(0), "--runs takes 1 or more");
        Ok(options)
    }

    /// The measurements that the rows need, each once, in the order of the rows.
    pub(super) fn measurements(&self) -> Vec<&'static Measurement> {
        let mut needed: Vec<&'static Measurement> = Vec::new();
        for row in &self.rows {
            if !needed.iter().any(|there| std::ptr::eq(*there, row.by)) {
                needed.push(row.by);
            }
        }
        needed
    }

    /// Number of runs in each setting.
    pub(super) fn runs_of(&self, measurement: &Measurement) -> usize {
        self.runs.unwrap_or(if self.quick { 1 } else { measurement.runs })
    }
}

fn row(name: &str) -> Result<&'static Row> {
    ROWS.iter().find(|row| row.name == name).with_context(|| {
        let names: Vec<_> = ROWS.iter().map(|row| row.name).collect();
        format!("unknown row '{name}': use one of {}", names.join(", "))
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
    fn a_quick_run_is_a_single_one_by_default() {
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
