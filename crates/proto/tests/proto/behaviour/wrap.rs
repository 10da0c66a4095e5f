//! Sequence numbers that wrap from 2^31 - 1 to 0 in mid-transfer.

use farhaul_netem::{PathSpec, ReorderSpec};
use farhaul_proto::Config;
use farhaul_sim::topology::path::{CALLER, LISTENER};
use farhaul_units::{Duration, Rng, SeqNo};

use crate::behaviour::scenario::{clean_path, exchange, pair, random_loss, small_buffers, some_path};

/// Packets before the wrap. An exchange has about 2900 packets in each direction.
const BEFORE_WRAP: [u32; 6] = [0, 1, 15, 64, 700, 2_000];

fn near_wrap<const BEFORE: usize>() -> Config {
    Config { initial_seq: Some(SeqNo::MAX.minus(BEFORE_WRAP[BEFORE])), ..small_buffers() }
}

const NEAR_WRAP: [fn() -> Config; 6] =
    [near_wrap::<0>, near_wrap::<1>, near_wrap::<2>, near_wrap::<3>, near_wrap::<4>, near_wrap::<5>];

fn exchanges_across_the_wrap_arrive_whole(seeds: std::ops::Range<u64>, path: impl Fn(&mut Rng) -> PathSpec) {
    for seed in seeds {
        for (config, before) in NEAR_WRAP.into_iter().zip(BEFORE_WRAP) {
            let mut rng = Rng::new(seed);
            let run = exchange(pair(seed, config).up(path(&mut rng)).down(path(&mut rng)));
            let missing = [run.missing(CALLER, LISTENER), run.missing(LISTENER, CALLER)].concat();
            assert!(missing.is_empty(), "seed {seed}, wrap after {before}: {missing:#?}");
        }
    }
}

#[test]
fn streams_arrive_whole_across_the_wrap() {
    exchanges_across_the_wrap_arrive_whole(0..1, |_| clean_path());
}

// Slow: 180 exchanges of 4 MiB each way: 30 seeds of a bad path, each with six places of the wrap.
#[test]
fn streams_arrive_whole_across_the_wrap_with_loss_and_reordering() {
    exchanges_across_the_wrap_arrive_whole(5_000..5_030, |rng| PathSpec {
        loss: random_loss(0.05 * rng.unit()),
        reorder: Some(ReorderSpec { probability: 0.03, extra_delay: Duration::from_micros(rng.below(9_000)) }),
        duplicate: 0.01,
        ..some_path(rng)
    });
}
