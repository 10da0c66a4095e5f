//! Throughput and completion times of controllers at 1 Gbit/s, 100 ms RTT and a queue of one BDP, at three loss rates.
//!
//! `cargo run --release -p farhaul-sim --example controllers [name …]`

use farhaul_netem::{LossSpec, PathSpec, QueueSize};
use farhaul_proto::{Config, Endpoint, Entropy, Mode, controller_factory, udt};
use farhaul_sim::measure::throughput::{goodput, retransmission_share};
use farhaul_sim::topology::path::{CALLER, LISTENER, Pair};
use farhaul_sim::{Simulation, Workload};
use farhaul_units::{Duration, Instant, Rate};

const LINK: Rate = Rate::from_megabits_per_second(1_000);
const ROUND_TRIP: Duration = Duration::from_millis(100);
const START_UP: Duration = Duration::from_secs(10);
const END: Duration = Duration::from_secs(40);
const PATIENCE: Duration = Duration::from_secs(600);

fn main() {
    let mut names: Vec<String> = std::env::args().skip(1).collect();
    if names.is_empty() {
        names = ["union", "udt"].map(String::from).to_vec();
    }
    println!("| controller | loss | goodput 0..10 s | goodput 10..40 s | retransmitted | 1 MB | 1 GB |");
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    for name in &names {
        for loss in [0.0, 1e-4, 1e-3] {
            println!("{}", row(name, loss));
        }
    }
}

fn row(name: &str, loss: f64) -> String {
    let mut run = start(name, loss, Workload::send_without_end());
    run.sample_every(Duration::from_millis(100));
    run.run_for(END);
    let samples = run.samples().expect("they were asked for");
    let rate = |from: Duration, to: Duration| {
        let id = run.flows(LISTENER)[0].id();
        goodput(samples, LISTENER, id, Instant::ZERO + from, Instant::ZERO + to).map_or("-".into(), |r| r.to_string())
    };
    let snapshots: Vec<_> = samples.flow(CALLER, run.flows(CALLER)[0].id()).collect();
    let (first, last) = (snapshots[0].1, snapshots[snapshots.len() - 1].1);
    let again = 100.0 * retransmission_share(first, last);
    let (first_part, rest) = (rate(Duration::ZERO, START_UP), rate(START_UP, END));
    let [small, large] = [1_000_000, 1_000_000_000].map(|bytes| completion_time(name, loss, bytes));
    format!("| {name} | {loss:.0e} | {first_part} | {rest} | {again:.2} % | {small} | {large} |")
}

/// Time from the call until the last byte is read.
fn completion_time(name: &str, loss: f64, bytes: u64) -> String {
    let mut run = start(name, loss, Workload::send(bytes));
    run.run_until_done(PATIENCE);
    let complete = run.flows(LISTENER).first().and_then(|flow| flow.received().complete_at);
    complete.map_or("-".into(), |at| format!("{:.2} s", (at - Instant::ZERO).as_secs_f64()))
}

fn start(controller: &str, loss: f64, workload: Workload) -> Simulation<Endpoint> {
    let clean =
        PathSpec { rate: Some(LINK), delay: ROUND_TRIP / 2, queue: QueueSize::Bdp(ROUND_TRIP), ..PathSpec::default() };
    let up = PathSpec { loss: (loss > 0.0).then_some(LossSpec::Bernoulli(loss)), ..clean.clone() };
    let mut listener = endpoint(controller, 2);
    listener.listen(Mode::Stream).expect("UDT has streams");
    Pair::new(endpoint(controller, 1), listener).up(up).down(clean).caller(workload).seed(1).start()
}

fn endpoint(controller: &str, seed: u64) -> Endpoint {
    let controller = controller_factory(controller.parse().expect("a controller of the registry"));
    udt::endpoint(Config { controller, ..Config::default() }, Entropy { cookie_key: [0; 16], seed })
}
