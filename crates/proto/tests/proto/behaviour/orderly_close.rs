//! Orderly ends over a long path that loses packets.

use farhaul_netem::PathSpec;
use farhaul_proto::ConnectionLost;
use farhaul_sim::topology::path::{CALLER, LISTENER};
use farhaul_sim::{Flow, Workload};
use farhaul_units::{Duration, Rate};

use crate::behaviour::scenario::{at_millis, pair, random_loss, small_buffers};

/// Connections of a run, and runs: 5000 ends of each kind.
const CALLS: u64 = 50;
const SEEDS: u64 = 100;

/// An RTT of 250 ms and a loss of 5 % in each direction.
fn long_lossy_path() -> PathSpec {
    let delay = Duration::from_millis(125);
    let rate = Some(Rate::from_megabits_per_second(100));
    PathSpec { rate, delay, loss: random_loss(0.05), ..PathSpec::default() }
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
        let calls = (0..CALLS).map(|call| at_millis(100 * call));
        let mut run =
            pair(seed, small_buffers).path(long_lossy_path()).calls(calls).caller(caller).listener(listener).start();
        run.run_for(Duration::from_secs(90));
        for host in [CALLER, LISTENER] {
            let flows = run.flows(host).iter().filter(|flow| flow.connected_at.is_some());
            connections += usize::from(host == CALLER) * flows.clone().count();
            faults.extend(flows.filter_map(fault).map(|fault| format!("seed {seed}, host {host}: {fault}")));
        }
    }
    assert!(connections > 4_000, "{connections} connections are too few to judge by");
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
