//! Networks of hosts and links.

pub mod dumbbell;
pub mod graph;
pub mod path;
