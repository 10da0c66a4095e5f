//! The packets in flight of one flow over a minute, as a small drawing.

use std::fmt::Write;

use farhaul_netem::{PathSpec, QueueSize};
use farhaul_proto::{Config, Entropy, Mode, controller_factory, udt};
use farhaul_sim::Workload;
use farhaul_sim::topology::path::{CALLER, Pair};
use farhaul_units::{Duration, Rate};

const LINK: Rate = Rate::from_megabits_per_second(100);
const ROUND_TRIP: Duration = Duration::from_millis(100);
const END: Duration = Duration::from_secs(60);
const INTERVAL: Duration = Duration::from_millis(250);
/// Packets of 1500 bytes that fill the path, and its queue as a share of them.
const BDP: f64 = 833.0;
const QUEUE: f64 = 0.5;
/// Size of the drawing, and the packets at its top.
const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 140.0;
const TOP: f64 = 2.0 * BDP;

/// The drawing of the law `spec`.
pub(crate) fn of(spec: &str) -> String {
    let endpoint = |seed| {
        let controller = controller_factory(spec.parse().expect("a controller of the registry"));
        udt::endpoint(Config { controller, ..Config::default() }, Entropy { cookie_key: [0; 16], seed })
    };
    let mut listener = endpoint(2);
    listener.listen(Mode::Stream).expect("UDT has streams");
    let queue = QueueSize::Packets((BDP * QUEUE) as u32);
    let path = PathSpec { rate: Some(LINK), delay: ROUND_TRIP / 2, queue, ..PathSpec::default() };
    let mut run = Pair::new(endpoint(1), listener)
        .up(path.clone())
        .down(path)
        .caller(Workload::send_without_end())
        .seed(1)
        .start();
    run.sample_every(INTERVAL);
    run.run_for(END);
    let samples = run.samples().expect("they were asked for");
    let x = |seconds: f64| WIDTH * seconds / END.as_secs_f64();
    let y = |packets: f64| HEIGHT * (1.0 - (packets / TOP).min(1.0));
    let mut points = String::new();
    for (at, stats) in samples.flow(CALLER, run.flows(CALLER)[0].id()) {
        let _ = write!(points, "{:.1},{:.1} ", x(at.as_micros() as f64 / 1e6), y(f64::from(stats.in_flight)));
    }
    let line =
        |packets: f64| format!("<path d=\"M0 {0:.1}H{WIDTH}\" stroke=\"#999\" stroke-dasharray=\"4 4\"/>", y(packets));
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"none\">\n\
         {}\n{}\n<polyline points=\"{}\" stroke=\"#0069a8\" stroke-width=\"1.5\"/>\n</svg>\n",
        line(BDP),
        line(BDP * (1.0 + QUEUE)),
        points.trim_end()
    )
}
