//! The table of what must be reached: rows, and the measurements that they are judged by.

mod completion;
mod emulator;
mod fairness;
mod idle;
mod loopback;
mod simulator;
mod wan;

use super::quantity::Quantity;
use super::requirement::Requirement;
use super::samples::Samples;
use super::tools::Tools;

/// What must hold of some quantities.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) name: &'static str,
    /// What is asked.
    pub(super) what: &'static str,
    /// Which figures of the measurement belong to it.
    pub(super) shows: &'static [Quantity],
    pub(super) must: &'static [Requirement],
    pub(super) by: &'static Measurement,
}

/// Something that is done several times, and that one row or more are judged by.
#[derive(Debug)]
pub(super) struct Measurement {
    pub(super) name: &'static str,
    pub(super) how: &'static str,
    /// How often, unless told otherwise: enough for a median that one disturbed run does not move, where time allows.
    pub(super) runs: usize,
    /// Roughly, of one run in one setting.
    pub(super) seconds: usize,
    /// Once in each setting of the socket buffers.
    pub(super) in_settings: bool,
    /// One run: every program once, in turn, so that a disturbance of the machine meets all of them.
    pub(super) measure: fn(&Tools, &Run, &mut Samples),
}

/// One run of a measurement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    /// From 0.
    pub(super) index: usize,
    /// As short as shows that the procedure works.
    pub(super) quick: bool,
}

impl Run {
    /// Either length of time or amount.
    pub(super) const fn pick(&self, full: u64, quick: u64) -> u64 {
        if self.quick { quick } else { full }
    }

    /// The same things in the order of this run: every other one is reversed, so that no program is always the first.
    pub(super) fn in_turn<T: Copy>(&self, of: &[T]) -> Vec<T> {
        if self.index.is_multiple_of(2) { of.to_vec() } else { of.iter().rev().copied().collect() }
    }
}

/// Every row, in the order of measuring.
pub(super) const ROWS: &[Row] = &[
    simulator::ROW,
    emulator::ROW,
    loopback::ROW,
    idle::ROW,
    completion::ROW,
    wan::CLEAN,
    wan::CPU,
    wan::MEMORY,
    wan::LOSSY,
    fairness::ROW,
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Without runs in several settings counted twice it would look shorter than it is.
    const SETTINGS: usize = 2;
    /// Nobody repeats what takes longer.
    const MOST_SECONDS: usize = 25 * 60;

    #[test]
    fn all_of_it_takes_less_than_half_an_hour() {
        let mut measurements: Vec<&Measurement> = ROWS.iter().map(|row| row.by).collect();
        measurements.dedup_by(|one, other| std::ptr::eq(*one, *other));
        let seconds = |by: &&Measurement| by.runs * by.seconds * if by.in_settings { SETTINGS } else { 1 };
        let total: usize = measurements.iter().map(seconds).sum();
        assert!(total <= MOST_SECONDS, "{total} s");
    }

    #[test]
    fn what_must_hold_is_shown() {
        for row in ROWS {
            for requirement in row.must {
                assert!(row.shows.contains(&requirement.quantity), "{}: {requirement}", row.name);
            }
        }
    }

    #[test]
    fn every_other_run_goes_the_other_way() {
        let order = |index| Run { index, quick: false }.in_turn(&[1, 2, 3]);
        assert_eq!((order(0), order(1), order(2)), (vec![1, 2, 3], vec![3, 2, 1], vec![1, 2, 3]));
    }
}
