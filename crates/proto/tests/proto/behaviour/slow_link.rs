//! Links on which a packet takes as long as an RTT elsewhere.

use farhaul_netem::{Discipline, PathSpec, QueueSize, RedSpec};
use farhaul_proto::{Config, Streams};
use farhaul_sim::Workload;
use farhaul_sim::measure::throughput::goodput;
use farhaul_sim::topology::path::{CALLER, LISTENER};
use farhaul_units::{Duration, Instant, Rate};

use crate::behaviour::scenario::pair;

/// A link of eight packets per second with this queue, for so many seconds.
fn eight_packets_per_second(seed: u64, queue: QueueSize, discipline: Discipline, seconds: u64) {
    let path = PathSpec {
        rate: Some(Rate::from_bits_per_second(100_000)),
        delay: Duration::from_micros(500),
        queue,
        discipline,
        ..PathSpec::default()
    };
    let mut run = pair(seed, Config::default).path(path).caller(Workload::send_without_end()).start();
    run.sample_every(Duration::from_secs(1));
    run.run_for(Duration::from_secs(seconds));
    let ids = [CALLER, LISTENER].map(|host| run.flows(host)[0].id());
    let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
    let samples = run.samples().expect("they were asked for");
    let rate = goodput(samples, LISTENER, ids[LISTENER], at(seconds / 2), at(seconds)).expect("it was sampled");
    assert!(rate > Rate::from_bits_per_second(85_000), "{rate} of 100 kbit/s");
    let totals = run.transport(CALLER).stats(run.now(), ids[CALLER]).expect("it lives").totals;
    assert!(totals.packets_retransmitted * 100 < totals.packets_sent, "{totals:?}");
}

#[test]
fn a_flow_on_a_link_of_eight_packets_per_second_fills_it_and_repeats_nothing() {
    eight_packets_per_second(1, QueueSize::Packets(1_000), Discipline::DropTail, 600);
}

/// The lowest rate of four packets per RTT keeps a queue of that many up. No drain can lower it, so it is no evidence of other flows.
#[test]
fn a_queue_that_the_lowest_rate_keeps_up_is_nobody_elses() {
    let red = RedSpec { min: 50.0, max: 150.0, weight: 0.002, gentle: true, ..RedSpec::default() };
    for seed in 1..=6 {
        eight_packets_per_second(seed, QueueSize::Packets(20_000), Discipline::Red(red), 1_200);
    }
}
