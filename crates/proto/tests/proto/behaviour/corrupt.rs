//! Damaged packets. If UDP's checksum detects the damage, they count as lost. Otherwise they may harm only their own
//! bytes.

use farhaul_netem::PathSpec;
use farhaul_proto::Endpoint;
use farhaul_sim::topology::path::{CALLER, LISTENER};
use farhaul_sim::{Simulation, Workload};
use farhaul_units::{Duration, Rng};

use crate::behaviour::scenario::{exchanges_arrive_whole, pair, random_loss, small_buffers, some_path};

fn damaging(rng: &mut Rng) -> PathSpec {
    PathSpec { corrupt: 0.05 * rng.unit(), ..some_path(rng) }
}

// Slow: 80 seeds of a bad path, with 4 MiB each way.
#[test]
fn streams_arrive_whole_when_the_checksum_catches_damage() {
    exchanges_arrive_whole(3_000..3_080, damaging);
}

// Slow: 140 seeds of a bad path, with 4 MiB each way.
#[test]
fn streams_arrive_whole_when_everything_goes_wrong_at_once() {
    exchanges_arrive_whole(3_100..3_240, |rng| PathSpec {
        loss: random_loss(0.05 * rng.unit()),
        duplicate: 0.05 * rng.unit(),
        ..damaging(rng)
    });
}

#[test]
fn damage_that_no_checksum_catches_neither_panics_nor_hangs() {
    for seed in 3_300..3_450 {
        let path = PathSpec { corrupt: 0.2, ..some_path(&mut Rng::new(seed)) };
        let workload = Workload::exchange(1 << 20);
        let mut run = pair(seed, small_buffers).path(path).caller(workload).listener(workload).start();
        run.deliver_damaged(true);
        let arrived = |run: &Simulation<Endpoint>, host| run.flows(host).iter().map(|flow| flow.received().bytes).sum();
        run.run_for(Duration::from_secs(20));
        let before: [u64; 2] = [CALLER, LISTENER].map(|host| arrived(&run, host));
        // A forged acknowledgement makes the sender drop packets that are still needed. The receiver gives up after a
        // minute.
        run.run_for(Duration::from_secs(90));
        for host in [CALLER, LISTENER] {
            let over = run.flows(host).iter().all(|flow| flow.is_done() || flow.closed.is_some());
            let goes_on = arrived(&run, host) > before[host];
            assert!(over || goes_on, "seed {seed}, host {host}: neither over nor going on");
        }
    }
}
