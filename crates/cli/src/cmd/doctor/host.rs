//! The findings about this machine, in the order of a packet's path: socket, processor, interface, firewall, settings.

use super::examined::Examined;
use super::finding::Finding;
use super::{buffers, clock, firewall, interface, keys, processor, system};

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
    keys::examine(examined.key, examined.command).into_iter().for_each(&mut report);
}
