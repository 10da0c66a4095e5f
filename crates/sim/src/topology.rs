//! Drawings of networks: which hosts there are and which links lie between them.

pub mod dumbbell;
pub mod graph;
pub mod path;
