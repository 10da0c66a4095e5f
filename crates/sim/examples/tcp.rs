//! One or two TCP flows between two nodes, with the settings of the ns-2 agents in `cargo xtask bench tcp` and `interop --ns2`.
//!
//! `cargo run --release -p farhaul-sim --example tcp -- RECOVERY RATE DELAY_MS QUEUE LOSS SEED SECONDS CUT WINDOW [SECOND]`
//!
//! RECOVERY may be linux-LAW: SACK and that law, as ns-2 has those of the Linux kernel. With SECOND, another flow begins at that time.
//! Data is lost behind the queue with probability LOSS, acknowledgements are not. Prints a line for each flow: the segments
//! acknowledged at CUT and at SECONDS, then data segments sent, retransmissions, time-outs, and packet hops of all flows.

use farhaul_cc::Spec;
use farhaul_netem::{LossSpec, PathSpec, QueueSize};
use farhaul_sim::agent::tcp::{ReceiverConfig, Recovery, RtoConfig, SenderConfig, TcpSink, TcpSource};
use farhaul_sim::topology::graph::Graph;
use farhaul_units::{Duration, Instant, Rate};

/// Long enough that no acknowledgement is dropped.
const ACK_QUEUE: QueueSize = QueueSize::Packets(1_000_000);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [recovery, rate, delay, queue, loss, seed, seconds, cut, window, second @ ..] = arguments.as_slice() else {
        panic!("RECOVERY RATE DELAY_MS QUEUE LOSS SEED SECONDS CUT WINDOW [SECOND]");
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
    let starts: Vec<u64> = std::iter::once(0).chain(second.iter().map(|start| number(start))).collect();
    for (port, start) in (9..).zip(&starts) {
        let (to, flow) = (graph.address(1, port), graph.next_flow());
        let law = || controller.parse::<Spec>().expect("is known").build(1);
        let source = TcpSource::new(to, Instant::ZERO + Duration::from_secs(*start), sender, law);
        let sink = TcpSink::new(ReceiverConfig { delayed_ack: None, ..ReceiverConfig::default() });
        graph.add(0, port, flow, Box::new(source));
        graph.add(1, port, flow, Box::new(sink));
    }
    let mut world = graph.start(number(seed));
    let totals = [cut, seconds].map(|end| {
        world.run_until(Instant::ZERO + Duration::from_secs(number(end)));
        let mut stats = Vec::new();
        (0..starts.len()).for_each(|flow| world.agent(2 * flow).sample(world.now(), &mut stats));
        stats
    });
    for flow in 0..starts.len() {
        assert_eq!(world.agent(2 * flow).failure(), None);
    }
    let hops = world.network_counters().packet_hops;
    for (at_cut, at_end) in totals[0].iter().zip(&totals[1]) {
        let (at_cut, at_end) = (at_cut.1.totals, at_end.1.totals);
        let acknowledged = [at_cut, at_end].map(|totals| totals.bytes_acked / u64::from(sender.payload));
        let (sent, repeated) = (at_end.packets_sent, at_end.packets_retransmitted);
        println!("{} {} {sent} {repeated} {} {hops}", acknowledged[0], acknowledged[1], at_end.timeouts);
    }
}

/// The settings of both simulators: 1460 bytes of data, a handshake of one RTT, an initial window of two packets. The
/// clock of 10 ms takes one RTT sample at a time, but those of Linux' agents take one of each acknowledgement. Time-outs last at least
/// 200 ms.
fn sender(recovery: &str, max_window: u32) -> (SenderConfig, &str) {
    let law = recovery.strip_prefix("linux-");
    let (recovery, controller) = match recovery {
        "tahoe" => (Recovery::Tahoe, "tahoe"),
        "reno" => (Recovery::Reno, "reno"),
        "newreno" => (Recovery::NewReno, "reno"),
        "sack" => (Recovery::Sack, "reno"),
        other => (
            Recovery::Sack,
            law.unwrap_or_else(|| panic!("unknown recovery '{other}': tahoe, reno, newreno, sack, linux-LAW")),
        ),
    };
    let tick = Duration::from_millis(if law.is_some() { 1 } else { 10 });
    let rto = RtoConfig { min: Duration::from_millis(200), tick, ..RtoConfig::default() };
    let config = SenderConfig {
        recovery,
        initial_window: 2,
        max_window,
        handshake: true,
        timestamps: law.is_some(),
        rto,
        ..SenderConfig::default()
    };
    (config, controller)
}

fn number<T: std::str::FromStr>(text: &str) -> T {
    text.parse().unwrap_or_else(|_| panic!("'{text}' is not a number"))
}
