//! Numbers that the kernel gives in files.

use std::fs;
use std::str::FromStr;

/// The number in a file of the kernel. `None` if there is none.
pub(super) fn number_in<N: FromStr>(path: &str) -> Option<N> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}
