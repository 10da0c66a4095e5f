//! Memory of a connection.

use farhaul_netem::{PathSpec, QueueSize};
use farhaul_proto::Streams;
use farhaul_sim::Workload;
use farhaul_sim::topology::path::{CALLER, LISTENER};
use farhaul_units::{Duration, Rate};

use crate::behaviour::scenario::{pair, random_loss};

const LINK: Rate = Rate::from_megabits_per_second(1_000);
const ROUND_TRIP: Duration = Duration::from_millis(100);
/// Bandwidth-delay product in bytes.
const BDP: u64 = 12_500_000;
/// The limit for each side is twice the bandwidth-delay product, and this.
const FIXED: u64 = 32 << 20;

/// The path of the limit, with a queue of one bandwidth-delay product and this loss.
fn path(loss: f64) -> PathSpec {
    PathSpec {
        rate: Some(LINK),
        delay: ROUND_TRIP / 2,
        queue: QueueSize::Bdp(ROUND_TRIP),
        loss: if loss > 0.0 { random_loss(loss) } else { None },
        ..PathSpec::default()
    }
}

/// Samples both sides every 20 ms for four seconds. Returns each side's peak memory in bytes, and the goodput.
fn most_held(path: &PathSpec, reader: Workload) -> ([u64; 2], Rate) {
    let time = Duration::from_secs(4);
    let sender = Workload::send_without_end();
    let mut run = pair(1, Default::default).up(path.clone()).down(path.clone()).caller(sender).listener(reader).start();
    run.sample_every(Duration::from_millis(20));
    run.run_for(time);
    let samples = run.samples().expect("they were asked for");
    let most = [CALLER, LISTENER].map(|host| {
        let held = samples.flow(host, run.flows(host)[0].id()).map(|(_, stats)| stats.memory);
        held.max().expect("it was sampled")
    });
    (most, Rate::from_bytes_in(run.flows(LISTENER)[0].received().bytes, time).unwrap_or(Rate::ZERO))
}

// Slow: three paths of 1 Gbit/s, each for 4 s in virtual time.
#[test]
fn a_long_fat_path_takes_twice_its_product_and_a_fixed_amount_on_each_side() {
    let short_queue = PathSpec { queue: QueueSize::Packets(500), ..path(1e-4) };
    for path in [path(0.0), path(1e-3), short_queue] {
        let (most, rate) = most_held(&path, Workload::receive());
        assert!(most.iter().all(|&most| most > 0 && most <= 2 * BDP + FIXED), "{most:?} bytes with {path:?}");
        assert!(rate > Rate::from_megabits_per_second(500), "the path is used: {rate} with {path:?}");
    }
}

#[test]
fn a_path_twice_as_long_that_loses_much_keeps_the_promise_too() {
    for loss in [1e-3, 1e-2] {
        let round_trip = 2 * ROUND_TRIP;
        let path = PathSpec { delay: round_trip / 2, queue: QueueSize::Bdp(round_trip), ..path(loss) };
        let (most, _) = most_held(&path, Workload::receive());
        assert!(most.iter().all(|&most| most > 0 && most <= 4 * BDP + FIXED), "{most:?} bytes with {path:?}");
    }
}

#[test]
fn a_reader_that_is_slower_than_the_path_costs_no_more() {
    let reader = Workload::receive().reading_at(Rate::from_megabits_per_second(50));
    let (most, _) = most_held(&path(0.0), reader);
    assert!(most.iter().all(|&most| most > 0 && most <= 2 * BDP + FIXED), "{most:?} bytes");
}

#[test]
fn the_memory_of_a_transfer_is_freed_when_the_connection_is_idle() {
    let workload = Workload::send(50_000_000).kept_open();
    let mut run = pair(1, Default::default).path(path(0.0)).caller(workload).start();
    run.run_for(Duration::from_secs(30));
    for host in [CALLER, LISTENER] {
        let stats = run.transport(host).stats(run.now(), run.flows(host)[0].id()).expect("it was not released");
        assert!(stats.memory < 128 << 10, "host {host}: {} bytes", stats.memory);
    }
}
