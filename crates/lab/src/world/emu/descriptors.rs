//! How many open files a run takes: namespaces, devices and sockets are some, and few are allowed unless more are asked for.

use std::collections::BTreeSet;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::scenario::flow::{FlowSpec, Protocol};
use crate::scenario::setup::Setup;

/// A host's: its namespace and its device.
const HOST: u64 = 2;
/// What else there is: the namespace of processes, the terminal, signals, results, and what is open for a moment.
const OTHERS: u64 = 64;

/// A flow's, at both ends.
fn of_flow(flow: &FlowSpec) -> u64 {
    match flow.protocol {
        // A socket at each end, and what its thread waits with (epoll, eventfd).
        Protocol::Udt(_) => 6,
        // The listener and the two ends of a connection.
        Protocol::Tcp(_) => 3,
        // What each of two programs prints and complains about.
        Protocol::Libudt => 4,
        Protocol::Cross(..) => 2,
    }
}

/// How many a run takes at most.
fn needed(setup: &Setup) -> u64 {
    let hosts: BTreeSet<usize> = setup.topology.places.iter().flat_map(|&(from, to)| [from, to]).collect();
    HOST * hosts.len() as u64 + setup.flows.iter().map(of_flow).sum::<u64>() + OTHERS
}

/// Why a run cannot have as many as it takes.
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

/// Lets this program have as many as it is allowed.
pub(super) fn allow() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // Everybody may ask for that; who does not get it hears of it from the first call that lacks one.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}
