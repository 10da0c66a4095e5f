//! Experiments as data: a scenario file says what is to be run, the lab runs it and draws it beside what a paper found.
//!
//! | to change … | open |
//! | --- | --- |
//! | what one run says about itself | `record.rs` |
//! | the keys of metrics and series | `metric.rs` |
//! | what an expression can say, and what it means | `expression.rs`, `expression/*.rs` |
//! | means and intervals over seeds | `aggregate.rs` |
//! | when a score is met, and by how much | `score.rs` |
//! | how published numbers are written down | `paper.rs` |
//! | what a scenario can say | `scenario.rs`, `scenario/*.rs` |
//! | which names a scenario may mention | `check.rs`, `scenario/vocabulary.rs` |
//! | where runs take place | `world.rs` |
//! | what stands behind a protocol's name: simulated | `world/sim/build.rs` |
//! | what is measured | `run/metrics.rs`, `run/metrics/*.rs`, `run/series.rs` |
//! | how many runs are done, and kept | `sweep.rs`, `store.rs`, `folder.rs` |
//! | tables and CSV | `table.rs` |
//! | how results are drawn, and the page | `report.rs`, `report/*.rs` |
//! | the shipped figures, and what the papers report | `figures.rs` |
#![forbid(unsafe_code)]

pub mod aggregate;
mod check;
mod clock;
pub mod error;
pub mod expression;
pub mod figures;
pub mod folder;
mod key;
pub mod metric;
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
pub mod world;

pub use check::{Names, check};
pub use error::{LabError, ScenarioError};
pub use figures::{Bound, Figure, FigureInfo, FigureResult, Published};
pub use record::{AxisValue, Record};
pub use scenario::{Experiment, Job, Overrides, Scenario};
pub use world::World;
