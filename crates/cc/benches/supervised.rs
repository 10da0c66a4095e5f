//! Cost of an acknowledgement at a controller, alone and under supervision, in nanoseconds of real time on one core.
//!
//! `cargo bench -p farhaul-cc --bench supervised -- [CONTROLLER]`. The difference of both columns is the price of
//! [`Supervised`].

use std::hint::black_box;

use farhaul_cc::registry::controllers;
use farhaul_cc::{AckEvent, Control, Controller, LossEvent, Path, Spec, Supervised};
use farhaul_units::{Duration, Instant, PacketRate, SeqNo};

/// Acknowledgements per measurement. A short measurement is more likely to run without an interruption by other programs.
const ACKS: u32 = 20_000;
/// Number of measurements. The fastest counts, because other load on the machine only adds time.
const ROUNDS: usize = 200;
/// A name beside those of the registry.
const NOTHING: &str = "nothing";

/// A controller that sets nothing, so that its calls are all that is measured.
struct Nothing;

impl Controller for Nothing {
    fn name(&self) -> &str {
        NOTHING
    }

    fn on_ack(&mut self, _: &Path, _: &AckEvent, _: &mut Control) {}

    fn on_loss(&mut self, _: &Path, _: &LossEvent<'_>, _: &mut Control) {}
}

fn main() {
    let wanted: Option<String> = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let names = std::iter::once(NOTHING).chain(controllers().into_iter().map(|entry| entry.name));
    println!("{:<12} {:>8} {:>12}  ns per acknowledgement", "controller", "alone", "supervised");
    for name in names.filter(|name| wanted.as_deref().is_none_or(|wanted| wanted == *name)) {
        let [alone, supervised] = [alone, supervised].map(|run| {
            let best = (0..ROUNDS).map(|_| run(controller(name))).min().unwrap_or_default();
            best.as_nanos() as f64 / f64::from(ACKS)
        });
        println!("{name:<12} {alone:>8.1} {supervised:>12.1}");
    }
}

fn controller(name: &str) -> Box<dyn Controller> {
    let text = if name == "fixed" { "fixed:rate=4mbit" } else { name };
    if name == NOTHING { Box::new(Nothing) } else { text.parse::<Spec>().expect("it is registered").build(1) }
}

fn alone(controller: Box<dyn Controller>) -> std::time::Duration {
    let mut controller = black_box(controller);
    let mut control = Control::initial();
    controller.on_connect(&path(0), &mut control);
    acknowledge(|path, ack| {
        controller.on_ack(path, ack, &mut control);
        control.cwnd
    })
}

fn supervised(controller: Box<dyn Controller>) -> std::time::Duration {
    let mut controller = Supervised::new(|| black_box(controller));
    controller.on_connect(&path(0));
    let time = acknowledge(|path, ack| {
        controller.on_ack(path, ack);
        controller.control().cwnd
    });
    assert!(controller.failure().is_none(), "the laws are sound");
    time
}

/// An acknowledgement each millisecond, of 80 packets on a path of 1 Gbit/s and 100 ms.
fn acknowledge(mut on_ack: impl FnMut(&Path, &AckEvent) -> Option<f64>) -> std::time::Duration {
    stopwatch(|| {
        for number in 1..=ACKS {
            let mut ack = AckEvent::default();
            ack.seq = SeqNo::new(number * 80);
            ack.newly_acked = 80;
            ack.rtt_sample = Some(Duration::from_millis(100));
            black_box(on_ack(black_box(&path(number)), black_box(&ack)));
        }
    })
}

fn path(number: u32) -> Path {
    let mut path = Path::default();
    path.now = Instant::ZERO + Duration::from_millis(number.into());
    (path.rtt, path.latest_rtt, path.min_rtt) =
        (Duration::from_millis(100), Some(Duration::from_millis(100)), Some(Duration::from_millis(100)));
    (path.mss, path.flow_window, path.max_window) = (1_500, 25_600, 25_600);
    (path.in_flight, path.outstanding, path.packets_sent) = (8_000, 8_000.0, u64::from(number) * 80);
    path.next_seq = SeqNo::new(number * 80 + 8_000);
    (path.capacity, path.arrival_rate) = (Some(PacketRate::new(83_333.0)), Some(PacketRate::new(80_000.0)));
    path
}

#[expect(clippy::disallowed_methods, reason = "this program measures real time")]
fn stopwatch(work: impl FnOnce()) -> std::time::Duration {
    let start = std::time::Instant::now();
    work();
    start.elapsed()
}
