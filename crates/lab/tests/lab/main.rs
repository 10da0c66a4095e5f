//! The shipped figures. `tests/descriptors.rs` is a program of its own, because limits apply to a whole program.

mod draws;
mod figures;
