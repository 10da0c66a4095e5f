//! TCP's window laws on UDT4, the controllers of the TCP agents on the other transport; and a law of a model on both.

use farhaul_netem::{LossSpec, PathSpec, QueueSize};
use farhaul_proto::{Config, Endpoint, Entropy, Mode, controller_factory, udt};
use farhaul_sim::agent::tcp::{ReceiverConfig, Recovery, SenderConfig, TcpSink, TcpSource};
use farhaul_sim::topology::graph::Graph;
use farhaul_sim::topology::path::{CALLER, LISTENER, Pair};
use farhaul_sim::{Simulation, Workload};
use farhaul_units::{Duration, Instant, Rate};

const FAST: Rate = Rate::from_megabits_per_second(100);
const SLOW: Rate = Rate::from_megabits_per_second(10);
const ROUND_TRIP: Duration = Duration::from_millis(100);

fn start(controller: &str, link: Rate, loss: f64, workload: Workload) -> Simulation<Endpoint> {
    let path = PathSpec {
        rate: Some(link),
        delay: ROUND_TRIP / 2,
        queue: QueueSize::Bdp(ROUND_TRIP),
        loss: (loss > 0.0).then_some(LossSpec::Bernoulli(loss)),
        seed: 3,
        ..PathSpec::default()
    };
    let endpoint = |seed| {
        let controller = controller_factory(controller.parse().expect("the tests name controllers that exist"));
        udt::endpoint(Config { controller, ..Config::default() }, Entropy { cookie_key: [0; 16], seed })
    };
    let mut listener = endpoint(2);
    listener.listen(Mode::Stream).expect("UDT has the mode");
    Pair::new(endpoint(1), listener).path(path).caller(workload).start()
}

/// Megabits of payload per second.
fn goodput(controller: &str, link: Rate, loss: f64) -> f64 {
    let mut run = start(controller, link, loss, Workload::send_without_end());
    run.run_for(Duration::from_secs(300));
    run.flows(LISTENER)[0].received().bytes as f64 * 8.0 / 300e6
}

#[test]
fn all_data_arrives_under_every_window_controller() {
    for controller in ["reno", "cubic", "tahoe"] {
        let mut run = start(controller, FAST, 0.001, Workload::send(5_000_000));
        assert!(run.run_until_done(Duration::from_secs(300)), "{controller}");
        assert_eq!(run.missing(CALLER, LISTENER), Vec::<String>::new(), "{controller}");
    }
}

/// Additive increase and halving settle at 1.31/(RTT·√p) packets a second (Ott, Kemperman and Mathis). UDT acknowledges
/// up to 10 ms late, which adds to the RTT.
#[test]
fn reno_follows_the_square_root_law_and_tahoe_stays_below() {
    let law = 1.31 / (0.1 * 0.001f64.sqrt()) * 1_456.0 * 8.0 / 1e6;
    let (reno, tahoe) = (goodput("reno", FAST, 0.001), goodput("tahoe", FAST, 0.001));
    assert!((0.8..1.1).contains(&(reno / law)), "{reno:.2} Mbit/s where the law says {law:.2}");
    assert!((0.5..0.97).contains(&(tahoe / reno)), "tahoe {tahoe:.2}, reno {reno:.2}");
}

/// On a short path with losses CUBIC grows like Reno and reduces less, for the same throughput (RFC 9438 §4.3). Both
/// share UDT4's clock of one acknowledgement per ten milliseconds.
// Slow: four runs of 300 s in virtual time. In a shorter time, losses of one packet in 10000 would be few.
#[test]
fn cubic_is_as_fast_as_reno_where_reno_does_well_and_faster_on_long_fast_paths() {
    let (reno, cubic) = (goodput("reno", FAST, 0.01), goodput("cubic", FAST, 0.01));
    assert!((0.8..1.3).contains(&(cubic / reno)), "cubic {cubic:.2}, reno {reno:.2}");
    let (reno, cubic) = (goodput("reno", FAST, 0.0001), goodput("cubic", FAST, 0.0001));
    assert!(cubic / reno > 1.2, "cubic {cubic:.2}, reno {reno:.2}");
}

#[test]
fn reno_fills_a_link_whose_queue_holds_a_round_trip() {
    let goodput = goodput("reno", SLOW, 0.0);
    assert!(goodput > 9.2, "{goodput:.2} of 10 Mbit/s");
}

/// Simulated TCP reports no deliveries, so this law measures there by acknowledgements.
#[test]
fn c4_fills_a_link_under_both_transports() {
    let udt = goodput("c4", SLOW, 0.0);
    assert!(udt > 9.2, "{udt:.2} of 10 Mbit/s");
    let link =
        PathSpec { rate: Some(SLOW), delay: ROUND_TRIP / 2, queue: QueueSize::Bdp(ROUND_TRIP), ..PathSpec::default() };
    let mut graph = Graph::new(2);
    graph.simplex(0, 1, &link);
    graph.simplex(1, 0, &link);
    let (to, flow) = (graph.address(1, 9), graph.next_flow());
    let law = || "c4".parse::<farhaul_cc::Spec>().expect("it is built in").build(1);
    let config = SenderConfig { recovery: Recovery::Sack, ..SenderConfig::default() };
    graph.add(0, 9, flow, Box::new(TcpSource::new(to, Instant::ZERO, config, law)));
    graph.add(1, 9, flow, Box::new(TcpSink::new(ReceiverConfig::default())));
    let mut world = graph.start(1);
    world.run_until(Instant::ZERO + Duration::from_secs(60));
    let mut stats = Vec::new();
    world.agent(0).sample(world.now(), &mut stats);
    let tcp = stats[0].1.totals.bytes_acked as f64 * 8.0 / 60e6;
    assert!(tcp > 9.0, "{tcp:.2} of 10 Mbit/s");
}
