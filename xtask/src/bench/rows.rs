//! The table of what must be reached: one row per measurement.

mod loopback;
mod wan;

use super::samples::{Requirement, Samples};
use super::tools::Tools;

/// One measurement with what must hold of it.
pub(super) struct Row {
    pub(super) name: &'static str,
    /// What is measured.
    pub(super) what: &'static str,
    /// How.
    pub(super) how: &'static str,
    /// One run: every program once, in turn, so that a disturbance of the machine meets all of them.
    pub(super) measure: fn(&Tools, &mut Samples),
    pub(super) must: &'static [Requirement],
}

/// Every row, the quickest first.
pub(super) const ROWS: &[Row] = &[loopback::ROW, wan::COMPLETION, wan::GOODPUT];
