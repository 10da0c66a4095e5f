//! Shares of flows at one bottleneck with a queue of one BDP.
//!
//! `cargo run --release -p farhaul-sim --example sharing [rate] [round trip] [end] [controller …]`
//!
//! One flow per controller, for example `100mbit 16ms 60s union union udt`. The first quarter of the time does not
//! count.

use farhaul_netem::{PathSpec, QueueSize};
use farhaul_proto::{Config, Endpoint, Entropy, Mode, controller_factory, udt};
use farhaul_sim::Workload;
use farhaul_sim::measure::throughput::goodput;
use farhaul_sim::topology::dumbbell::{Dumbbell, Flank, RIGHTWARDS, listener};
use farhaul_units::{Duration, Instant, Rate, parse_duration};

/// Runs of each setting, each with another seed.
const SEEDS: u64 = 5;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let word = |place: usize, default: &'static str| words.get(place).map_or(default, String::as_str);
    let rate: Rate = word(0, "100mbit").parse().expect("a rate");
    let round_trip = parse_duration(word(1, "16ms")).expect("a round-trip time");
    let end = parse_duration(word(2, "60s")).expect("a time to stop");
    let mut controllers: Vec<&str> = words.iter().skip(3).map(String::as_str).collect();
    if controllers.is_empty() {
        controllers = vec!["union"; 4];
    }
    println!("| seed | Mbit/s of {} | sum | Jain | lost at the queue |", controllers.join(", "));
    println!("| --- | --- | --- | --- | --- |");
    for seed in 1..=SEEDS {
        println!("{}", row(rate, round_trip, end, &controllers, seed));
    }
}

fn row(rate: Rate, round_trip: Duration, end: Duration, controllers: &[&str], seed: u64) -> String {
    let access = Duration::from_micros(500);
    let bottleneck = PathSpec {
        rate: Some(rate),
        delay: (round_trip / 2).saturating_sub(access * 2),
        queue: QueueSize::Bdp(round_trip),
        ..PathSpec::default()
    };
    let mut net = Dumbbell::new(bottleneck);
    for (pair, controller) in controllers.iter().enumerate() {
        let number = 100 * seed + 2 * pair as u64;
        let mut far = endpoint("udt", number + 1);
        far.listen(Mode::Stream).expect("UDT has streams");
        net = net.pair(Flank {
            caller: endpoint(controller, number),
            listener: far,
            access: PathSpec {
                rate: Some(Rate::from_megabits_per_second(10_000)),
                delay: access,
                ..PathSpec::default()
            },
            workload: Workload::send_without_end(),
            begins: Instant::ZERO + Duration::from_millis(37 * pair as u64 * seed),
        });
    }
    let mut run = net.seed(seed).start();
    run.sample_every(Duration::from_millis(100));
    run.run_for(end);
    let samples = run.samples().expect("they were asked for");
    let shares: Vec<f64> = (0..controllers.len())
        .map(|pair| {
            let host = listener(pair);
            let id = run.flows(host)[0].id();
            let measured = goodput(samples, host, id, Instant::ZERO + end / 4, Instant::ZERO + end);
            measured.map_or(0.0, |rate| rate.bits_per_second() as f64 / 1e6)
        })
        .collect();
    let (sum, squares) = (shares.iter().sum::<f64>(), shares.iter().map(|share| share * share).sum::<f64>());
    let jain = sum * sum / (shares.len() as f64 * squares);
    let each: Vec<String> = shares.iter().map(|share| format!("{share:.1}")).collect();
    let lost = run.link_counters(RIGHTWARDS).dropped_queue.packets;
    format!("| {seed} | {} | {sum:.1} | {jain:.3} | {lost} |", each.join(" "))
}

fn endpoint(controller: &str, seed: u64) -> Endpoint {
    let controller = controller_factory(controller.parse().expect("a controller of the registry"));
    udt::endpoint(Config { controller, ..Config::default() }, Entropy { cookie_key: [0; 16], seed })
}
