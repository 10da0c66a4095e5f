//! Flows that share a bottleneck, with a toy transport.

use farhaul_netem::{PathSpec, QueueSize};
use farhaul_sim::Workload;
use farhaul_sim::topology::dumbbell::{Dumbbell, Flank, LEFTWARDS, RIGHTWARDS, caller, listener};
use farhaul_units::{Duration, Instant, Rate};

use crate::toy::Toy;

fn flank(pair: u64) -> Flank<Toy> {
    let access = PathSpec {
        rate: Some(Rate::from_megabits_per_second(100)),
        delay: Duration::from_millis(1 + pair),
        ..PathSpec::default()
    };
    let begins = Instant::ZERO + Duration::from_millis(pair * 10);
    Flank { caller: Toy::default(), listener: Toy::default(), access, workload: Workload::send(300_000), begins }
}

#[test]
fn every_flow_reaches_its_own_listener_through_the_shared_link() {
    let bottleneck = PathSpec {
        rate: Some(Rate::from_megabits_per_second(20)),
        delay: Duration::from_millis(5),
        queue: QueueSize::Packets(100),
        ..PathSpec::default()
    };
    let mut run = (0..3).fold(Dumbbell::new(bottleneck), |net, pair| net.pair(flank(pair))).seed(1).start();
    assert!(run.run_until_done(Duration::from_secs(60)));
    run.run_for(Duration::from_secs(1));
    for pair in 0..3 {
        assert_eq!(run.missing(caller(pair), listener(pair)), [""; 0]);
    }
    let shared = run.link_counters(RIGHTWARDS);
    assert!(shared.pushed.bytes > 3 * 300_000 && shared.dropped_queue.packets > 0, "{shared:?}");
    assert!(run.link_counters(LEFTWARDS).delivered.packets > 0);
    assert_eq!(run.network_counters().unroutable, 0);
    assert_eq!(run.pool().in_use(), 0);
}
