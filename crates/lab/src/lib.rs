//! Experiments as data: a scenario file describes the experiment. The lab runs it and draws it beside the paper's
//! result.
//!
//! | to change … | open |
//! | --- | --- |
//! | the record of a run | `record.rs` |
//! | the keys of metrics and series | `metric.rs` |
//! | the language of expressions | `expression.rs`, `expression/*.rs` |
//! | means and intervals over seeds | `aggregate.rs` |
//! | enums with a row for each variant | `listed_enum.rs` |
//! | scores | `score.rs` |
//! | the format of published numbers | `paper.rs` |
//! | the format of scenarios | `scenario.rs`, `scenario/*.rs` |
//! | numbers and units in scenarios, messages about mistakes | `scenario/reader.rs`, `scenario/reader/*.rs` |
//! | the names that a scenario may mention | `check.rs`, `names.rs`, `scenario/vocabulary.rs` |
//! | the worlds of runs | `world.rs` |
//! | the simulated agents of a protocol | `world/sim/build.rs` |
//! | the metrics and series | `run/metrics.rs`, `run/metrics/*.rs`, `run/series.rs` |
//! | the order and storage of runs | `sweep.rs`, `store.rs`, `folder.rs` |
//! | tables and CSV | `table.rs`, `table/csv.rs` |
//! | random paths for controllers | `arena.rs`, `arena/*.rs` |
//! | drawings and the page | `report.rs`, `report/*.rs` |
//! | the shipped figures and published numbers | `figures.rs` |
//! | the scores that shipped results miss | `misses.rs` |
#![forbid(unsafe_code)]

pub mod aggregate;
pub mod arena;
mod check;
pub mod error;
pub mod expression;
pub mod figures;
pub mod folder;
mod key;
mod listed_enum;
pub mod metric;
pub mod misses;
mod names;
pub mod paper;
pub mod record;
pub mod report;
pub mod run;
pub mod scenario;
pub mod score;
pub mod store;
pub mod sweep;
pub mod table;
#[cfg(test)]
mod testing;
mod unit;
pub mod world;

pub use check::check;
pub use error::{LabError, ScenarioError};
pub use figures::{Figure, FigureInfo, FigureResult};
pub use names::Names;
pub use paper::{Bound, Published};
pub use record::{AxisValue, Record, World};
pub use scenario::{Experiment, Job, Overrides, Scenario};
