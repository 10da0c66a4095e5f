//! Lost packets are retransmitted until they arrive.

use farhaul_netem::PathSpec;
use farhaul_sim::Workload;
use farhaul_sim::topology::path::{CALLER, LISTENER};
use farhaul_units::Rng;

use crate::behaviour::scenario::{
    LIMIT, clean_path, exchanges_arrive_whole, pair, random_loss, small_buffers, some_path,
};

fn lossy(worst: f64) -> impl Fn(&mut Rng) -> PathSpec {
    move |rng| PathSpec { loss: random_loss(worst * rng.unit()), ..some_path(rng) }
}

// Slow: 120 seeds of a bad path, with 4 MiB each way.
#[test]
fn streams_arrive_whole_with_light_loss() {
    exchanges_arrive_whole(0..120, lossy(0.01));
}

// Slow: 120 seeds of a bad path, with 4 MiB each way.
#[test]
fn streams_arrive_whole_with_loss_up_to_ten_percent() {
    exchanges_arrive_whole(200..320, lossy(0.10));
}

#[test]
fn streams_arrive_whole_with_ten_percent_loss() {
    exchanges_arrive_whole(400..460, |rng| PathSpec { loss: random_loss(0.10), ..some_path(rng) });
}

#[test]
fn a_lost_tail_is_noticed_by_its_sender() {
    // So few packets that none after the lost ones reveals the gap.
    for seed in 0..100 {
        let path = PathSpec { loss: random_loss(0.4), ..clean_path() };
        let mut run = pair(seed, small_buffers).path(path).caller(Workload::send(5_000)).start();
        run.run_until_done(LIMIT);
        let caller = &run.flows(CALLER)[0];
        // With such loss, connection setup may exceed its five seconds.
        if caller.connected_at.is_some() {
            assert_eq!(run.missing(CALLER, LISTENER), [""; 0], "seed {seed}");
        }
    }
}
