//! What one packet costs in a path: a push and a pop, nanoseconds of real time on one core.
//!
//! `cargo bench -p farhaul-netem --bench path -- [PATH] [ROUNDS]`; a single round of one path under `valgrind
//! --tool=callgrind` counts instructions, which other programs do not change.
//!
//! The host is the busiest one there is: packets arrive as fast as the path sends them, every event is served at its
//! instant, and fifty milliseconds of packets are always under way.

use farhaul_netem::{
    CoDelSpec, Discipline, Element, LossSpec, PathSpec, QueueSize, RedSpec, Schedule, Step, Variation, WireLen,
};
use farhaul_units::{Duration, Instant, Rate, Rng};

/// Packets per measurement: as few milliseconds as fit between two interruptions by other programs.
const PACKETS: u64 = 200_000;
/// Measurements, of which the fastest counts: whatever else the machine does only adds.
const ROUNDS: usize = 100;

/// A simulator's packet: a handle and the length, to be moved cheaply.
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

/// Packets of changing length (two of three are full), as many as a gigabit per second takes.
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
