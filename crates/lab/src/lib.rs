//! Experiments as data: a scenario file says what is to be run, the lab runs it and draws it beside what a paper found.
//!
//! | to change … | open |
//! | --- | --- |
//! | what one run says about itself | `record.rs` |
#![forbid(unsafe_code)]

pub mod record;

pub use record::{AxisValue, Record};
