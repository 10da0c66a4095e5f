//! Damaged packets: those that UDP's checksum catches count as lost, those that it does not must do no harm beyond
//! their own bytes.

use farhaul_netem::PathSpec;
use farhaul_sim::Plan;
use farhaul_units::{Duration, Rng};

use crate::scenario::{exchanges_arrive_whole, pair, random_loss, small_buffers, some_path};

fn damaging(rng: &mut Rng) -> PathSpec {
    PathSpec { corrupt: 0.05 * rng.unit(), ..some_path(rng) }
}

#[test]
fn streams_arrive_whole_when_the_checksum_catches_damage() {
    exchanges_arrive_whole(3_000..3_080, damaging);
}

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
        let plan = Plan::exchange(1 << 20);
        let mut run = pair(seed, small_buffers).path(path).caller(plan).listener(plan).start();
        run.deliver_damaged(true);
        run.run_for(Duration::from_secs(20));
    }
}
