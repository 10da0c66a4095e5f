//! State of a sender from its first packet on, one line per interval.
//!
//! `cargo run --release -p farhaul-sim --example timeline [rate] [round trip] [loss] [interval] [end] [controller]`
//!
//! For example `1gbit 100ms 0.01% 100ms 5s udt`. The queue is one BDP.

use farhaul_netem::{LossSpec, PathSpec, QueueSize};
use farhaul_proto::{Config, Entropy, Mode, Stats, controller_factory, udt};
use farhaul_sim::Workload;
use farhaul_sim::topology::path::{CALLER, LISTENER, Pair, UP};
use farhaul_units::{Instant, Rate, parse_duration, parse_ratio};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let word = |place: usize, default: &'static str| words.get(place).map_or(default, String::as_str);
    let rate: Rate = word(0, "1gbit").parse().expect("a rate");
    let round_trip = parse_duration(word(1, "100ms")).expect("a round-trip time");
    let loss = parse_ratio(word(2, "0%")).expect("a loss rate");
    let interval = parse_duration(word(3, "100ms")).expect("an interval");
    let end = parse_duration(word(4, "5s")).expect("a time to stop");

    let clean =
        PathSpec { rate: Some(rate), delay: round_trip / 2, queue: QueueSize::Bdp(round_trip), ..PathSpec::default() };
    let up = PathSpec { loss: (loss > 0.0).then_some(LossSpec::Bernoulli(loss)), ..clean.clone() };
    let endpoint = |seed| {
        let controller = controller_factory(word(5, "union").parse().expect("a controller of the registry"));
        udt::endpoint(Config { controller, ..Config::default() }, Entropy { cookie_key: [0; 16], seed })
    };
    let mut listener = endpoint(2);
    listener.listen(Mode::Stream).expect("UDT has streams");
    let mut run =
        Pair::new(endpoint(1), listener).up(up).down(clean).caller(Workload::send_without_end()).seed(1).start();
    run.sample_every(interval);
    run.run_for(end);

    println!("    time | goodput Mbit/s |   cwnd | flight | period µs | rtt ms | arrival | capacity | resent | queue");
    let samples = run.samples().expect("they were asked for");
    let sender: Vec<_> = samples.flow(CALLER, run.flows(CALLER)[0].id()).collect();
    let receiver: Vec<_> = samples.flow(LISTENER, run.flows(LISTENER)[0].id()).collect();
    let mut before = (Instant::ZERO, 0);
    for &(at, stats) in &sender {
        let Some(&(_, received)) = receiver.iter().find(|&&(when, _)| when == at) else { continue };
        let queue = samples.queue(UP).find(|&(when, _)| when == at).map_or(0, |(_, packets)| packets);
        let now = (at, received.totals.bytes_read);
        let goodput = Rate::from_bytes_in(now.1 - before.1, now.0 - before.0).unwrap_or(Rate::ZERO);
        println!("{}", line(at, goodput, stats, queue));
        before = now;
    }
}

fn line(at: Instant, goodput: Rate, stats: &Stats, queue: u64) -> String {
    format!(
        "{:8.3} | {:14.1} | {:6} | {:6} | {:9.3} | {:6.1} | {:7.0} | {:8.0} | {:6} | {queue:5}",
        at.as_micros() as f64 / 1e6,
        goodput.bits_per_second() as f64 / 1e6,
        stats.cwnd,
        stats.in_flight,
        stats.send_period.as_micros(),
        stats.rtt.as_secs_f64() * 1e3,
        stats.arrival_rate.packets_per_second(),
        stats.capacity.packets_per_second(),
        stats.totals.packets_retransmitted,
    )
}
