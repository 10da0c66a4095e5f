//! The findings about this machine, in the order of a packet's way: socket, processor, interface, firewall, settings.

use std::fs;
use std::str::FromStr;

use super::finding::Finding;
use super::{Examined, buffers, clock, firewall, interface, keys, processor, system};

/// Examines this machine, and reports each finding as soon as it is made.
pub(super) fn examine(examined: &Examined<'_>, mut report: impl FnMut(Finding)) {
    buffers::examine().into_iter().for_each(&mut report);
    report(system::offload());
    report(clock::examine());
    processor::examine(examined.cipher.as_deref()).into_iter().for_each(&mut report);
    report(system::open_files());
    report(system::ipv6());
    interface::examine(examined.packet).into_iter().for_each(&mut report);
    report(firewall::examine());
    report(system::networks(&examined.context.networks));
    keys::examine(examined.key).into_iter().for_each(&mut report);
}

/// The number in a file of the system. `None` if there is none.
pub(super) fn number_in<N: FromStr>(path: &str) -> Option<N> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}
