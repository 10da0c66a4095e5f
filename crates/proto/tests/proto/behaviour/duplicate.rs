//! Duplicated packets count once.

use farhaul_netem::PathSpec;
use farhaul_proto::Streams;
use farhaul_sim::topology::path::LISTENER;

use crate::behaviour::scenario::{
    LENGTH, clean_path, exchange, exchanges_arrive_whole, pair, small_buffers, some_path,
};

// Slow: 100 seeds of a bad path, with 4 MiB each way.
#[test]
fn streams_arrive_whole_when_packets_are_copied() {
    exchanges_arrive_whole(2_000..2_100, |rng| PathSpec { duplicate: 0.3 * rng.unit(), ..some_path(rng) });
}

#[test]
fn every_copy_is_counted_and_none_is_delivered() {
    let run = exchange(pair(5, small_buffers).path(PathSpec { duplicate: 1.0, ..clean_path() }));
    let stats = run.transport(LISTENER).stats(run.now(), run.flows(LISTENER)[0].id()).expect("it was not released");
    assert_eq!(stats.totals.bytes_received, LENGTH);
    // The copy of the last packet may come after the end.
    assert!((stats.totals.packets_duplicate + 1) * 2 >= stats.totals.packets_received, "{:?}", stats.totals);
}
