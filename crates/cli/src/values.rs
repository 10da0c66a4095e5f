//! Parsers of values on the command line: addresses, places, rates, times, shares.

mod address;
mod original;
mod quantity;

pub(crate) use address::{HostPort, Location, Place, SshPlace, percent};
pub(crate) use original::{OriginalPlace, Scheme, What};
pub(crate) use quantity::{seconds, share, some_rate, some_time};
