//! Transfers over a path without impairments.

use farhaul_netem::{PathSpec, QueueSize};
use farhaul_proto::Streams;
use farhaul_sim::measure::throughput::goodput;
use farhaul_sim::topology::path::{CALLER, LISTENER};
use farhaul_sim::{TraceHash, Workload};
use farhaul_units::{Duration, Instant, Rate};

use crate::behaviour::scenario::{
    LIMIT, at_millis, clean_path, exchange, exchanges_arrive_whole, pair, small_buffers, some_path,
};

// Slow: 100 seeds of a path, with 4 MiB each way.
#[test]
fn streams_arrive_whole_over_clean_paths_of_many_shapes() {
    exchanges_arrive_whole(4_000..4_100, some_path);
}

#[test]
fn streams_of_any_length_arrive_whole() {
    for (seed, length) in [16, 17, 1_455, 1_456, 1_457, 2_912, 2_913, 65_536, 1_000_003].into_iter().enumerate() {
        let workload = Workload::exchange(length);
        let mut run = pair(seed as u64, small_buffers).path(clean_path()).caller(workload).listener(workload).start();
        assert!(run.run_until_done(LIMIT), "{length} bytes");
        assert_eq!([run.missing(CALLER, LISTENER), run.missing(LISTENER, CALLER)].concat(), [""; 0]);
    }
}

#[test]
fn a_long_transfer_fills_the_path() {
    let mut run = pair(1, Default::default).path(clean_path()).caller(Workload::send_without_end()).start();
    run.sample_every(Duration::from_millis(100));
    run.run_for(Duration::from_secs(10));
    let samples = run.samples().expect("they were asked for");
    let id = run.flows(LISTENER)[0].id();
    let rate = goodput(samples, LISTENER, id, at_millis(3_000), at_millis(10_000)).expect("it was sampled");
    assert!(rate > Rate::from_megabits_per_second(75), "{rate} of 100 Mbit/s");
}

#[test]
fn the_window_doubles_each_round_trip_until_a_megabyte_is_through() {
    let path = PathSpec {
        rate: Some(Rate::from_megabits_per_second(1_000)),
        delay: Duration::from_millis(50),
        queue: QueueSize::Packets(10_000),
        ..PathSpec::default()
    };
    let mut run = pair(3, Default::default).path(path).caller(Workload::send(1_000_000)).start();
    assert!(run.run_until_done(LIMIT));
    // The handshake takes two RTTs. The 687 packets are six flights of 16, 32, …; the last one takes half an RTT.
    let complete = run.flows(LISTENER)[0].received().complete_at.expect("it is complete");
    assert!(complete - Instant::ZERO < Duration::from_millis(200 + 500 + 50 + 50), "{complete}");
}

#[test]
fn a_slow_reader_slows_the_sender_down_and_loses_nothing() {
    let reader = Workload::receive().reading_at(Rate::from_megabits_per_second(10));
    // The queue holds all data that the small buffers permit, so only the receiver could lose packets.
    let path = PathSpec { queue: QueueSize::Packets(1_000), ..clean_path() };
    let mut run = pair(2, small_buffers).path(path).caller(Workload::send(8 << 20)).listener(reader).start();
    assert!(run.run_until_done(LIMIT));
    assert_eq!(run.missing(CALLER, LISTENER), [""; 0]);
    let stats = run.transport(CALLER).stats(run.now(), run.flows(CALLER)[0].id()).expect("it was not released");
    assert_eq!(stats.totals.packets_retransmitted, 0, "{:?}", stats.totals);
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    let hash = |seed| -> TraceHash { exchange(pair(seed, small_buffers).path(clean_path())).trace_hash() };
    assert_eq!(hash(1), hash(1));
    assert_ne!(hash(1), hash(2));
}
