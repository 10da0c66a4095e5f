//! The drop-in library with programs of libudt, beside the reference library.
#![expect(clippy::unwrap_used, reason = "in tests a failure is a panic")]

mod closing;
mod codes;
mod controller;
mod examples;
mod habits;
mod headers;
mod library;
mod peer;
mod symbols;
