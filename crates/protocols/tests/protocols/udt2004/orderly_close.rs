//! Orderly ends over a long path that loses packets.

use farhaul_netem::{LossSpec, PathSpec};
use farhaul_proto::ConnectionLost;
use farhaul_sim::topology::path::{CALLER, LISTENER};
use farhaul_sim::{Flow, Workload};
use farhaul_units::Duration;

use crate::udt2004::scenario::{pair, path, small_buffers};

/// Connections of each kind. Consecutive ones would share an endpoint, but two ports can have only one connection.
const SEEDS: u64 = 1_500;

/// An RTT of 250 ms and a loss of 5 % in each direction.
fn long_lossy_path() -> PathSpec {
    PathSpec { loss: Some(LossSpec::Bernoulli(0.05)), ..path(100, 250, 2_000) }
}

/// Why the end is not clean for this side, if it is not.
fn fault(flow: &Flow) -> Option<String> {
    let closed = flow.closed.map(|(_, reason)| reason);
    let clean = match closed {
        None => flow.finished_at.is_some(),
        Some(ConnectionLost::ClosedByPeer) => flow.received().ended || flow.finished_at.is_some(),
        Some(_) => false,
    };
    (!clean).then(|| format!("{closed:?}"))
}

/// Checks that at least 999 of a thousand established connections end cleanly for both sides.
fn assert_clean(caller: Workload, listener: Workload) {
    let (mut connections, mut faults) = (0, Vec::new());
    for seed in 0..SEEDS {
        let mut run = pair(seed, small_buffers).path(long_lossy_path()).caller(caller).listener(listener).start();
        run.run_for(Duration::from_secs(60));
        let [caller, listener] = [CALLER, LISTENER].map(|host| run.flows(host).first());
        if caller.is_none_or(|flow| flow.connected_at.is_none()) {
            continue;
        }
        connections += 1;
        let of_run: Vec<_> = [caller, listener].into_iter().flatten().filter_map(fault).collect();
        if !of_run.is_empty() {
            faults.push(format!("seed {seed}: {of_run:?}"));
        }
    }
    assert!(connections > 1_000, "{connections} connections are too few to judge by");
    assert!(faults.len() * 1_000 <= connections, "{} of {connections}: {faults:#?}", faults.len());
}

#[test]
fn the_end_of_a_stream_is_clean_for_both_sides_of_a_long_lossy_path() {
    assert_clean(Workload::send(20_000), Workload::default());
}

#[test]
fn a_question_and_its_answer_end_clean_for_both_sides_of_a_long_lossy_path() {
    assert_clean(Workload::exchange(5_000), Workload::exchange(5_000).kept_open());
}

#[test]
fn an_exchange_ends_clean_for_both_sides_of_a_long_lossy_path() {
    assert_clean(Workload::exchange(20_000), Workload::exchange(20_000));
}
