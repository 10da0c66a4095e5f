//! Command line options of `bench`.

use anyhow::{Context, Result, bail, ensure};

use super::buffers::Buffers;
use super::rows::{Measurement, ON_REQUEST, ROWS, Row, cases};

const USAGE: &str = "bench [--list] [--only ROW,…] [--case TEXT] [--runs N] [--quick] [--buffers raised,default,forced] [--json] [--strict] [--profile]";

/// The parsed options.
#[derive(Debug)]
pub(super) struct Options {
    pub(super) rows: Vec<&'static Row>,
    /// Text in the names of the wanted cases, for rows on request. Empty: all cases.
    pub(super) case: String,
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
    /// Prints where the time of a packet goes, and measures no row.
    pub(super) profile: bool,
    /// Only lists the rows.
    pub(super) list: bool,
}

impl Options {
    pub(super) fn parse(arguments: &[String]) -> Result<Self> {
        let mut options = Self {
            rows: ROWS.iter().collect(),
            case: String::new(),
            runs: None,
            quick: false,
            buffers: vec![Buffers::Raised, Buffers::KernelDefault],
            json: false,
            strict: false,
            profile: false,
            list: false,
        };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().with_context(|| format!("{argument} needs a value; {USAGE}"));
            match argument.as_str() {
                "--only" => options.rows = value()?.split(',').map(rows).collect::<Result<Vec<_>>>()?.concat(),
                "--case" => options.case.clone_from(value()?),
                "--runs" => options.runs = Some(value()?.parse().context("--runs takes a number")?),
                "--buffers" => options.buffers = value()?.split(',').map(Buffers::parse).collect::<Result<_>>()?,
                "--quick" => options.quick = true,
                "--json" => options.json = true,
                "--strict" => options.strict = true,
                "--list" => options.list = true,
                "--profile" => options.profile = true,
                _ => bail!("unknown argument '{argument}'; {USAGE}"),
            }
        }
        ensure!(options.runs != Some(0), "--runs takes 1 or more");
        if !options.case.is_empty() {
            let on_request = |row: &&'static Row| ON_REQUEST.iter().any(|other| other.name == row.name);
            let names: Vec<_> = ON_REQUEST.iter().map(|row| row.name).collect();
            ensure!(options.rows.iter().all(on_request), "--case is for the rows {}: use --only", names.join(", "));
            let (wanted, all) = (&*options.case, cases().collect::<Vec<_>>());
            ensure!(
                all.iter().any(|case| case.contains(wanted)),
                "no case contains '{wanted}'. The cases are:\n{}",
                all.join("\n")
            );
        }
        Ok(options)
    }

    /// The rows to list: the chosen ones, or without a choice all of them, with those on request.
    pub(super) fn listed(&self) -> impl Iterator<Item = &'static Row> {
        let on_request = if self.rows.len() == ROWS.len() { ON_REQUEST } else { &[] };
        self.rows.iter().copied().chain(on_request)
    }

    /// Whether a chosen row needs programs other than `farhaul` itself.
    pub(super) fn needs_peers(&self) -> bool {
        self.rows.iter().any(|row| !ON_REQUEST.iter().any(|other| other.name == row.name))
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

/// The row of that name, or the rows whose names begin with it and a hyphen: `price` is all `price-…`.
fn rows(name: &str) -> Result<Vec<&'static Row>> {
    let all = || ROWS.iter().chain(ON_REQUEST);
    let in_group = |row: &&Row| row.name.strip_prefix(name).is_some_and(|rest| rest.starts_with('-'));
    let found: Vec<_> = match all().find(|row| row.name == name) {
        Some(row) => vec![row],
        None => all().filter(in_group).collect(),
    };
    let names = || all().map(|row| row.name).collect::<Vec<_>>().join(", ");
    ensure!(!found.is_empty(), "unknown row '{name}': use one of {}", names());
    Ok(found)
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
    fn rows_on_request_are_measured_only_by_name() {
        assert!(parse("").unwrap().rows.iter().all(|row| row.name != "law-sockets"));
        assert!(parse("--list").unwrap().listed().any(|row| row.name == "law-sockets"));
        let options = parse("--only law-sockets --case loopback").unwrap();
        assert_eq!((options.rows.len(), &*options.case, options.needs_peers()), (1, "loopback", false));
        assert!(parse("--only law-sockets,idle").unwrap().needs_peers());
    }

    #[test]
    fn the_beginning_of_names_chooses_a_group() {
        let names = |line| parse(line).unwrap().rows.iter().map(|row| row.name).collect::<Vec<_>>();
        assert_eq!(names("--only price"), ["price-path", "price-veth", "price-copy", "price-files", "price-start"]);
        assert_eq!(names("--only idle,own-losses"), ["idle", "own-losses"]);
        assert!(parse("--only pri").is_err());
    }

    #[test]
    fn a_case_must_exist_and_belong_to_every_chosen_row() {
        let message = |line| format!("{:#}", parse(line).unwrap_err());
        assert!(message("--only law-sockets --case nosuch").contains("loopback, quiet"));
        assert!(message("--only law-sockets,idle --case loopback").contains("--only"));
        assert!(message("--case loopback").contains("law-sockets"));
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
