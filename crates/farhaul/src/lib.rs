//! Reliable bulk data transfer over UDP for long fat networks.
#![allow(dead_code, unused_imports, reason = "the public interface follows")]

mod canceller;
mod clock;
mod driver;
mod error;

pub use canceller::Canceller;
pub use error::Error;
