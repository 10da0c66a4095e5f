//! Networks of hosts and links.

#[cfg(any(test, feature = "testing"))]
pub mod dumbbell;
pub mod graph;
#[cfg(any(test, feature = "testing"))]
pub mod path;
