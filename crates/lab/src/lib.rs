//! Experiments as data: a scenario file says what is to be run, the lab runs it and draws it beside what a paper found.
//!
//! | to change … | open |
//! | --- | --- |
//! | what one run says about itself | `record.rs` |
//! | what a scenario can say | `scenario.rs`, `scenario/*.rs` |
//! | the shipped figures, and what the papers report | `figures.rs` |
#![forbid(unsafe_code)]

mod clock;
pub mod error;
pub mod figures;
mod key;
pub mod record;
pub mod run;
pub mod scenario;
pub mod store;
pub mod sweep;

pub use error::{LabError, ScenarioError};
pub use figures::{Bound, FigureInfo, FigureResult, Published};
pub use record::{AxisValue, Record};
pub use scenario::{Job, Overrides, Plan, Scenario};
