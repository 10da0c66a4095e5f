//! Numbers that the kernel gives in files.

use std::fs;
use std::str::FromStr;

/// The number in a file of the kernel. `None` if there is none.
pub(super) fn number_in<N: FromStr>(path: &str) -> Option<N> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// A counter of a protocol, from the text of `/proc/net/snmp`. The first line of the protocol has the names.
pub(super) fn counter(snmp: &str, protocol: &str, name: &str) -> Option<u64> {
    let mut rows = snmp.lines().filter_map(|line| line.strip_prefix(protocol)?.strip_prefix(": "));
    let column = rows.next()?.split_whitespace().position(|title| title == name)?;
    rows.next()?.split_whitespace().nth(column)?.parse().ok()
}
