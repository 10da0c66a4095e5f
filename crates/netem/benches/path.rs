//! Cost of one packet in a path: one push and one pop, in nanoseconds of real time on one core.
//!
//! `cargo bench -p farhaul-netem --bench path -- [PATH] [ROUNDS]`. A single round of one path under `valgrind
//! --tool=callgrind` counts instructions, which other programs do not change.
//!
//! The load is the heaviest possible. Packets arrive as fast as the path sends them, and the driver serves every event
//! at its instant. Fifty milliseconds of packets are always in flight.

use farhaul_netem::{
    CoDelSpec, Discipline, Element, LossSpec, PathSpec, QueueSize, RedSpec, Schedule, Step, Variation, WireLen,
};
use farhaul_units::{Duration, Instant, Rate, Rng};

/// Packets per measurement. A short measurement is more likely to run without an interruption by other programs.
const PACKETS: u64 = 200_000;
/// Number of measurements. The fastest counts, because other load on the machine only adds time.
const ROUNDS: usize = 100;

/// A simulator's packet: a handle and a length, cheap to move.
#[derive(Clone, Copy)]
struct Handle {
    bytes: u32,
    _index: u32,
}

impl WireLen for Handle {
    fn wire_len(&self) -> u32 {
        self.bytes
    }
}

impl farhaul_netem::Packet for Handle {
    fn duplicate(&self) -> Self {
        *self
    }

    fn corrupt(&mut self, _rng: &mut Rng) {}
}

fn main() {
    let plain = PathSpec {
        rate: Some(Rate::from_megabits_per_second(1_000)),
        delay: Duration::from_millis(50),
        queue: QueueSize::Packets(1_000),
        ..PathSpec::default()
    };
    let with = |discipline| PathSpec { discipline, ..plain.clone() };
    let step = Step { at: Duration::from_millis(1), rate: Some(Rate::from_megabits_per_second(900)), delay: None };
    let schedule = Schedule::new([step]).and_then(|steps| steps.repeated(Duration::from_millis(2))).expect("in order");
    let paths = [
        ("link", plain.clone()),
        ("link with RED", with(Discipline::Red(RedSpec::default()))),
        ("link with CoDel", with(Discipline::CoDel(CoDelSpec::default()))),
        ("link, a change every ms", PathSpec { variation: Variation::Schedule(schedule), ..plain.clone() }),
        ("link, random loss", PathSpec { loss: Some(LossSpec::Bernoulli(1e-4)), ..plain.clone() }),
        ("link, bit errors", PathSpec { loss: Some(LossSpec::BitErrors(1e-9)), ..plain.clone() }),
    ];
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let rounds = arguments.get(1).and_then(|rounds| rounds.parse().ok()).unwrap_or(ROUNDS);
    let wanted = |name: &str| arguments.first().is_none_or(|argument| argument == name);
    for (name, spec) in paths.into_iter().filter(|(name, _)| wanted(name)) {
        let best = (0..rounds).map(|_| stopwatch(|| run(&spec))).min().unwrap_or_default();
        println!("{name:<24} {:>6.1} ns per packet", best.as_nanos() as f64 / PACKETS as f64);
    }
}

/// Offers packets of changing length, two of three full-sized, at 1 Gbit/s.
fn run(spec: &PathSpec) {
    let mut path: Box<dyn Element<Handle>> = spec.build_element();
    let mut delivered = 0u64;
    for number in 0..PACKETS {
        let now = Instant::from_nanos(number * 8_160);
        while let Some(due) = path.next_event().filter(|due| *due <= now) {
            while let Some(packet) = path.pop(due) {
                delivered += u64::from(packet.bytes);
            }
        }
        let bytes = if number % 3 == 0 { 60 } else { 1_500 };
        path.push(now, Handle { bytes, _index: number as u32 });
    }
    assert!(delivered > 0, "the path delivers");
}

#[expect(clippy::disallowed_methods, reason = "this program measures real time")]
fn stopwatch(work: impl FnOnce()) -> std::time::Duration {
    let start = std::time::Instant::now();
    work();
    start.elapsed()
}
