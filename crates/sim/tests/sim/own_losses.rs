//! A receiver whose program is not scheduled at times, and whose socket overflows meanwhile.

use farhaul_netem::{LossSpec, PathSpec, QueueSize};
use farhaul_proto::{Config, Entropy, Mode, Stats, controller_factory, udt};
use farhaul_sim::agent::bulk::{BulkReceiver, BulkSender};
use farhaul_sim::agent::late::{LateAgent, Lateness};
use farhaul_sim::{Agent, TransportAgent};

use farhaul_sim::topology::graph::Graph;
use farhaul_units::{Duration, Instant, Rate};

const SECONDS: u64 = 5;
/// What Linux gives a socket without rights and settings, in packets on the wire.
const BUFFER: u64 = 212_992;

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A host that others keep busy: it is away for 4 to 12 ms, about every 20 ms.
fn busy(buffer: u64) -> Lateness {
    Lateness {
        every: millis(20),
        least: millis(4),
        most: millis(12),
        pause: millis(0),
        pauses: 0.0,
        buffer: Some(buffer),
    }
}

/// Both ends after five seconds over 1 Gbit/s: the sender, and the receiver.
fn run(controller: &str, delay: Duration, loss: f64, lateness: Option<Lateness>) -> [Stats; 2] {
    let endpoint = |seed| {
        let controller = controller_factory(controller.parse().expect("the tests name controllers that exist"));
        udt::endpoint(Config { controller, ..Config::default() }, Entropy { cookie_key: [0; 16], seed })
    };
    let mut graph = Graph::new(2);
    let path = PathSpec {
        rate: Some(Rate::from_megabits_per_second(1_000)),
        delay,
        queue: QueueSize::Bdp(millis(20)),
        loss: (loss > 0.0).then_some(LossSpec::Bernoulli(loss)),
        ..PathSpec::default()
    };
    graph.duplex(0, 1, &path);
    let flow = graph.next_flow();
    let sender = BulkSender::new(graph.address(1, 9), Instant::ZERO);
    let mut listener = endpoint(2);
    listener.listen(Mode::Stream).expect("UDT has streams");
    graph.add(0, 9, flow, Box::new(TransportAgent::new(endpoint(1), sender)));
    let receiver: Box<dyn Agent> = Box::new(TransportAgent::new(listener, BulkReceiver::new()));
    graph.add(
        1,
        9,
        flow,
        match lateness {
            Some(lateness) => Box::new(LateAgent::new(receiver, lateness, 3)),
            None => receiver,
        },
    );
    let mut world = graph.start(1);
    world.run_until(Instant::ZERO + Duration::from_secs(SECONDS));
    [0, 1].map(|agent| {
        let mut connections = Vec::new();
        world.agent(agent).sample(world.now(), &mut connections);
        connections[0].1
    })
}

fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}

#[test]
fn a_sender_waits_for_a_host_whose_socket_overflows() {
    // Without the wait, a fifth dies, and the default law has 260 Mbit/s.
    for (law, delay) in [("fixed:rate=900mbit", 100), ("union", 100), ("cubic", 100)] {
        let [sender, receiver] = run(law, Duration::from_micros(delay), 0.0, Some(busy(BUFFER)));
        let totals = receiver.totals;
        assert_eq!(totals.packets_dropped, totals.packets_lost_receiving, "{law}");
        let died = share(totals.packets_dropped, sender.totals.packets_sent);
        assert!(died > 0.0 && died < 0.002, "{law}: {died}");
        let goodput = totals.bytes_read * 8 / SECONDS / 1_000_000;
        assert!(goodput > 600, "{law}: {goodput} Mbit/s");
    }
}

#[test]
fn a_window_of_the_buffer_slows_no_sender_down_whose_path_holds_more() {
    // What is on its way overflows the buffer, whatever the window is.
    let [sender, receiver] = run("fixed:rate=900mbit", millis(25), 0.0, Some(busy(BUFFER)));
    let totals = receiver.totals;
    assert!(totals.bytes_read * 8 / SECONDS > 550_000_000, "{totals:?}");
    assert!(share(totals.packets_dropped, sender.totals.packets_sent) > 0.1, "{totals:?}");
    assert_eq!(totals.packets_dropped, totals.packets_lost_receiving);
}

#[test]
fn what_the_path_loses_does_not_count_as_lost_in_the_host() {
    for late in [None, Some(busy(16 * BUFFER))] {
        let [_, receiver] = run("union", millis(5), 0.005, late);
        let totals = receiver.totals;
        assert!(totals.packets_lost_receiving > 100 && totals.packets_dropped == 0, "{late:?}: {totals:?}");
    }
}
