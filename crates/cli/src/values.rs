//! Parsers of values on the command line: addresses, places, rates, times, shares.

mod named;
mod quantity;

pub(crate) use farhaul_transfer::Location;
pub(crate) use farhaul_transfer::internal::{HostPort, OriginalPlace, Scheme, SshPlace, What};
pub(crate) use named::{Named, location, named};
pub(crate) use quantity::{seconds, share, some_rate, some_time};
