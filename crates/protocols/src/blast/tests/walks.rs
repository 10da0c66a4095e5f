//! Random walks of each protocol.
//!
//! Walks 189 and 867 have datagrams of 64 KB beside buffers as small. A writer that waited for room then waited for ever.

use farhaul_units::{Duration, Rng};

use super::walk::{Habits, some_rate, walks};
use crate::fobs::{self, Fobs};
use crate::hurricane::{self, Hurricane};
use crate::rbudp::{self, Rbudp};
use crate::sabul::{self, Sabul};
use crate::tsunami::{self, Tsunami};

fn pick<T: Copy>(rng: &mut Rng, values: &[T]) -> T {
    values[rng.below(values.len() as u64) as usize]
}

#[test]
fn walks_of_rbudp() {
    use rbudp::{BlastSize, Options, Spacing};
    walks::<Rbudp>(&[0..30, 189..190, 867..868], |rng, habits| Options {
        rate: some_rate(rng, habits),
        blast: pick(rng, &[BlastSize::Payload, BlastSize::RoundTrip]),
        payload: pick(rng, &[None, None, Some(64), Some(1_000)]),
        spacing: pick(rng, &[Spacing::Bursts, Spacing::Even]),
    });
}

#[test]
fn walks_of_tsunami() {
    walks::<Tsunami>(&[0..30, 189..190, 867..868], |rng, habits| tsunami::Options {
        rate: some_rate(rng, habits),
        gaps: rng.chance(0.6),
        prompt: rng.chance(0.6),
        exact: rng.chance(0.6),
        ..Default::default()
    });
}

#[test]
fn walks_of_sabul() {
    use sabul::{Generation, Options, Repairs, Start};
    walks::<Sabul>(&[0..30, 189..190, 867..868], |rng, habits: &mut Habits| {
        let window = pick(rng, &[sabul::WINDOW, sabul::WINDOW, 1, 7, 300]);
        // The laws slow down to a packet a second for so much loss, and such a window takes a packet an RTT.
        let packets = if habits.loss > 0.1 || window < 10 { 200 } else { usize::MAX / 500 };
        habits.bytes = habits.bytes.map(|bytes| bytes.min(packets * 500));
        Options {
            generation: pick(rng, &Generation::ALL).1,
            start: pick(rng, &[Start::Bounded, Start::Bounded, Start::Original]),
            repairs: pick(rng, &[Repairs::Unlimited, Repairs::Unlimited, Repairs::Original]),
            window,
            syn: pick(rng, &[None, Some(Duration::from_millis(1)), Some(Duration::from_secs(10))]),
            ..Default::default()
        }
    });
}

#[test]
fn walks_of_fobs() {
    use fobs::{Options, Pick, Version};
    walks::<Fobs>(&[0..30, 189..190, 867..868], |rng, habits| Options {
        version: pick(rng, &[Version::Segments, Version::Greedy]),
        rate: some_rate(rng, habits),
        object: pick(rng, &[1, 10_000, 1_000_000, 100_000_000]),
        segment: pick(rng, &[None, Some(1), Some(50), Some(1_000)]),
        batch: pick(rng, &[None, Some(1), Some(1_000)]),
        pick: pick(rng, &[Pick::Circular, Pick::MissingFirst]),
        ordered: rng.chance(0.5),
        overlap: rng.chance(0.7),
        ..Default::default()
    });
}

#[test]
fn walks_of_hurricane() {
    walks::<Hurricane>(&[0..30, 189..190, 867..868], |rng, habits| hurricane::Options {
        rate: some_rate(rng, habits),
        window: pick(rng, &[None, None, Some(1), Some(100)]),
        sleep: pick(rng, &[None, None, Some(Duration::from_millis(3))]),
        spaced: rng.chance(0.3),
        trigger: pick(rng, &[None, None, Some(1), Some(1_000)]),
        trigger_window: pick(rng, &[None, None, Some(0.1), Some(5.0)]),
        ..Default::default()
    });
}
