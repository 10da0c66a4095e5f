//! The search for a rate over paths and hosts that mislead it, against the best of some fixed rates, in virtual time.
#![expect(clippy::unwrap_used, reason = "in tests a failure is a panic")]

use farhaul_netem::{JitterSpec, LossSpec, PathSpec, ReorderSpec};
use farhaul_proto::{Config, Endpoint, Entropy, Mode};
use farhaul_protocols::Protocol;
use farhaul_sim::host_cost::{HostCost, Load, attach};
use farhaul_sim::topology::graph::Graph;
use farhaul_sim::topology::path::{CALLER, LISTENER, Pair};
use farhaul_sim::{Traffic, TransportAgent, Workload};
use farhaul_units::{Duration, Instant, Rate};

/// Bytes of a transfer, which take half a second at the rate of the path.
const LENGTH: u64 = 6_000_000;
/// Longest virtual time of a transfer. A search that is lost for more than some seconds fails its test.
const LIMIT: Duration = Duration::from_secs(20);
/// Seeds of each case.
const SEEDS: u64 = 4;
/// Rates to compare with, Mbit/s: below, at, and close to the capacity of 100 Mbit/s.
const FIXED: [u64; 2] = [90, 98];
/// The port of both hosts behind a processor.
const PORT: u16 = 9;

fn endpoint(protocol: &Protocol, seed: u64) -> Endpoint {
    protocol.endpoint(Config::default(), Entropy { cookie_key: [seed as u8; 16], seed })
}

/// A caller and a listener of this protocol.
fn endpoints(protocol: &str) -> [Endpoint; 2] {
    let protocol: Protocol = protocol.parse().unwrap();
    let mut listener = endpoint(&protocol, 2);
    listener.listen(Mode::Stream).expect("UDT has the mode");
    [endpoint(&protocol, 1), listener]
}

/// 100 Mbit/s and an RTT of 20 ms.
fn clean() -> PathSpec {
    PathSpec {
        rate: Some(Rate::from_megabits_per_second(100)),
        delay: Duration::from_millis(10),
        ..PathSpec::default()
    }
}

fn misleading_paths() -> Vec<(&'static str, PathSpec)> {
    let millis = Duration::from_millis;
    let loss = |share| Some(LossSpec::Bernoulli(share));
    let reorder = Some(ReorderSpec { probability: 0.02, extra_delay: millis(5) });
    let jitter = |most| Some(JitterSpec::up_to(millis(most)));
    vec![
        ("nothing", clean()),
        ("loss of 1 %", PathSpec { loss: loss(0.01), ..clean() }),
        ("loss of 3 %", PathSpec { loss: loss(0.03), ..clean() }),
        ("duplicates", PathSpec { duplicate: 0.05, ..clean() }),
        ("reordering", PathSpec { reorder, ..clean() }),
        ("jitter", PathSpec { jitter: jitter(3), ..clean() }),
        ("reordering and jitter", PathSpec { reorder, jitter: jitter(3), ..clean() }),
        ("all of it", PathSpec { loss: loss(0.01), duplicate: 0.05, reorder, jitter: jitter(10), ..clean() }),
    ]
}

/// Seconds until the listener has everything.
fn over_path(protocol: &str, path: &PathSpec, seed: u64) -> f64 {
    let [caller, listener] = endpoints(protocol);
    let pair = Pair::new(caller, listener).path(path.clone()).seed(seed);
    let mut run = pair.caller(Workload::send(LENGTH)).listener(Workload::receive()).start();
    run.run_until_done(LIMIT);
    let complete = run.flows(LISTENER).first().and_then(|flow| flow.received().complete_at);
    let done = complete.unwrap_or(Instant::ZERO + LIMIT);
    assert!(
        done < Instant::ZERO + LIMIT,
        "{protocol} is not done with seed {seed}: {:?}",
        run.missing(CALLER, LISTENER)
    );
    (done - Instant::ZERO).as_secs_f64()
}

