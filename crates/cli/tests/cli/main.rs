//! The program as scripts see it: exit codes, the error line, JSON records; real processes on loopback.
#![expect(clippy::unwrap_used, reason = "in tests a failure is a panic")]

mod copies;
mod failures;
mod information;
mod limits;
mod process;
mod requirement;
mod streams;
