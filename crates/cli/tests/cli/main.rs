//! The program as scripts see it: exit codes, the error line, JSON records; real processes on loopback.
#![expect(clippy::unwrap_used, reason = "in tests a failure is a panic")]

mod between;
mod copies;
mod crowds;
mod disks;
mod doctor;
mod emulate;
mod failures;
mod faults;
mod figures;
mod information;
mod integrity;
mod keys;
mod lab;
mod limits;
mod measured;
mod originals;
mod partings;
mod permissions;
mod pipes;
mod places;
mod process;
mod protocols;
mod records;
mod refusals;
mod requirement;
mod restarts;
mod schema;
mod secured;
mod settings;
mod standard;
mod standard_streams;
mod streams;
mod terminals;
mod trees;