/// The same behind a listener's processor that others take for `busy` of every 300 ms.
fn to_paused_host(protocol: &str, busy: Duration, seed: u64) -> f64 {
    let (caller, interface, host) = (0, 1, 2);
    let mut graph = Graph::new(3);
    graph.duplex(caller, interface, &clean());
    let load = Load { busy, every: Duration::from_millis(300) };
    // The buffer holds 32 ms of the path.
    let cost = HostCost { receive_buffer: Some(400_000), load: Some(load), ..HostCost::default() };
    attach(&mut graph, interface, host, cost, seed);
    let (flow, [sends, listens]) = (graph.next_flow(), endpoints(protocol));
    let traffic = Traffic::new(Workload::send(LENGTH), seed).calling(Instant::ZERO, graph.address(host, PORT));
    graph.add(caller, PORT, flow, Box::new(TransportAgent::new(sends, traffic)));
    let traffic = Traffic::new(Workload::receive(), seed + 1);
    graph.add(host, PORT, flow, Box::new(TransportAgent::new(listens, traffic)));
    let mut world = graph.start(seed);
    loop {
        world.run_for(Duration::from_millis(5));
        let mut connections = Vec::new();
        world.agent(LISTENER).sample(world.now(), &mut connections);
        let time = (world.now() - Instant::ZERO).as_secs_f64();
        if connections.first().is_some_and(|(_, stats)| stats.totals.bytes_read == LENGTH) {
            return time;
        }
        assert!(time < LIMIT.as_secs_f64(), "{protocol} is not done with pauses of {busy:?} and seed {seed}");
    }
}

/// Asserts that a found rate takes hardly longer than the best fixed one, and loses no more than a few seconds ever.
fn is_near_the_best(protocol: &str, disturbance: &str, seconds: impl Fn(&str, u64) -> f64) {
    let fixed = |rate: u64| {
        let protocol = format!("{protocol}:rate={rate}mbit");
        (1..=SEEDS).map(|seed| seconds(&protocol, seed)).sum::<f64>() / SEEDS as f64
    };
    let best = FIXED.map(fixed).into_iter().fold(f64::INFINITY, f64::min);
    let mut found: Vec<f64> = (1..=SEEDS).map(|seed| seconds(protocol, seed)).collect();
    found.sort_by(f64::total_cmp);
    println!("{protocol:10} {disturbance:22} found {found:5.2?} best fixed {best:.2}");
    // A wrong rate costs up to 20 RTTs, of whatever length a transfer is.
    let median = found[found.len() / 2 - 1];
    assert!(
        median < 1.3 * best + 20.0 * 0.02,
        "{protocol}, {disturbance}: {found:?} s and {best} s with the best fixed rate"
    );
    let worst = found[found.len() - 1];
    assert!(worst < best + 2.5, "{protocol}, {disturbance}: {found:?} s and {best} s with the best fixed rate");
}

// Slow in each of the four tests below: 11 disturbances, with two fixed rates and the found one, with four seeds. These are 132
// transfers of 6 MB in virtual time.
fn finds_its_rate(protocol: &str) {
    for (disturbance, path) in misleading_paths() {
        is_near_the_best(protocol, disturbance, |protocol, seed| over_path(protocol, &path, seed));
    }
    for millis in [20, 60, 120] {
        let busy = Duration::from_millis(millis);
        let disturbance = format!("pauses of {millis} ms");
        is_near_the_best(protocol, &disturbance, |protocol, seed| to_paused_host(protocol, busy, seed));
    }
}

#[test]
fn rbudp_finds_the_rate_of_a_path_that_misleads_it() {
    finds_its_rate("rbudp");
}

#[test]
fn hurricane_finds_the_rate_of_a_path_that_misleads_it() {
    finds_its_rate("hurricane");
}

#[test]
fn fobs_finds_the_rate_of_a_path_that_misleads_it() {
    finds_its_rate("fobs");
}

#[test]
fn tsunami_finds_the_rate_of_a_path_that_misleads_it() {
    finds_its_rate("tsunami");
}
