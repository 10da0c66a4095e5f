//! Transfers over paths that are clean, or lose, reorder, duplicate and damage packets: every byte arrives.

use farhaul_netem::{JitterSpec, LossSpec, PathSpec};
use farhaul_proto::{Config, Streams};
use farhaul_sim::topology::path::{CALLER, LISTENER};
use farhaul_sim::{Plan, TraceHash};
use farhaul_units::{Duration, Rate, Rng, SeqNo};

use crate::scenario::{
    LIMIT, clean_path, exchange, exchanges_arrive_whole, pair, path, small_buffers, some_path, stats,
};

#[test]
fn streams_arrive_whole_over_clean_paths_of_many_shapes() {
    exchanges_arrive_whole(0..40, some_path);
}

#[test]
fn streams_arrive_whole_although_packets_are_lost_in_both_directions() {
    exchanges_arrive_whole(100..130, |rng| {
        let probability = 0.1 * rng.unit();
        PathSpec { loss: Some(LossSpec::Bernoulli(probability)), ..some_path(rng) }
    });
}
