//! UDT4's law inside the whole endpoint: the rate predicted by integration, less the cost of UDT's window.

use farhaul_netem::{LossSpec, PathSpec, QueueSize};
use farhaul_proto::{Config, controller_factory};
use farhaul_sim::Workload;
use farhaul_sim::measure::throughput::goodput;
use farhaul_sim::topology::path::{LISTENER, UP};
use farhaul_units::{Duration, Instant, Rate};

use crate::behaviour::scenario::pair;

const ROUND_TRIP: Duration = Duration::from_millis(100);
const FROM: Duration = Duration::from_secs(10);
const TO: Duration = Duration::from_secs(40);

/// At a loss rate of 1e-3, 1 Gbit/s and 100 ms the law integrates to 128 Mbit/s.
///
/// A window of R·(RTT + SYN) + 16 is open for 1.1 of the 2 RTTs of a loss and its retransmission. At worst √(1.1/2) =
/// 0.74 of the throughput remains. A factor of 1.1 allows for the seeds.
// Slow: three seeds for a median, each with 40 s in virtual time: 10 s to settle, and 30 s for the average over rare losses.
#[test]
fn the_law_of_udt4_settles_near_its_integration() {
    let law = 128e6;
    let mut measured = Vec::new();
    for seed in 1..=3 {
        let clean = PathSpec {
            rate: Some(Rate::from_megabits_per_second(1_000)),
            delay: ROUND_TRIP / 2,
            queue: QueueSize::Bdp(ROUND_TRIP),
            ..PathSpec::default()
        };
        let up = PathSpec { loss: Some(LossSpec::Bernoulli(1e-3)), ..clean.clone() };
        let config = || {
            let controller = controller_factory("udt".parse().expect("a controller of the registry"));
            Config { controller, ..Config::default() }
        };
        let mut run = pair(seed, config).up(up).down(clean).caller(Workload::send_without_end()).start();
        run.sample_every(Duration::from_secs(1));
        run.run_for(TO);
        let id = run.flows(LISTENER)[0].id();
        let samples = run.samples().expect("they were asked for");
        let rate = goodput(samples, LISTENER, id, Instant::ZERO + FROM, Instant::ZERO + TO).expect("it runs");
        assert!(run.link_counters(UP).dropped_loss.packets > 100, "the path loses packets");
        measured.push(rate.bits_per_second() as f64 / law);
    }
    measured.sort_by(f64::total_cmp);
    assert!((0.70..1.10).contains(&measured[1]), "{measured:?} of the law");
}
