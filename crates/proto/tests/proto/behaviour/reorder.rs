//! Reordered packets are put in order.

use farhaul_netem::{JitterSpec, PathSpec, QueueSize, ReorderSpec};
use farhaul_proto::{Config, Stats, Streams};
use farhaul_sim::Workload;
use farhaul_sim::measure::throughput::goodput;
use farhaul_sim::topology::path::{CALLER, LISTENER};
use farhaul_units::{Duration, Instant, Rate, Rng};

use crate::behaviour::scenario::{
    at_millis, clean_path, exchange, exchanges_arrive_whole, pair, small_buffers, some_path,
};

fn reordering(rng: &mut Rng) -> PathSpec {
    let extra_delay = Duration::from_micros(50 + rng.below(20_000));
    PathSpec { reorder: Some(ReorderSpec { probability: 0.1 * rng.unit(), extra_delay }), ..some_path(rng) }
}

// Slow: 120 seeds of a bad path, with 4 MiB each way.
#[test]
fn streams_arrive_whole_when_packets_are_held_back() {
    exchanges_arrive_whole(1_000..1_120, reordering);
}

// Slow: 60 seeds of a bad path, with 4 MiB each way.
#[test]
fn streams_arrive_whole_when_every_packet_takes_its_own_time() {
    exchanges_arrive_whole(1_200..1_260, |rng| {
        let jitter = JitterSpec { may_reorder: true, ..JitterSpec::up_to(Duration::from_micros(rng.below(5_000))) };
        PathSpec { jitter: Some(jitter), ..some_path(rng) }
    });
}

/// 100 Mbit/s and an RTT of 40 ms, with a queue of one bandwidth-delay product.
fn long_path() -> PathSpec {
    let delay = Duration::from_millis(20);
    PathSpec { delay, queue: QueueSize::Bdp(2 * delay), ..clean_path() }
}

/// Goodput of the first ten seconds with `path` in both directions, and the counters of sender and receiver.
fn ten_seconds(seed: u64, path: &PathSpec) -> (Rate, [Stats; 2]) {
    let mut run = pair(seed, Default::default).path(path.clone()).caller(Workload::send_without_end()).start();
    run.sample_every(Duration::from_millis(100));
    run.run_for(Duration::from_secs(10));
    let ids = [CALLER, LISTENER].map(|host| run.flows(host)[0].id());
    let stats = [CALLER, LISTENER].map(|host| run.transport(host).stats(run.now(), ids[host]).expect("it lives"));
    let samples = run.samples().expect("they were asked for");
    let rate = goodput(samples, LISTENER, ids[LISTENER], Instant::ZERO, at_millis(10_000)).expect("it was sampled");
    (rate, stats)
}

/// Whether every packet takes up to `millis` longer, by a random time, and `least` Mbit/s of 100 remain.
fn check_rate_under_jitter(millis: u64, least: u64) {
    for seed in 1..4 {
        let jitter = Some(JitterSpec { may_reorder: true, ..JitterSpec::up_to(Duration::from_millis(millis)) });
        let (rate, _) = ten_seconds(seed, &PathSpec { jitter, ..long_path() });
        assert!(rate > Rate::from_megabits_per_second(least), "{millis} ms, seed {seed}: {rate} of 100 Mbit/s");
    }
}

// Slow: three seeds, for ten seconds at 100 Mbit/s in virtual time.
#[test]
fn reordering_costs_a_tenth_of_the_rate_at_most() {
    check_rate_under_jitter(2, 90);
}

#[test]
#[ignore = "falls short: trains of start-up are shorter than this jitter, so one of three seeds has 32 of 100 Mbit/s"]
fn reordering_by_a_quarter_of_the_round_trip_costs_a_fifth_of_the_rate_at_most() {
    check_rate_under_jitter(10, 80);
}

#[test]
fn few_packets_are_retransmitted_because_of_reordering() {
    for seed in 1..4 {
        // No queue overflows, so no packet is lost.
        let path = PathSpec { queue: QueueSize::Packets(100_000), ..long_path() };
        let reorder = Some(ReorderSpec { probability: 0.1, extra_delay: Duration::from_millis(20) });
        let (_, [sender, receiver]) = ten_seconds(seed, &PathSpec { reorder, duplicate: 0.05, ..path });
        let again = sender.retransmission_ratio();
        assert!(again < 0.02, "seed {seed}: {again} of the packets for nothing, {:?}", receiver.totals);
    }
}

#[test]
fn start_up_ended_by_reordering_resumes_once_the_late_packets_arrive() {
    for seed in 1..4 {
        let reorder = Some(ReorderSpec { probability: 0.1, extra_delay: Duration::from_millis(20) });
        let (rate, _) = ten_seconds(seed, &PathSpec { reorder, ..long_path() });
        assert!(rate > Rate::from_megabits_per_second(80), "seed {seed}: {rate} of 100 Mbit/s");
    }
}

#[test]
fn a_few_packets_of_tolerance_save_retransmissions() {
    let retransmitted = |tolerance: fn() -> Config| {
        let reorder = Some(ReorderSpec { probability: 0.02, extra_delay: Duration::from_micros(300) });
        // The queue holds all data that the small buffers permit, so no packet is lost.
        let path = PathSpec { reorder, queue: QueueSize::Packets(2_000), ..clean_path() };
        let run = exchange(pair(7, tolerance).path(path));
        let id = run.flows(CALLER)[0].id();
        run.transport(CALLER).stats(run.now(), id).expect("it was not released").totals.packets_retransmitted
    };
    let strict = retransmitted(|| Config { reorder_tolerance: 0, ..small_buffers() });
    let tolerant = retransmitted(|| Config { reorder_tolerance: 8, ..small_buffers() });
    assert!(tolerant * 4 < strict, "{tolerant} against {strict}");
}
