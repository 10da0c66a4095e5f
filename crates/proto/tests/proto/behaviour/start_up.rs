//! The first second of a transfer: losses must not hold it back for longer than their retransmissions take.

use farhaul_netem::{PathSpec, QueueSize};
use farhaul_proto::{Config, Endpoint, Mode, Stats, Streams, controller_factory};
use farhaul_sim::Workload;
use farhaul_sim::topology::path::{CALLER, LISTENER, Pair};
use farhaul_units::{Duration, Rate};

use crate::behaviour::scenario::{endpoint, random_loss};

const LINK: Rate = Rate::from_megabits_per_second(1_000);
const ROUND_TRIP: Duration = Duration::from_millis(100);
/// Bandwidth-delay product, and the memory that each side may take: twice that, and a fixed amount.
const BDP: u64 = 12_500_000;
const MEMORY: u64 = 2 * BDP + (32 << 20);

/// The sender and the receiver of a transfer at a fixed rate, one second after the connection stands.
fn after_a_second(loss: f64, seed: u64) -> [Stats; 2] {
    let path = PathSpec {
        rate: Some(LINK),
        delay: ROUND_TRIP / 2,
        queue: QueueSize::Bdp(ROUND_TRIP),
        loss: if loss > 0.0 { random_loss(loss) } else { None },
        ..PathSpec::default()
    };
    let side = |seed| -> Endpoint {
        let controller = controller_factory("fixed:rate=930mbit".parse().expect("it is known"));
        endpoint(seed, Config { controller, ..Config::default() })
    };
    let mut answering = side(2 * seed + 1);
    answering.listen(Mode::Stream).expect("UDT has the mode");
    let pair = Pair::new(side(2 * seed), answering).path(path).seed(seed);
    let mut run = pair.caller(Workload::send_without_end()).listener(Workload::receive()).start();
    while run.flows(CALLER).first().is_none_or(|flow| flow.connected_at.is_none()) {
        run.run_for(Duration::from_millis(1));
    }
    run.run_for(Duration::from_secs(1));
    [CALLER, LISTENER]
        .map(|host| run.transport(host).stats(run.now(), run.flows(host)[0].id()).expect("it was not released"))
}

/// The median of several runs.
fn median(loss: f64, bytes: impl Fn(&Stats, &Stats) -> u64) -> u64 {
    let mut all: Vec<u64> = (0..9)
        .map(|seed| {
            let [sender, receiver] = after_a_second(loss, seed);
            assert!(sender.memory <= MEMORY && receiver.memory <= MEMORY, "{} {}", sender.memory, receiver.memory);
            bytes(&sender, &receiver)
        })
        .collect();
    all.sort_unstable();
    all[all.len() / 2]
}

// Slow: 1 Gbit/s for a second, nine times.
#[test]
fn a_loss_of_one_percent_leaves_the_first_second_all_but_the_time_of_retransmissions() {
    let clean = after_a_second(0.0, 0)[1].totals;
    let arrived = median(1e-2, |_, receiver| receiver.totals.bytes_received);
    assert!(arrived * 100 >= clean.bytes_received * 96, "{arrived} of {} bytes arrived", clean.bytes_received);
    // The reader waits for an RTT behind each loss, and for two if the retransmission is lost, too.
    let read = median(1e-2, |_, receiver| receiver.totals.bytes_read);
    assert!(read * 100 >= clean.bytes_read * 80, "{read} of {} bytes were read", clean.bytes_read);
}

#[test]
fn lost_retransmissions_are_repeated_without_many_duplicates() {
    let [sender, receiver] = after_a_second(1e-2, 3);
    let totals = sender.totals;
    let lost = totals.packets_sent / 100;
    let most = lost + lost / 5;
    assert!(totals.packets_retransmitted < most, "{} of {} packets", totals.packets_retransmitted, totals.packets_sent);
    assert!(receiver.totals.packets_duplicate * 200 < totals.packets_sent, "{:?}", receiver.totals);
}
