//! Mean goodput of controllers on one path, one line per seed, to compare the generations of UDT.
//!
//! `cargo run --release -p farhaul-sim --example generations rate round-trip loss from to seeds queue controller …`
//!
//! The goodput counts in `from..to`. `queue` is a number of packets or `bdp`. `queue/8192` also limits the receiver's
//! window to 8192 packets, the default of libudt. Example: `1gbit 25ms 0.001% 0s 60s 1..5 bdp udt udt-2011`.

use farhaul_netem::{LossSpec, PathSpec, QueueSize};
use farhaul_proto::{Config, Endpoint, Entropy, Mode, controller_factory, udt};
use farhaul_sim::Workload;
use farhaul_sim::measure::throughput::{goodput, retransmission_share};
use farhaul_sim::topology::path::{CALLER, LISTENER, Pair};
use farhaul_units::{Duration, Instant, Rate, parse_duration, parse_ratio};

struct Setting {
    rate: Rate,
    round_trip: Duration,
    loss: f64,
    from: Duration,
    to: Duration,
    queue: QueueSize,
    window: u32,
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    assert!(words.len() > 7, "see the first lines of this example for its arguments");
    let (queue, window) = words[6].split_once('/').unwrap_or((&words[6], ""));
    let round_trip = parse_duration(&words[1]).expect("a round-trip time");
    let setting = Setting {
        rate: words[0].parse().expect("a rate"),
        round_trip,
        loss: parse_ratio(&words[2]).expect("a loss rate"),
        from: parse_duration(&words[3]).expect("a time to begin"),
        to: parse_duration(&words[4]).expect("a time to stop"),
        queue: queue.parse().map_or(QueueSize::Bdp(round_trip), QueueSize::Packets),
        window: window.parse().unwrap_or(Config::default().max_flow_window),
    };
    let (first, last) = words[5].split_once("..").expect("seeds such as 1..5");
    let seeds = first.parse::<u64>().expect("a seed")..=last.parse().expect("a seed");
    println!("controller,seed,goodput Mbit/s,retransmitted %");
    for controller in &words[7..] {
        for seed in seeds.clone() {
            let (megabits, again) = run(&setting, controller, seed);
            println!("{controller},{seed},{megabits:.2},{:.3}", 100.0 * again);
        }
    }
}

/// Goodput in Mbit/s and the share of retransmitted packets.
fn run(setting: &Setting, controller: &str, seed: u64) -> (f64, f64) {
    let clean = PathSpec {
        rate: Some(setting.rate),
        delay: setting.round_trip / 2,
        queue: setting.queue,
        ..PathSpec::default()
    };
    let loss = (setting.loss > 0.0).then_some(LossSpec::Bernoulli(setting.loss));
    let up = PathSpec { loss, ..clean.clone() };
    let mut listener = endpoint(controller, setting.window, 2 * seed + 1);
    listener.listen(Mode::Stream).expect("UDT has streams");
    let pair = Pair::new(endpoint(controller, setting.window, 2 * seed), listener).up(up).down(clean);
    let mut run = pair.caller(Workload::send_without_end()).seed(seed).start();
    run.sample_every(Duration::from_millis(100));
    run.run_for(setting.to);
    let samples = run.samples().expect("they were asked for");
    let (from, to) = (Instant::ZERO + setting.from, Instant::ZERO + setting.to);
    let rate = goodput(samples, LISTENER, run.flows(LISTENER)[0].id(), from, to);
    let sent: Vec<_> = samples.flow(CALLER, run.flows(CALLER)[0].id()).collect();
    let again = retransmission_share(sent[0].1, sent[sent.len() - 1].1);
    (rate.map_or(0.0, |rate| rate.bits_per_second() as f64 / 1e6), again)
}

fn endpoint(controller: &str, max_flow_window: u32, seed: u64) -> Endpoint {
    let controller = controller_factory(controller.parse().expect("a controller of the registry"));
    udt::endpoint(Config { controller, max_flow_window, ..Config::default() }, Entropy { cookie_key: [0; 16], seed })
}
