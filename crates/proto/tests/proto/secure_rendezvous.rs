//! Two sides that call each other under packet protection, in virtual time.
#![expect(clippy::unwrap_used, reason = "in tests a failure is a panic")]

use farhaul_netem::{LossSpec, PathSpec, QueueSize};
use farhaul_proto::secure::Null;
use farhaul_proto::udt::ConnectOptions;
use farhaul_proto::{Config, Endpoint, Entropy, Event, secure};
use farhaul_sim::topology::path::{CALLER, LISTENER, Pair, address};
use farhaul_sim::{Simulation, Workload};
use farhaul_units::{Duration, Rate};

const LENGTH: u64 = 100_000;
/// Longest virtual time of a test.
const LIMIT: Duration = Duration::from_secs(300);

type Run = Simulation<Endpoint>;

fn endpoint(seed: u64) -> Endpoint {
    let entropy = Entropy { cookie_key: [seed as u8; 16], seed };
    secure::endpoint(Config::default(), entropy, Box::new(Null::new(seed)))
}

/// 100 Mbit/s and an RTT of 20 ms.
fn path(loss: f64) -> PathSpec {
    let delay = Duration::from_millis(10);
    let rate = Some(Rate::from_megabits_per_second(100));
    let loss = Some(LossSpec::Bernoulli(loss)).filter(|_| loss > 0.0);
    PathSpec { rate, delay, queue: QueueSize::Bdp(2 * delay), loss, ..PathSpec::default() }
}

fn meet(run: &mut Run, host: usize) {
    let options = ConnectOptions { rendezvous: true, ..ConnectOptions::default() };
    run.command(host, |now, endpoint, traffic| {
        traffic.adopt(endpoint.connect_with(now, address(1 - host), options).unwrap());
    });
}

/// Both call, the second `apart` after the first.
fn rendezvous(seed: u64, apart: Duration, path: PathSpec, workload: Workload) -> Run {
    let [left, right] = [0, 1].map(|side| endpoint(2 * seed + side));
    let pair = Pair::new(left, right).path(path).calls([]).seed(seed);
    let mut run = pair.caller(workload).listener(workload).start();
    meet(&mut run, CALLER);
    run.run_for(apart);
    meet(&mut run, LISTENER);
    run
}

fn both_connected(run: &Run) -> bool {
    [CALLER, LISTENER]
        .into_iter()
        .all(|host| run.application(host).log().iter().any(|(_, event)| matches!(event, Event::Connected(_))))
}

#[test]
fn both_sides_may_call_at_any_time_within_the_timeout() {
    for (seed, apart) in [0, 1, 5, 10, 19, 20, 21, 100, 900, 5_000, 25_000].into_iter().enumerate() {
        let mut run = rendezvous(seed as u64, Duration::from_millis(apart), path(0.0), Workload::exchange(LENGTH));
        assert!(run.run_until_done(LIMIT), "{apart} ms apart");
        assert_eq!([CALLER, LISTENER].map(|host| run.flows(host).len()), [1, 1], "{apart} ms apart");
        assert_eq!(
            [run.missing(CALLER, LISTENER), run.missing(LISTENER, CALLER)].concat(),
            [""; 0],
            "{apart} ms apart"
        );
    }
}

/// The first packets of either side may be lost, and those of the second round.
#[test]
fn data_of_both_sides_arrives_after_a_rendezvous_over_a_lossy_path() {
    for seed in 100..160 {
        let apart = Duration::from_millis(seed % 7 * 10);
        let mut run = rendezvous(seed, apart, path(0.1), Workload::exchange(LENGTH));
        assert!(run.run_until_done(LIMIT), "seed {seed}");
        assert_eq!([run.missing(CALLER, LISTENER), run.missing(LISTENER, CALLER)].concat(), [""; 0], "seed {seed}");
    }
}

#[test]
fn of_three_hundred_rendezvous_over_thirty_percent_of_loss_299_succeed() {
    let mut connected = 0;
    for seed in 1_000..1_300 {
        let apart = Duration::from_millis(seed % 11 * 300);
        let mut run = rendezvous(seed, apart, path(0.3), Workload::exchange(1_000));
        let end = run.now() + Duration::from_secs(29);
        connected += u32::from(run.run_until_true(end, both_connected));
    }
    assert!(connected >= 299, "{connected} of 300");
}
