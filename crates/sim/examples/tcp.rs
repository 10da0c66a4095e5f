//! One TCP flow between two nodes, with the settings of the ns-2 agents in `cargo xtask bench tcp`.
//!
//! `cargo run --release -p farhaul-sim --example tcp -- RECOVERY RATE DELAY_MS QUEUE LOSS SEED SECONDS CUT WINDOW`
//!
//! Data is lost behind the queue with probability LOSS, acknowledgements are not. Prints the segments acknowledged at
//! CUT and at SECONDS, then data segments sent, retransmissions, time-outs, and packet hops.

use farhaul_cc::Spec;
use farhaul_netem::{LossSpec, PathSpec, QueueSize};
use farhaul_sim::agent::tcp::{ReceiverConfig, Recovery, RtoConfig, SenderConfig, TcpSink, TcpSource};
use farhaul_sim::topology::graph::Graph;
use farhaul_units::{Duration, Instant, Rate};

/// Long enough that no acknowledgement is dropped.
const ACK_QUEUE: QueueSize = QueueSize::Packets(1_000_000);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [recovery, rate, delay, queue, loss, seed, seconds, cut, window] = arguments.as_slice() else {
        panic!("RECOVERY RATE DELAY_MS QUEUE LOSS SEED SECONDS CUT WINDOW");
    };
    let loss: f64 = number(loss);
    let acks = PathSpec {
        rate: Some(rate.parse::<Rate>().expect("a rate such as 10mbit")),
        delay: Duration::from_secs_f64(number::<f64>(delay) / 1e3),
        queue: ACK_QUEUE,
        ..PathSpec::default()
    };
    let data = PathSpec {
        queue: QueueSize::Packets(number(queue)),
        loss: (loss > 0.0).then_some(LossSpec::Bernoulli(loss)),
        ..acks.clone()
    };
    let (sender, controller) = sender(recovery, number(window));
    let mut graph = Graph::new(2);
    graph.simplex(0, 1, &data);
    graph.simplex(1, 0, &acks);
    let to = graph.address(1, 9);
    let flow = graph.next_flow();
    let source = TcpSource::new(to, Instant::ZERO, sender, controller.parse::<Spec>().expect("is known").build(1));
    let sink = TcpSink::new(ReceiverConfig { delayed_ack: None, ..ReceiverConfig::default() });
    graph.add(0, 9, flow, Box::new(source));
    graph.add(1, 9, flow, Box::new(sink));
    let mut world = graph.start(number(seed));
    let mut totals = Vec::new();
    for end in [cut, seconds] {
        world.run_until(Instant::ZERO + Duration::from_secs(number(end)));
        let mut stats = Vec::new();
        world.agent(0).sample(world.now(), &mut stats);
        totals.push(stats[0].1.totals);
    }
    let acknowledged = |index: usize| totals[index].bytes_acked / u64::from(sender.payload);
    let (end, hops) = (totals[1], world.network_counters().packet_hops);
    let (sent, repeated) = (end.packets_sent, end.packets_retransmitted);
    println!("{} {} {sent} {repeated} {} {hops}", acknowledged(0), acknowledged(1), end.timeouts);
}

/// The settings of both simulators: 1460 bytes of data, a handshake of one RTT, an initial window of two packets. The
/// clock of 10 ms takes one RTT sample at a time. Time-outs last at least 200 ms.
fn sender(recovery: &str, max_window: u32) -> (SenderConfig, &'static str) {
    let (recovery, controller) = match recovery {
        "tahoe" => (Recovery::Tahoe, "tahoe"),
        "reno" => (Recovery::Reno, "reno"),
        "newreno" => (Recovery::NewReno, "reno"),
        "sack" => (Recovery::Sack, "reno"),
        other => panic!("unknown recovery '{other}': use tahoe, reno, newreno or sack"),
    };
    let rto = RtoConfig { min: Duration::from_millis(200), tick: Duration::from_millis(10), ..RtoConfig::default() };
    let config = SenderConfig {
        recovery,
        initial_window: 2,
        max_window,
        handshake: true,
        timestamps: false,
        rto,
        ..SenderConfig::default()
    };
    (config, controller)
}

fn number<T: std::str::FromStr>(text: &str) -> T {
    text.parse().unwrap_or_else(|_| panic!("'{text}' is not a number"))
}
