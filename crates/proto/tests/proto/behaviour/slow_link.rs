//! Links on which a packet takes as long as an RTT elsewhere.

use farhaul_netem::{PathSpec, QueueSize};
use farhaul_proto::{Config, Streams};
use farhaul_sim::Workload;
use farhaul_sim::measure::throughput::goodput;
use farhaul_sim::topology::path::{CALLER, LISTENER};
use farhaul_units::{Duration, Instant, Rate};

use crate::behaviour::scenario::pair;

#[test]
fn a_flow_on_a_link_of_eight_packets_per_second_fills_it_and_repeats_nothing() {
    let path = PathSpec {
        rate: Some(Rate::from_bits_per_second(100_000)),
        delay: Duration::from_micros(500),
        queue: QueueSize::Packets(1_000),
        ..PathSpec::default()
    };
    let mut run = pair(1, Config::default).path(path).caller(Workload::send_without_end()).start();
    run.sample_every(Duration::from_secs(1));
    run.run_for(Duration::from_secs(600));
    let ids = [CALLER, LISTENER].map(|host| run.flows(host)[0].id());
    let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
    let samples = run.samples().expect("they were asked for");
    let rate = goodput(samples, LISTENER, ids[LISTENER], at(300), at(600)).expect("it was sampled");
    assert!(rate > Rate::from_bits_per_second(85_000), "{rate} of 100 kbit/s");
    let totals = run.transport(CALLER).stats(run.now(), ids[CALLER]).expect("it lives").totals;
    assert!(totals.packets_retransmitted * 100 < totals.packets_sent, "{totals:?}");
}
