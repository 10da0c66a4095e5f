//! Packet-hops simulated per real second: one UDT flow with full state machines over one link, 1 Gbit/s, 100 ms RTT.
//!
//! `cargo run --release -p farhaul-sim --example hops [virtual seconds]`
//!
//! Like every bulk sender it sends zeros, so the link stores datagrams compressed. The example `speed` sends and checks
//! incompressible bytes.

use farhaul_netem::{PathSpec, QueueSize};
use farhaul_proto::{Config, Entropy, Mode, udt};
use farhaul_sim::TransportAgent;
use farhaul_sim::agent::bulk::{BulkReceiver, BulkSender};
use farhaul_sim::topology::graph::Graph;
use farhaul_units::{Duration, Instant, Rate};

fn main() {
    let seconds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(20);
    let round_trip = Duration::from_millis(100);
    let mut graph = Graph::new(2);
    let link = PathSpec {
        rate: Some(Rate::from_megabits_per_second(1_000)),
        delay: round_trip / 2,
        queue: QueueSize::Bdp(round_trip),
        ..PathSpec::default()
    };
    graph.duplex(0, 1, &link);
    let endpoint = |seed| udt::endpoint(Config::default(), Entropy { cookie_key: [0; 16], seed });
    let mut listener = endpoint(2);
    listener.listen(Mode::Stream).expect("UDT has streams");
    let sender = BulkSender::new(graph.address(1, 9), Instant::ZERO);
    let flow = graph.next_flow();
    graph.add(0, 9, flow, Box::new(TransportAgent::new(endpoint(1), sender)));
    graph.add(1, 9, flow, Box::new(TransportAgent::new(listener, BulkReceiver::new())));
    let mut world = graph.start(1);
    let real_time = stopwatch(|| world.run_for(Duration::from_secs(seconds)));
    let hops = world.network_counters().packet_hops;
    let rate = hops as f64 / real_time.as_secs_f64() / 1e6;
    println!("{rate:.2} million packet-hops per second ({hops} in {:.2} s)", real_time.as_secs_f64());
}

#[expect(clippy::disallowed_methods, reason = "this program measures real time")]
fn stopwatch(work: impl FnOnce()) -> Duration {
    let start = std::time::Instant::now();
    work();
    start.elapsed()
}
