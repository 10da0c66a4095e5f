//! Connections begin with what an earlier one has found of the path (paper:rfc9959), if it is still the same path.

use core::net::SocketAddr;
use std::sync::{Arc, Mutex};

use farhaul_cc::KnownPath;
use farhaul_netem::{PathSpec, QueueSize, Variation};
use farhaul_proto::{Config, PathMemory, Stats, Streams};
use farhaul_sim::Workload;
use farhaul_sim::topology::path::{CALLER, LISTENER, Pair};
use farhaul_units::{Duration, Instant, Rate};

use crate::behaviour::scenario::{endpoint, listener};

const LINK: Rate = Rate::from_megabits_per_second(1_000);
const ROUND_TRIP: Duration = Duration::from_millis(100);
/// Bandwidth-delay product, packets.
const BDP: u64 = 8_333;

/// What is known of the only path.
#[derive(Default)]
struct Memory(Mutex<Option<KnownPath>>);

impl PathMemory for Memory {
    fn take(&self, _peer: SocketAddr) -> Option<KnownPath> {
        self.0.lock().expect("nobody panics with it").take()
    }

    fn keep(&self, _peer: SocketAddr, path: Option<KnownPath>, _held: Duration) {
        *self.0.lock().expect("nobody panics with it") = path;
    }
}

impl Memory {
    fn known(&self) -> Option<KnownPath> {
        *self.0.lock().expect("nobody panics with it")
    }
}

fn path(rate: Rate, round_trip: Duration) -> PathSpec {
    PathSpec { rate: Some(rate), delay: round_trip / 2, queue: QueueSize::Bdp(round_trip / 10), ..PathSpec::default() }
}

/// A sender whose connections remember.
fn sender(memory: &Arc<Memory>, path: PathSpec, workload: Workload) -> Pair<farhaul_proto::Endpoint> {
    let path_memory: Arc<dyn PathMemory> = Arc::<Memory>::clone(memory);
    let config = Config { path_memory: Some(path_memory), ..Config::default() };
    Pair::new(endpoint(1, config), listener(2, Config::default())).path(path).caller(workload)
}

/// The memory after a transfer of `bytes` over 1 Gbit/s and 100 ms.
fn memory_after(memory: Arc<Memory>, bytes: u64) -> Arc<Memory> {
    let mut run = sender(&memory, path(LINK, ROUND_TRIP), Workload::send(bytes)).start();
    assert!(run.run_until_done(Duration::from_secs(60)));
    run.run_for(Duration::from_secs(5));
    memory
}

/// The same, after 200 MB.
fn remembered() -> Arc<Memory> {
    let memory = memory_after(Arc::default(), 200_000_000);
    assert!(memory.known().is_some(), "it was kept");
    memory
}

/// The sender's and the receiver's counters this long after the connection stands.
fn after(millis: u64, memory: &Arc<Memory>, path: PathSpec) -> [Stats; 2] {
    let mut run = sender(memory, path, Workload::send_without_end()).start();
    while run.flows(CALLER).first().is_none_or(|flow| flow.connected_at.is_none()) {
        run.run_for(Duration::from_millis(1));
    }
    run.run_for(Duration::from_millis(millis));
    [CALLER, LISTENER]
        .map(|host| run.transport(host).stats(run.now(), run.flows(host)[0].id()).expect("it was not released"))
}

fn arrived(stats: &[Stats; 2]) -> u64 {
    stats[1].totals.bytes_received
}

#[test]
fn the_second_connection_is_fast_after_a_round_trip_and_overfills_no_short_queue() {
    let known = remembered();
    let found = known.known().expect("it was kept");
    assert!((950..=1_000).contains(&(found.rate.bits_per_second() / 1_000_000)), "{found:?}");
    let [fresh, recalled] = [Arc::default(), known].map(|memory| after(400, &memory, path(LINK, ROUND_TRIP)));
    assert!(arrived(&recalled) > 2 * arrived(&fresh), "{} and {} bytes", arrived(&recalled), arrived(&fresh));
    for [sender, _] in [fresh, recalled] {
        assert!(sender.totals.packets_retransmitted < BDP / 50, "{:?}", sender.totals);
    }
}

#[test]
fn a_path_that_has_become_slow_costs_what_leaves_until_its_losses_are_known() {
    let slow = || path(Rate::from_megabits_per_second(100), ROUND_TRIP);
    let [fresh, recalled] = [Arc::default(), remembered()].map(|memory| after(3_000, &memory, slow()));
    let lost = recalled[0].totals.packets_retransmitted;
    // Half of the old rate, for an RTT, the queue, and the two intervals in which a queue is seen.
    assert!(lost < BDP * 7 / 10, "{lost} packets");
    // Repairs take a second, and give no samples meanwhile.
    assert!(arrived(&recalled) * 10 > arrived(&fresh) * 8, "{} and {} bytes", arrived(&recalled), arrived(&fresh));
}

#[test]
fn a_path_with_another_round_trip_is_begun_anew() {
    let other = || path(LINK, Duration::from_millis(60));
    let [fresh, recalled] = [Arc::default(), remembered()].map(|memory| after(400, &memory, other()));
    assert_eq!(arrived(&recalled), arrived(&fresh));
}

#[test]
fn a_transfer_that_the_path_limits_for_less_than_a_second_leaves_what_it_recalled() {
    assert_eq!(memory_after(Arc::default(), 10_000_000).known(), None);
    let before = remembered();
    let known = before.known();
    assert_eq!(memory_after(before, 10_000_000).known(), known);
}

/// A path of as many packets each millisecond, all at once: probe pairs arrive together and show nothing.
fn merging(packets: usize) -> PathSpec {
    let trace = "1\n".repeat(packets).parse().expect("it is a trace");
    PathSpec { rate: None, variation: Variation::Trace(trace), ..path(LINK, ROUND_TRIP) }
}

#[test]
fn a_rate_that_is_far_too_small_costs_the_next_connection_a_second() {
    let slow = KnownPath { rate: Rate::from_bits_per_second(8_653_239), rtt: ROUND_TRIP };
    for packets in [8, 80] {
        let memory = Arc::new(Memory(Mutex::new(Some(slow))));
        let [fresh, recalled] = [Arc::default(), memory].map(|memory| after(4_000, &memory, merging(packets)));
        let second = packets as u64 * 1_000 * 1_456;
        assert!(arrived(&recalled) + second > arrived(&fresh), "{} and {} bytes", arrived(&recalled), arrived(&fresh));
    }
}

#[test]
fn a_wrong_rate_costs_a_transfer_a_twentieth_at_most() {
    for millis in [1, 10, 100] {
        let round_trip = Duration::from_millis(millis);
        let spec = || PathSpec { queue: QueueSize::Bdp(round_trip), ..path(LINK, round_trip) };
        let [fresh, others @ ..] = [None, Some(10), Some(100), Some(10_000), Some(100_000)].map(|megabits| {
            let rate = megabits.map(Rate::from_megabits_per_second);
            let memory = Arc::new(Memory(Mutex::new(rate.map(|rate| KnownPath { rate, rtt: round_trip }))));
            let mut run = sender(&memory, spec(), Workload::send(200_000_000)).start();
            assert!(run.run_until_done(Duration::from_secs(60)));
            run.now().saturating_since(Instant::ZERO).as_secs_f64()
        });
        let most = others.into_iter().fold(0.0, f64::max);
        assert!(most < fresh * 1.05, "{millis} ms: {fresh} s, and {others:?} s by what was remembered");
    }
}
