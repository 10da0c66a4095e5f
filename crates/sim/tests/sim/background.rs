//! The scavenger `ledbat`: what it takes beside other laws, and what it leaves of an empty path.

use farhaul_netem::{PathSpec, QueueSize};
use farhaul_proto::{Config, Endpoint, Entropy, Mode, controller_factory, udt};
use farhaul_sim::Workload;
use farhaul_sim::measure::throughput::goodput;
use farhaul_sim::topology::dumbbell::{Dumbbell, Flank, listener};
use farhaul_units::{Duration, Instant, Rate};

const LINK: Rate = Rate::from_megabits_per_second(100);
const ACCESS: Rate = Rate::from_megabits_per_second(10_000);
const ROUND_TRIP: Duration = Duration::from_millis(50);
/// Starts are over, and two or three slowdowns follow.
const FROM: Instant = Instant::from_nanos(5_000_000_000);
const TO: Instant = Instant::from_nanos(17_000_000_000);

fn endpoint(controller: &str, seed: u64) -> Endpoint {
    let controller = controller_factory(controller.parse().expect("the tests name controllers that exist"));
    udt::endpoint(Config { controller, ..Config::default() }, Entropy { cookie_key: [0; 16], seed })
}

/// The shares of the link of flows under these controllers, of which each begins later than the one before.
fn shares(controllers: &[&str], seed: u64) -> Vec<f64> {
    let access = Duration::from_micros(500);
    let bottleneck = PathSpec {
        rate: Some(LINK),
        delay: ROUND_TRIP / 2 - access * 2,
        queue: QueueSize::Bdp(ROUND_TRIP),
        ..PathSpec::default()
    };
    let mut net = Dumbbell::new(bottleneck).seed(seed);
    for (pair, controller) in controllers.iter().enumerate() {
        let number = 100 * seed + 2 * pair as u64;
        let mut far = endpoint("udt", number + 1);
        far.listen(Mode::Stream).expect("UDT has streams");
        net = net.pair(Flank {
            caller: endpoint(controller, number),
            listener: far,
            access: PathSpec { rate: Some(ACCESS), delay: access, ..PathSpec::default() },
            workload: Workload::send_without_end(),
            begins: Instant::ZERO + Duration::from_millis(370 * pair as u64 * seed),
        });
    }
    let mut run = net.start();
    run.sample_every(Duration::from_millis(100));
    run.run_until(TO);
    let samples = run.samples().expect("they were asked for");
    let share = |pair| {
        let host = listener(pair);
        let rate = goodput(samples, host, run.flows(host)[0].id(), FROM, TO).unwrap_or(Rate::ZERO);
        rate.bits_per_second() as f64 / LINK.bits_per_second() as f64
    };
    (0..controllers.len()).map(share).collect()
}

#[test]
fn alone_a_scavenger_fills_nine_tenths_of_a_link() {
    let share = shares(&["ledbat"], 1)[0];
    assert!(share > 0.9, "{share:.3}");
}

/// The draft's target of 60 ms takes 12 % beside CUBIC and 30 % beside `union`.
#[test]
fn beside_one_flow_of_another_law_a_scavenger_takes_less_than_a_twentieth() {
    for seed in 1..=3 {
        for law in ["cubic", "union"] {
            let comes_later = seed % 2 == 0;
            let shares = shares(&if comes_later { [law, "ledbat"] } else { ["ledbat", law] }, seed);
            let [scavenger, other] = [usize::from(comes_later), usize::from(!comes_later)].map(|flow| shares[flow]);
            assert!(scavenger < 0.05, "beside {law}, seed {seed}: {scavenger:.3}");
            assert!(other > 0.9, "beside {law}, seed {seed}: {other:.3} for the other one");
        }
    }
}
