//! The table of requirements: rows, and the measurements behind them.

mod completion;
mod emulator;
mod encrypted;
mod fairness;
mod host_cost;
mod idle;
mod law_cost;
mod law_sockets;
mod loopback;
mod own_losses;
mod price;
mod price_copies;
mod simulator;
mod ssh;
mod wake_ups;
mod wan;

use super::quantity::Quantity;
use super::requirement::Requirement;
use super::samples::Samples;
use super::tools::Tools;

pub(super) use price::path as price_path;

/// Requirements on some quantities of a measurement.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) name: &'static str,
    /// The question in words.
    pub(super) what: &'static str,
    /// The quantities shown.
    pub(super) shows: &'static [Quantity],
    pub(super) must: &'static [Requirement],
    pub(super) by: &'static Measurement,
}

/// A measurement that is repeated and judged by one row or more.
#[derive(Debug)]
pub(super) struct Measurement {
    pub(super) name: &'static str,
    pub(super) how: &'static str,
    /// Number of runs, unless overridden. If time permits, enough for a median that one disturbed run does not change.
    pub(super) runs: usize,
    /// Approximate duration of one run in one setting.
    pub(super) seconds: usize,
    /// Whether to repeat it in each setting of the socket buffers.
    pub(super) in_settings: bool,
    /// One run: every program once, in turn, so that a disturbance of the machine affects all of them.
    pub(super) measure: fn(&Tools, &Run, &mut Samples),
}

/// One run of a measurement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run<'a> {
    /// Number of the run, from 0.
    pub(super) index: usize,
    /// As short as possible, to test the procedure.
    pub(super) quick: bool,
    /// Text in the names of the wanted cases, for rows whose cases can be chosen. Empty: all cases.
    pub(super) case: &'a str,
}

impl Run<'_> {
    /// The full or the quick value.
    pub(super) const fn pick(&self, full: u64, quick: u64) -> u64 {
        if self.quick { quick } else { full }
    }

    /// The items in the order of this run. Every other run reverses it, so that no program is always the first.
    pub(super) fn in_turn<T: Copy>(&self, of: &[T]) -> Vec<T> {
        if self.index.is_multiple_of(2) { of.to_vec() } else { of.iter().rev().copied().collect() }
    }
}

/// Every row, in the order of measuring.
pub(super) const ROWS: &[Row] = &[
    simulator::ROW,
    emulator::ROW,
    loopback::ROW,
    encrypted::OVER_LOOPBACK,
    idle::ROW,
    encrypted::IDLE,
    completion::ROW,
    wan::CLEAN,
    wan::CPU,
    wan::MEMORY,
    wan::LOSSY,
    encrypted::OVER_WAN,
    encrypted::UNDER_FLOOD,
    host_cost::ROW,
    wake_ups::ROW,
    ssh::ROW,
    fairness::ROW,
];

/// Rows that take long: hours for the laws, minutes for the price of a packet, a file, a start and a simulated hop. They are measured
/// only when `--only` names them, and `--case` chooses some of their cases.
pub(super) const ON_REQUEST: &[Row] = &[
    price::OVER_PATH,
    price::OVER_VETH,
    price_copies::COPY,
    price_copies::FILES,
    price_copies::OVER_SSH,
    own_losses::ROW,
    simulator::FLOWS,
    law_sockets::ROW,
    law_cost::ROW,
];

/// The names of all cases that `--case` can choose.
pub(super) fn cases() -> impl Iterator<Item = &'static str> {
    law_sockets::cases()
        .chain(law_cost::cases())
        .chain(price::cases())
        .chain(price_copies::cases())
        .chain(own_losses::cases())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Settings in which such measurements run, each of which counts.
    const SETTINGS: usize = 2;
    /// Longest acceptable time, beyond which nobody would repeat the benchmark.
    const MOST_SECONDS: usize = 33 * 60;

    #[test]
    fn all_rows_take_about_half_an_hour() {
        let mut measurements: Vec<&Measurement> = ROWS.iter().map(|row| row.by).collect();
        measurements.dedup_by(|one, other| std::ptr::eq(*one, *other));
        let seconds = |by: &&Measurement| by.runs * by.seconds * if by.in_settings { SETTINGS } else { 1 };
        let total: usize = measurements.iter().map(seconds).sum();
        assert!(total <= MOST_SECONDS, "{total} s");
    }

    #[test]
    fn every_required_quantity_is_shown() {
        for row in ROWS.iter().chain(ON_REQUEST) {
            for requirement in row.must {
                assert!(row.shows.contains(&requirement.quantity), "{}: {requirement}", row.name);
            }
        }
    }

    #[test]
    fn every_other_run_reverses_the_order() {
        let order = |index| Run { index, quick: false, case: "" }.in_turn(&[1, 2, 3]);
        assert_eq!((order(0), order(1), order(2)), (vec![1, 2, 3], vec![3, 2, 1], vec![1, 2, 3]));
    }
}
