//! Shares of competing flows with the default controller.

use std::ops::Range;

use farhaul_netem::{PathSpec, QueueSize};
use farhaul_proto::Config;
use farhaul_sim::Workload;
use farhaul_sim::measure::throughput::goodput;
use farhaul_sim::topology::dumbbell::{self, Dumbbell, Flank};
use farhaul_units::{Duration, Instant, Rate};

use crate::behaviour::scenario::{endpoint, listener};

/// Payload rates in Mbit/s of `flows` from second 20 to second 40. One flow joins every second.
fn shares(megabits: u64, flows: u64, round_trip: Duration, queue: u32) -> Vec<f64> {
    shares_within(20..40, Some(1_000), megabits, flows, round_trip, queue)
}

/// The same within these seconds, from hosts with links of `access` Mbit/s.
fn shares_within(
    seconds: Range<u64>,
    access: Option<u64>,
    megabits: u64,
    flows: u64,
    round_trip: Duration,
    queue: u32,
) -> Vec<f64> {
    let rate = Rate::from_megabits_per_second(megabits);
    let link =
        PathSpec { rate: Some(rate), delay: round_trip / 2, queue: QueueSize::Packets(queue), ..PathSpec::default() };
    let mut net = Dumbbell::new(link);
    for pair in 0..flows {
        let access = PathSpec { rate: access.map(Rate::from_megabits_per_second), ..PathSpec::default() };
        let (caller, listener) = (endpoint(100 + pair, Config::default()), listener(200 + pair, Config::default()));
        let begins = Instant::ZERO + Duration::from_secs(pair);
        net = net.pair(Flank { caller, listener, access, workload: Workload::send_without_end(), begins });
    }
    let mut run = net.seed(1).start();
    run.sample_every(Duration::from_millis(100));
    run.run_for(Duration::from_secs(seconds.end));
    let samples = run.samples().expect("they were asked for");
    let share = |pair| {
        let host = dumbbell::listener(pair);
        let id = run.flows(host)[0].id();
        let [from, to] = [seconds.start, seconds.end].map(|second| Instant::ZERO + Duration::from_secs(second));
        goodput(samples, host, id, from, to).expect("it was sampled").bits_per_second() as f64 / 1e6
    };
    (0..flows as usize).map(share).collect()
}

fn jain(shares: &[f64]) -> f64 {
    let (sum, squares) = (shares.iter().sum::<f64>(), shares.iter().map(|share| share * share).sum::<f64>());
    sum * sum / (shares.len() as f64 * squares)
}

/// A flow that joins a full queue sees that queue as part of the path. Overflows then look like random loss, unless the
/// flow notices that they come in bursts. It would take half of the link and keep it.
// Slow: 40 s at 100 Mbit/s in virtual time, of which the first 20 s are for the shares to settle.
#[test]
fn a_flow_that_joins_a_full_queue_takes_no_more_than_its_share() {
    let shares = shares(100, 6, Duration::from_millis(2), 100);
    assert!(jain(&shares) >= 0.95 && shares.iter().sum::<f64>() >= 90.0, "{shares:.1?}");
}

/// Growth and cuts in proportion to the rate preserve unequal shares. The first of four flows would keep half of the
/// link.
// Slow: two runs of 40 s at 100 Mbit/s in virtual time, of which the first 20 s are for the shares to settle.
#[test]
fn the_first_flow_does_not_keep_the_link() {
    for queue in [100, 400] {
        let shares = shares(100, 4, Duration::from_millis(50), queue);
        assert!(jain(&shares) >= 0.95 && shares.iter().sum::<f64>() >= 85.0, "queue {queue}: {shares:.1?}");
    }
}

/// A queue too short to measure overflows without a sign. A flow that took its overflows for random loss would starve
/// the other.
// Slow: two flows fill a gigabit. Ten seconds are ten thousand round trips here.
#[test]
fn overflows_of_a_queue_too_short_to_measure_are_no_random_loss() {
    let shares = shares_within(5..15, None, 1_000, 2, Duration::from_millis(1), 30);
    assert!(jain(&shares) >= 0.95 && shares.iter().sum::<f64>() >= 900.0, "{shares:.1?}");
}

#[test]
#[ignore = "falls short: bursts of the slower flow overflow the queue more often, and the other tolerates its own 1 % of loss: 944 : 27"]
fn overflows_that_hit_the_slower_flow_more_often_are_no_random_loss() {
    let shares = shares_within(5..15, Some(1_000), 1_000, 2, Duration::from_millis(1), 30);
    assert!(jain(&shares) >= 0.95 && shares.iter().sum::<f64>() >= 900.0, "{shares:.1?}");
}
