//! Virtual seconds simulated per real second: one UDT flow at 1 Gbit/s and 100 ms RTT.
//!
//! `cargo run --release -p farhaul-sim --example speed [virtual seconds]`

use farhaul_netem::{PathSpec, QueueSize};
use farhaul_proto::{Config, Entropy, Mode, udt};
use farhaul_sim::Workload;
use farhaul_sim::topology::path::{LISTENER, Pair};
use farhaul_units::{Duration, Rate};

fn main() {
    let seconds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(20);
    let round_trip = Duration::from_millis(100);
    let path = PathSpec {
        rate: Some(Rate::from_megabits_per_second(1_000)),
        delay: round_trip / 2,
        queue: QueueSize::Bdp(round_trip),
        ..PathSpec::default()
    };
    let endpoint = |seed| udt::endpoint(Config::default(), Entropy { cookie_key: [0; 16], seed });
    let mut listener = endpoint(2);
    listener.listen(Mode::Stream).expect("UDT has streams");
    let mut run = Pair::new(endpoint(1), listener).path(path).caller(Workload::send_without_end()).start();
    let virtual_time = Duration::from_secs(seconds);
    let real_time = stopwatch(|| run.run_for(virtual_time));
    let bytes = run.flows(LISTENER)[0].received().bytes;
    let goodput = Rate::from_bytes_in(bytes, virtual_time).unwrap_or(Rate::ZERO);
    let ratio = virtual_time.as_secs_f64() / real_time.as_secs_f64();
    println!("{ratio:.1} virtual seconds per real second ({goodput} of goodput simulated)");
}

#[expect(clippy::disallowed_methods, reason = "this program measures real time")]
fn stopwatch(work: impl FnOnce()) -> Duration {
    let start = std::time::Instant::now();
    work();
    start.elapsed()
}
