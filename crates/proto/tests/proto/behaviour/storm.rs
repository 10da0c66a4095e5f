//! Every impairment at once, on paths of every shape.

use farhaul_netem::{JitterSpec, PathSpec, QueueSize, ReorderSpec};
use farhaul_units::{Duration, Rate, Rng};

use crate::behaviour::scenario::{exchanges_arrive_whole, random_loss};

/// 2 Mbit/s to 1 Gbit/s, up to 600 ms each way, queues of 4 packets and more, and every impairment.
fn stormy(rng: &mut Rng) -> PathSpec {
    let [slower, nearer, shorter] = [10, 12, 9].map(|halvings| rng.below(halvings));
    let jitter = JitterSpec::up_to(Duration::from_micros(rng.below(50_000)));
    let jitter = JitterSpec { may_reorder: rng.chance(0.5), ..jitter };
    let extra_delay = Duration::from_micros(rng.below(100_000));
    PathSpec {
        rate: Some(Rate::from_bits_per_second(2_000_000 + rng.below(1_000_000_000 >> slower))),
        delay: Duration::from_micros(rng.below(600_000 >> nearer)),
        queue: QueueSize::Packets(4 + rng.below(1_000 >> shorter) as u32),
        loss: random_loss(0.15 * rng.unit() * rng.unit()),
        duplicate: 0.2 * rng.unit() * rng.unit(),
        corrupt: 0.05 * rng.unit() * rng.unit(),
        jitter: rng.chance(0.5).then_some(jitter),
        reorder: rng.chance(0.5).then_some(ReorderSpec { probability: 0.2 * rng.unit(), extra_delay }),
        ..PathSpec::default()
    }
}

// Slow: many seeds of a bad path.
#[test]
fn streams_arrive_whole_through_a_storm() {
    exchanges_arrive_whole(6_000..6_100, stormy);
}

// Slow: many seeds of a bad path.
#[test]
fn streams_arrive_whole_through_another_storm() {
    exchanges_arrive_whole(7_000..7_100, stormy);
}
