//! The example as its user has it: as a program, and in virtual time.

mod conformance;
mod program;
