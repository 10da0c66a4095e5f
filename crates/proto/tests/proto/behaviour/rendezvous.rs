//! Two sides that call each other at about the same time.

use farhaul_netem::PathSpec;
use farhaul_proto::udt::ConnectOptions;
use farhaul_proto::{ConnectionLost, Endpoint};
use farhaul_sim::topology::path::{CALLER, LISTENER, Pair, address};
use farhaul_sim::{Simulation, Workload};
use farhaul_units::Duration;

use crate::behaviour::scenario::{LIMIT, clean_path, endpoint, random_loss, small_buffers};

const LENGTH: u64 = 300_000;

fn meet(run: &mut Simulation<Endpoint>, host: usize) {
    let options = ConnectOptions { rendezvous: true, ..ConnectOptions::default() };
    run.command(host, |now, endpoint, traffic| {
        let id = endpoint.connect_with(now, address(1 - host), options).expect("the endpoint has room");
        traffic.adopt(id);
    });
}

/// Both call, the second `apart` after the first, and exchange data.
fn rendezvous(seed: u64, apart: Duration, path: PathSpec) -> Simulation<Endpoint> {
    let endpoints = [0, 1].map(|side| endpoint(2 * seed + side, small_buffers()));
    let [left, right] = endpoints;
    let workload = Workload::exchange(LENGTH);
    let mut run = Pair::new(left, right).path(path).calls([]).caller(workload).listener(workload).seed(seed).start();
    meet(&mut run, CALLER);
    run.run_for(apart);
    meet(&mut run, LISTENER);
    run.run_until_done(LIMIT);
    run
}

fn assert_whole(run: &Simulation<Endpoint>, what: &str) {
    for host in [CALLER, LISTENER] {
        assert_eq!(run.flows(host).len(), 1, "{what}: one connection each");
    }
    assert_eq!([run.missing(CALLER, LISTENER), run.missing(LISTENER, CALLER)].concat(), [""; 0], "{what}");
}

#[test]
fn both_sides_may_call_at_any_time_within_the_timeout() {
    for (seed, apart) in [0, 1, 5, 10, 19, 20, 21, 100, 900, 5_000, 25_000].into_iter().enumerate() {
        let run = rendezvous(seed as u64, Duration::from_millis(apart), clean_path());
        assert_whole(&run, &format!("{apart} ms apart"));
    }
}

#[test]
fn a_rendezvous_survives_loss() {
    for seed in 100..300 {
        let path = PathSpec { loss: random_loss(0.2), ..clean_path() };
        let run = rendezvous(seed, Duration::from_millis(seed % 7 * 10), path);
        assert_whole(&run, &format!("seed {seed}"));
    }
}

#[test]
fn a_rendezvous_without_a_peer_ends_after_its_timeout() {
    let [left, right] = [0, 1].map(|side| endpoint(side, small_buffers()));
    let mut run = Pair::new(left, right).path(clean_path()).calls([]).start();
    meet(&mut run, CALLER);
    run.run_for(Duration::from_secs(40));
    let (at, reason) = run.flows(CALLER)[0].closed.expect("it is over");
    assert_eq!((at.as_micros() / 1_000_000, reason), (30, ConnectionLost::ConnectTimeout(Duration::from_secs(30))));
}
