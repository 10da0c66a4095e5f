//! The price of a copy, of a file and of a start, beside scp and an rsync daemon.

use super::{Measurement, Row, Run};
use crate::bench::quantity::Quantity;
use crate::bench::requirement::{Bound, Requirement};
use crate::bench::samples::{Measured, Samples};
use crate::bench::tools::{Copier, Source, Tools};

const LARGE: &str = "1 GiB over loopback";
const FIRST: &str = "10 000 files of 4 KiB";
const AGAIN: &str = "10 000 files of 4 KiB, nothing changed";
/// A copy that finds nothing changed takes a few ticks of the clock.
const AGAIN_COPIES: u16 = 10;
const START: &str = "1 kB over SSH, 100 ms";
/// Stands for every program in a note on a whole case.
const ALL: &str = "all programs";
const OURS: &str = Copier::Farhaul.name();
const PLAIN: &str = Copier::FarhaulPlain.name();
const SCP: &str = Copier::Scp.name();
const RSYNC: &str = Copier::Rsync.name();

pub(super) const COPY: Row = Row {
    name: "price-copy",
    what: "processor time of both ends of a copy of 1 GiB over loopback, beside scp and an rsync daemon",
    shows: &[Quantity::CpuPerGb, Quantity::Completion],
    must: &[
        require(LARGE, OURS, Quantity::CpuPerGb, Bound::MostTimes(1.0, SCP)),
        require(LARGE, PLAIN, Quantity::CpuPerGb, Bound::MostTimes(1.3, RSYNC)),
    ],
    by: &LARGE_COPIES,
};

pub(super) const FILES: Row = Row {
    name: "price-files",
    what: "processor time a file and time of a tree of small files over loopback, first and then unchanged, beside an rsync daemon",
    shows: &[Quantity::CpuPerFile, Quantity::Completion],
    must: &[
        require(FIRST, PLAIN, Quantity::CpuPerFile, Bound::MostTimes(1.3, RSYNC)),
        require(FIRST, PLAIN, Quantity::Completion, Bound::MostTimes(1.0, RSYNC)),
        require(AGAIN, PLAIN, Quantity::CpuPerFile, Bound::MostTimes(1.3, RSYNC)),
        require(AGAIN, PLAIN, Quantity::Completion, Bound::MostTimes(1.0, RSYNC)),
    ],
    by: &SMALL_FILES,
};

pub(super) const OVER_SSH: Row = Row {
    name: "price-start",
    what: "time and processor time of both ends of a copy of 1 kB over SSH, 1 Gbit/s, 100 ms, beside scp",
    shows: &[Quantity::Completion, Quantity::CpuTime],
    must: &[require(START, "farhaul", Quantity::Completion, Bound::MostPlus(0.1, "scp"))],
    by: &STARTS,
};

static LARGE_COPIES: Measurement = Measurement {
    name: "price-copy",
    how: "as root from memory to memory in a network namespace with packets of 1500 bytes: farhaul copy to farhaul serve, scp -c \
        aes128-gcm@openssh.com to a sshd of its own, rsync to a daemon of its own. Processor time of the client and of the server, \
        with their children, in ticks of 10 ms",
    runs: 3,
    seconds: 25,
    in_settings: false,
    measure: measure_large,
};

static SMALL_FILES: Measurement = Measurement {
    name: "price-files",
    how: "as root from memory to memory in a network namespace with packets of 1500 bytes: farhaul copy -r to farhaul serve, rsync \
        -rpt to a daemon of its own. Then the same again, the mean of ten copies. Processor time of the client and of the server, with their children, \
        in ticks of 10 ms",
    runs: 5,
    seconds: 16,
    in_settings: false,
    measure: measure_files,
};

static STARTS: Measurement = Measurement {
    name: "price-start",
    how: "farhaul copy and scp through farhaul emulate as root, with a sshd of its own, after a login and a copy that warm the \
        caches. Processor time of the client and of the sshd, with their children, in ticks of 10 ms",
    runs: 5,
    seconds: 16,
    in_settings: false,
    measure: measure_starts,
};

const fn require(case: &'static str, program: &'static str, quantity: Quantity, bound: Bound) -> Requirement {
    Requirement { case, program, quantity, bound }
}

/// The names of all cases.
pub(super) fn cases() -> impl Iterator<Item = &'static str> {
    [LARGE, FIRST, AGAIN, START].into_iter()
}

/// Copies of one source by several programs.
struct Copies<'a> {
    /// In a row, each with the number of copies whose mean counts.
    cases: &'a [(&'static str, u16)],
    copiers: &'a [Copier],
    files: u64,
    /// Bytes of a file.
    size: u64,
    /// The quantity that takes the processor time, and in how many parts.
    per: (Quantity, f64),
}

fn measure_large(tools: &Tools, run: &Run, samples: &mut Samples) {
    let size = run.pick(1 << 30, 1 << 26);
    let copiers = &[Copier::Farhaul, Copier::Scp, Copier::FarhaulPlain, Copier::Rsync];
    let per = (Quantity::CpuPerGb, size as f64 / 1e9);
    Copies { cases: &[(LARGE, 1)], copiers, files: 1, size, per }.measure(tools, run, samples);
}

fn measure_files(tools: &Tools, run: &Run, samples: &mut Samples) {
    let files = run.pick(10_000, 1_000);
    let copiers = &[Copier::FarhaulPlain, Copier::Rsync, Copier::Farhaul];
    let per = (Quantity::CpuPerFile, files as f64);
    Copies { cases: &[(FIRST, 1), (AGAIN, AGAIN_COPIES)], copiers, files, size: 4_096, per }
        .measure(tools, run, samples);
}

impl Copies<'_> {
    fn measure(&self, tools: &Tools, run: &Run, samples: &mut Samples) {
        let (cases, rounds): (Vec<&str>, Vec<u16>) = self.cases.iter().copied().unzip();
        if !cases.iter().any(|case| case.contains(run.case)) {
            return;
        }
        let source = match Source::new(self.files, self.size) {
            Ok(source) => source,
            Err(error) => return samples.add(cases[0], ALL, Err(error)),
        };
        let (quantity, parts) = self.per;
        for copier in run.in_turn(self.copiers) {
            match tools.copies(copier, &source, &rounds) {
                Ok(copied) => {
                    for (case, copied) in cases.iter().zip(copied) {
                        let figures = [(quantity, copied.processor / parts), (Quantity::Completion, copied.wall)];
                        samples.add(case, copier.name(), Ok(Measured::of(figures)));
                    }
                }
                Err(error) => samples.add(cases[0], copier.name(), Err(error)),
            }
        }
    }
}

fn measure_starts(tools: &Tools, run: &Run, samples: &mut Samples) {
    if !START.contains(run.case) {
        return;
    }
    let programs = run.in_turn(&["farhaul", "scp"]);
    match tools.starts_over_ssh(programs[0] == "scp") {
        Ok(prices) => {
            programs.into_iter().zip(prices).for_each(|(program, price)| samples.add(START, program, Ok(price)))
        }
        Err(error) => samples.add(START, "farhaul", Err(error)),
    }
}
