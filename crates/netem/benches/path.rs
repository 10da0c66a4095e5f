//! What one packet costs in a path: a push and a pop, nanoseconds of real time on one core.
//!
//! `cargo bench -p farhaul-netem --bench path`
//!
//! The host is the busiest one there is: packets arrive as fast as the path sends them, every event is served at its
//! instant, and fifty milliseconds of packets are always under way.

use farhaul_netem::{Element, LossSpec, PathSpec, QueueSize, WireLen};
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
    let lossy = PathSpec { loss: Some(LossSpec::Bernoulli(1e-4)), ..plain.clone() };
    for (name, spec) in [("link", plain), ("link, random loss", lossy)] {
        let best = (0..ROUNDS).map(|_| stopwatch(|| run(&spec))).min().unwrap_or_default();
        println!("{name:<24} {:>6.1} ns per packet", best.as_nanos() as f64 / PACKETS as f64);
    }
}

/// Packets of changing length (two of three are full), as many as a gigabit per second takes.
fn run(spec: &PathSpec) {
    let mut path: Box<dyn Element<Handle>> = Box::new(spec.build());
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
