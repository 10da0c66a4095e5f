//! The price of a packet-hop: UDT flows with full state machines through one link of 1 Gbit/s, RTT 100 ms.
//!
//! `cargo run --release -p farhaul-sim --example hops [flows] [virtual seconds] [controller]`
//!
//! A packet crosses three links: that of its host, the shared one and that of the other host. The example `speed` sends and
//! checks incompressible bytes. Here, connections store no payload. On Linux alone.

use std::fs;

use farhaul_netem::{PathSpec, QueueSize};
use farhaul_proto::{Config, Endpoint, Entropy, Mode, controller_factory, udt};
use farhaul_sim::agent::bulk::{BulkReceiver, BulkSender};
use farhaul_sim::topology::graph::Graph;
use farhaul_sim::{Agent, TransportAgent, World};
use farhaul_units::{Duration, Instant, Rate};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let word = |place: usize, default: &'static str| words.get(place).map_or(default, String::as_str);
    let flows = word(0, "1").parse().expect("a number of flows");
    let seconds = word(1, "20").parse().expect("a number of seconds");
    let mut world = world(flows, word(2, "udt"));
    world.run_for(Duration::from_secs(seconds));
    let (hops, trace) = (world.network_counters().packet_hops, world.trace_hash().value());
    let (processor, memory) = (processor_seconds(), peak_mebibytes());
    let price = processor / hops as f64 * 1e6;
    println!("{price:.3} µs a packet-hop, {processor:.2} s, {memory:.1} MiB ({hops} packet-hops, trace {trace:016x})");
}

/// Flow `n` begins after `n` milliseconds.
fn world(flows: u64, controller: &str) -> World<dyn Agent> {
    let (round_trip, access) = (Duration::from_millis(100), Duration::from_millis(1));
    let gigabit = |number: u64| Some(Rate::from_megabits_per_second(1_000 * number));
    let shared = PathSpec {
        rate: gigabit(1),
        delay: round_trip / 2 - 2 * access,
        queue: QueueSize::Bdp(round_trip),
        ..PathSpec::default()
    };
    let access = PathSpec { rate: gigabit(10), delay: access, ..PathSpec::default() };
    let controller = controller_factory(controller.parse().expect("a controller of the registry"));
    let endpoint = |seed| -> Endpoint {
        let udt = udt::Config { blank_payload: true, ..udt::Config::default() };
        let config = Config { controller: controller.clone(), udt, ..Config::default() };
        udt::endpoint(config, Entropy { cookie_key: [0; 16], seed })
    };
    let mut graph = Graph::new(2);
    graph.duplex(0, 1, &shared);
    for number in 0..flows {
        let [left, right] = [graph.add_node(), graph.add_node()];
        graph.duplex(left, 0, &access);
        graph.duplex(1, right, &access);
        let flow = graph.next_flow();
        let mut listener = endpoint(2 * number + 1);
        listener.listen(Mode::Stream).expect("UDT has streams");
        let sender = BulkSender::new(graph.address(right, 9), Instant::ZERO + Duration::from_millis(number));
        graph.add(left, 9, flow, Box::new(TransportAgent::new(endpoint(2 * number), sender)));
        graph.add(right, 9, flow, Box::new(TransportAgent::new(listener, BulkReceiver::new())));
    }
    graph.start(1)
}

/// Time of this process on a processor. Other programs of the machine do not count.
fn processor_seconds() -> f64 {
    let text = fs::read_to_string("/proc/self/schedstat").expect("Linux counts the time");
    let nanos: f64 = text.split_whitespace().next().and_then(|word| word.parse().ok()).expect("nanoseconds come first");
    nanos / 1e9
}

fn peak_mebibytes() -> f64 {
    let text = fs::read_to_string("/proc/self/status").expect("Linux counts the memory");
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the peak is listed");
    let kibibytes: f64 = line.trim().trim_end_matches(" kB").parse().expect("a number of kB");
    kibibytes / 1024.0
}
