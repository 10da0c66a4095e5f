//! Packets that overtake one another are put in order again.

use farhaul_netem::{JitterSpec, PathSpec, QueueSize, ReorderSpec};
use farhaul_proto::{Config, Streams};
use farhaul_sim::topology::path::CALLER;
use farhaul_units::{Duration, Rng};

use crate::scenario::{clean_path, exchange, exchanges_arrive_whole, pair, small_buffers, some_path};

fn reordering(rng: &mut Rng) -> PathSpec {
    let extra_delay = Duration::from_micros(50 + rng.below(20_000));
    PathSpec { reorder: Some(ReorderSpec { probability: 0.1 * rng.unit(), extra_delay }), ..some_path(rng) }
}

#[test]
fn streams_arrive_whole_when_packets_are_held_back() {
    exchanges_arrive_whole(1_000..1_120, reordering);
}

#[test]
fn streams_arrive_whole_when_every_packet_takes_its_own_time() {
    exchanges_arrive_whole(1_200..1_260, |rng| {
        let jitter = JitterSpec { max: Duration::from_micros(rng.below(5_000)), may_reorder: true };
        PathSpec { jitter: Some(jitter), ..some_path(rng) }
    });
}

#[test]
fn a_few_packets_of_tolerance_save_retransmissions() {
    let retransmitted = |tolerance: fn() -> Config| {
        let reorder = Some(ReorderSpec { probability: 0.02, extra_delay: Duration::from_micros(300) });
        // The queue holds all that the small buffers allow: nothing is truly lost.
        let path = PathSpec { reorder, queue: QueueSize::Packets(2_000), ..clean_path() };
        let run = exchange(pair(7, tolerance).path(path));
        let id = run.flows(CALLER)[0].id();
        run.transport(CALLER).stats(run.now(), id).expect("it was not released").totals.packets_retransmitted
    };
    let strict = retransmitted(|| Config { reorder_tolerance: 0, ..small_buffers() });
    let tolerant = retransmitted(|| Config { reorder_tolerance: 8, ..small_buffers() });
    assert!(tolerant * 4 < strict, "{tolerant} against {strict}");
}
