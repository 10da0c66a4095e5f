//! Transfers over clean paths, and over paths that lose, delay, duplicate and damage packets. Every byte arrives, once,
//! in order.

use farhaul_netem::{JitterSpec, LossSpec, PathSpec, QueueSize, ReorderSpec};
use farhaul_proto::{Config, Streams};
use farhaul_sim::topology::path::{CALLER, LISTENER};
use farhaul_sim::{TraceHash, Workload};
use farhaul_units::{Duration, Rate, SeqNo};

use crate::udt2004::scenario::{
    LENGTH, LIMIT, clean_path, exchange, exchanges_arrive_whole, pair, small_buffers, some_path, stats,
};

#[test]
fn streams_arrive_whole_over_clean_paths_of_many_shapes() {
    exchanges_arrive_whole(0..40, some_path);
}

#[test]
fn streams_arrive_whole_although_packets_are_lost_in_both_directions() {
    exchanges_arrive_whole(100..140, |rng| {
        let probability = 0.1 * rng.unit();
        PathSpec { loss: Some(LossSpec::Bernoulli(probability)), ..some_path(rng) }
    });
}

#[test]
fn streams_arrive_whole_when_packets_are_held_back_or_take_their_own_time() {
    exchanges_arrive_whole(200..240, |rng| {
        let extra_delay = Duration::from_micros(50 + rng.below(20_000));
        let jitter = JitterSpec { may_reorder: true, ..JitterSpec::up_to(Duration::from_micros(rng.below(5_000))) };
        PathSpec {
            reorder: Some(ReorderSpec { probability: 0.1 * rng.unit(), extra_delay }),
            jitter: Some(jitter),
            ..some_path(rng)
        }
    });
}

#[test]
fn streams_arrive_whole_when_everything_goes_wrong_at_once() {
    exchanges_arrive_whole(300..340, |rng| PathSpec {
        loss: Some(LossSpec::Bernoulli(0.05 * rng.unit())),
        duplicate: 0.1 * rng.unit(),
        corrupt: 0.05 * rng.unit(),
        reorder: Some(ReorderSpec { probability: 0.03, extra_delay: Duration::from_micros(rng.below(9_000)) }),
        ..some_path(rng)
    });
}

#[test]
fn every_copy_is_counted_and_none_is_delivered() {
    let run = exchange(pair(5, small_buffers).path(PathSpec { duplicate: 1.0, ..clean_path() }));
    let totals = stats(&run, LISTENER).totals;
    assert_eq!(totals.bytes_received, LENGTH);
    assert!(totals.packets_duplicate * 2 >= totals.packets_received, "{totals:?}");
}

#[test]
fn streams_of_any_length_arrive_whole() {
    for (seed, length) in [16, 17, 1_467, 1_468, 1_469, 2_936, 2_937, 65_536, 1_000_003].into_iter().enumerate() {
        let workload = Workload::exchange(length);
        let mut run = pair(seed as u64, small_buffers).path(clean_path()).caller(workload).listener(workload).start();
        assert!(run.run_until_done(LIMIT), "{length} bytes");
        assert_eq!([run.missing(CALLER, LISTENER), run.missing(LISTENER, CALLER)].concat(), [""; 0]);
    }
}

/// Numbers wrap at 2^30 on the wire, and at 2^31 in the code behind it.
#[test]
fn streams_arrive_whole_across_the_wrap() {
    for before in [0, 1, 15, 64, 700] {
        for seed in 0..6 {
            let config = || Config { initial_seq: Some(SeqNo::new((1 << 30) - 1 - before)), ..small_buffers() };
            let path = PathSpec { loss: Some(LossSpec::Bernoulli(0.01)), ..clean_path() };
            let run = exchange(pair(seed, config).path(path));
            let missing = [run.missing(CALLER, LISTENER), run.missing(LISTENER, CALLER)].concat();
            assert!(missing.is_empty(), "seed {seed}, wrap after {before}: {missing:#?}");
        }
    }
}

/// The paper has no receiver window. Delayed acknowledgements take its place (departure D133).
#[test]
fn a_slow_reader_slows_the_sender_down_and_nothing_is_sent_twice() {
    let reader = Workload::receive().reading_at(Rate::from_megabits_per_second(10));
    // The queue holds all data that the small buffers permit, so only the receiver could lose packets.
    let path = PathSpec { queue: QueueSize::Packets(2_000), ..clean_path() };
    let mut run = pair(2, small_buffers).path(path).caller(Workload::send(8 << 20)).listener(reader).start();
    assert!(run.run_until_done(LIMIT));
    assert_eq!(run.missing(CALLER, LISTENER), [""; 0]);
    let totals = stats(&run, CALLER).totals;
    assert_eq!((totals.packets_retransmitted, totals.timeouts), (0, 0), "{totals:?}");
    let seconds = run.now().as_nanos() as f64 / 1e9;
    assert!((6.0..8.0).contains(&seconds), "8 MiB at 10 Mbit/s took {seconds} s");
}

#[test]
fn the_memory_of_an_unread_stream_is_bounded() {
    let reader = Workload::receive().reading_at(Rate::from_bits_per_second(8_000));
    let mut run = pair(3, small_buffers).path(clean_path()).caller(Workload::send(64 << 20)).listener(reader).start();
    run.run_for(Duration::from_secs(60));
    for host in [CALLER, LISTENER] {
        let memory = stats(&run, host).memory;
        assert!(memory < 3 << 20, "host {host}: {memory} bytes with buffers of 1 MiB");
    }
    let totals = stats(&run, CALLER).totals;
    assert!(totals.packets_retransmitted < 100, "{totals:?}");
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    let hash = |seed| -> TraceHash { exchange(pair(seed, small_buffers).path(clean_path())).trace_hash() };
    assert_eq!(hash(1), hash(1));
    assert_ne!(hash(1), hash(2));
}

#[test]
fn a_second_connection_to_the_same_address_is_refused_while_the_first_lives() {
    let mut run = pair(4, small_buffers).path(clean_path()).caller(Workload::send(100_000)).start();
    run.run_for(Duration::from_millis(100));
    let peer = farhaul_sim::topology::path::address(LISTENER);
    let again = run.command(CALLER, |now, endpoint, _| endpoint.connect(now, peer));
    assert_eq!(again, Err(farhaul_proto::ConnectError::AlreadyConnected));
    run.run_until_done(LIMIT);
    run.run_for(Duration::from_secs(2));
    let again = run.command(CALLER, |now, endpoint, _| endpoint.connect(now, peer));
    assert!(again.is_ok(), "the first one is over: {again:?}");
}
