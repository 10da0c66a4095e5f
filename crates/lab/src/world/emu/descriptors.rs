//! The number of open files that a run needs for namespaces, devices and sockets. The default limit is low.

use std::collections::BTreeSet;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::scenario::flow::{FlowSpec, Protocol};
use crate::scenario::setup::Setup;

/// The open files of a host: its namespace and its device.
const HOST: u64 = 2;
/// All other open files: the namespace of processes, the terminal, signals, results, and short-lived ones.
const OTHERS: u64 = 64;

/// The open files of a flow, at both ends.
fn of_flow(flow: &FlowSpec) -> u64 {
    match &flow.protocol {
        // A socket at each end, what its thread waits with (epoll, eventfd), and what callers that drive need (eventfd, timerfd).
        // Control channels add a listener at each end and the two ends of a connection.
        Protocol::Bulk(bulk) => 10 + if bulk.protocol.entry().needs_control_channel { 4 } else { 0 },
        // The listener and the two ends of a connection.
        Protocol::Tcp(_) => 3,
        // The output and the errors of two programs.
        Protocol::Libudt => 4,
        // The same at both ends as a protocol of ours.
        Protocol::Measured(_) => 10,
        Protocol::Cross(..) => 2,
    }
}

/// The most open files of a run.
fn needed(setup: &Setup) -> u64 {
    let hosts: BTreeSet<usize> = setup.topology.places.iter().flat_map(|&(from, to)| [from, to]).collect();
    HOST * hosts.len() as u64 + setup.flows.iter().map(of_flow).sum::<u64>() + OTHERS
}

/// The reason why a run cannot have enough open files.
pub(super) fn refusal(setup: &Setup) -> Option<String> {
    let (needed, allowed) = (needed(setup), getrlimit(Resource::Nofile).maximum?);
    (needed > allowed).then(|| {
        format!(
            "{} flows need {needed} open files, and {allowed} are allowed: \
             begin with `ulimit -n {needed}`, as root, or take fewer flows or --world sim",
            setup.flows.len()
        )
    })
}

/// Raises this program's limit as far as it may.
pub(super) fn allow() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // Everybody may ask for this. After a refusal, the first call that lacks a file reports it.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}
