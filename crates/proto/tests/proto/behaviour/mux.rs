//! Many connections on one address. Each gets its own data and a fair share of the path.

use farhaul_netem::PathSpec;
use farhaul_sim::Workload;
use farhaul_sim::topology::path::{CALLER, LISTENER};

use crate::behaviour::scenario::{LIMIT, at_millis, clean_path, pair, random_loss, small_buffers};

#[test]
fn a_hundred_connections_keep_their_data_apart() {
    let workload = Workload::exchange(200_000);
    let calls = (0..100).map(|call| at_millis(call / 10));
    let path = PathSpec { loss: random_loss(0.01), ..clean_path() };
    let mut run = pair(1, small_buffers).path(path).calls(calls).caller(workload).listener(workload).start();
    run.run_until_done(LIMIT);
    assert_eq!((run.flows(CALLER).len(), run.flows(LISTENER).len()), (100, 100));
    assert_eq!([run.missing(CALLER, LISTENER), run.missing(LISTENER, CALLER)].concat(), [""; 0]);
}

#[test]
fn connections_that_come_and_go_do_not_disturb_one_that_stays() {
    let calls = (0..50).map(|call| at_millis(100 * call));
    let mut run = pair(2, small_buffers).path(clean_path()).calls(calls).caller(Workload::send(1_000_000)).start();
    run.run_until_done(LIMIT);
    assert_eq!(run.flows(LISTENER).len(), 50);
    assert_eq!(run.missing(CALLER, LISTENER), [""; 0]);
}
