//! The cap on the sending rate counts every byte on the path, and changes while data moves.

use farhaul_netem::{LossSpec, PathSpec, QueueSize};
use farhaul_proto::{Config, Endpoint, Entropy, Mode, controller_factory, udt};
use farhaul_sim::topology::path::{CALLER, Pair, UP};
use farhaul_sim::{Simulation, Workload};
use farhaul_units::{Duration, Rate};

const CAP: Rate = Rate::from_megabits_per_second(10);
const TENTH: Rate = Rate::from_megabits_per_second(1);
const TWICE: Rate = Rate::from_megabits_per_second(20);
const SECONDS: u64 = 5;

fn start(controller: &str, loss: f64, cap: Option<Rate>) -> Simulation<Endpoint> {
    let path = PathSpec {
        rate: Some(Rate::from_megabits_per_second(100)),
        delay: Duration::from_millis(10),
        queue: QueueSize::Bdp(Duration::from_millis(20)),
        loss: (loss > 0.0).then_some(LossSpec::Bernoulli(loss)),
        ..PathSpec::default()
    };
    let endpoint = |seed| {
        let controller = controller_factory(controller.parse().expect("the tests name controllers that exist"));
        let config = Config { controller, max_rate: cap, ..Config::default() };
        udt::endpoint(config, Entropy { cookie_key: [0; 16], seed })
    };
    let mut listener = endpoint(2);
    listener.listen(Mode::Stream).expect("UDT has streams");
    Pair::new(endpoint(1), listener).path(path).caller(Workload::send_without_end()).seed(1).start()
}

/// Runs on, and returns the rate of everything that the sender put on the path, IP and UDP headers included, as a multiple of the cap.
fn rate_of_wire(run: &mut Simulation<Endpoint>) -> f64 {
    let before = run.link_counters(UP).pushed.bytes;
    run.run_for(Duration::from_secs(SECONDS));
    let bytes = run.link_counters(UP).pushed.bytes - before;
    (bytes * 8) as f64 / (SECONDS * CAP.bits_per_second()) as f64
}

#[test]
fn headers_and_retransmissions_count() {
    for (controller, loss) in
        [("union", 0.0), ("union", 0.01), ("udt", 0.0), ("cubic", 0.0), ("fixed:rate=50mbit", 0.05)]
    {
        let mut run = start(controller, loss, Some(CAP));
        let share = rate_of_wire(&mut run);
        assert!((0.9..1.01).contains(&share), "{controller} with {loss} lost: {share:.3} of the cap");
    }
}

#[test]
fn a_cap_is_set_changed_and_taken_away_while_data_moves() {
    let mut run = start("union", 0.0, None);
    let set = |run: &mut Simulation<Endpoint>, cap: Option<Rate>| {
        let id = run.flows(CALLER)[0].id();
        assert!(run.command(CALLER, |now, endpoint, _| endpoint.set_max_rate(now, id, cap)));
        run.run_for(Duration::from_millis(100));
        rate_of_wire(run)
    };
    run.run_for(Duration::from_secs(2));
    let shares = [Some(CAP), Some(TENTH), Some(TWICE), None].map(|cap| set(&mut run, cap));
    let capped = shares[..3].iter().zip([1.0, 0.1, 2.0]).all(|(share, cap)| (0.9 * cap..1.05 * cap).contains(share));
    assert!(capped && shares[3] > 8.0, "{shares:?}");
}
