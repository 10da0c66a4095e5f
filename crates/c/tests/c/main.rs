//! The C interface from C: the header is current, and the examples run under sanitizers.
#![expect(clippy::unwrap_used, reason = "in tests a failure is a panic")]

mod examples;
mod header;
