//! Determinism of whole paths, and the order of their parts.

use farhaul_units::{Duration, Instant, Rate};

use crate::testing::{Numbered, numbers, play};
use crate::{Counters, Element, JitterSpec, LossSpec, PathSpec, QueueSize, ReorderSpec};

fn rough() -> PathSpec {
    PathSpec {
        rate: Some(Rate::from_megabits_per_second(1_000)),
        delay: Duration::from_millis(5),
        queue: QueueSize::Packets(20),
        loss: Some(LossSpec::Bernoulli(0.05)),
        duplicate: 0.05,
        corrupt: 0.05,
        jitter: Some(JitterSpec::up_to(Duration::from_micros(40))),
        reorder: Some(ReorderSpec { probability: 0.05, extra_delay: Duration::from_micros(100) }),
        seed: 11,
    }
}

fn outcome(spec: &PathSpec) -> (Vec<(Instant, Numbered)>, Counters) {
    let mut path = spec.build();
    let out = play(&mut path, 5_000, 11_990);
    (out, path.counters())
}

#[test]
fn the_same_seed_gives_every_packet_the_same_fate() {
    assert_eq!(outcome(&rough()), outcome(&rough()));
    assert_ne!(outcome(&rough()), outcome(&PathSpec { seed: 12, ..rough() }));
}

#[test]
fn every_impairment_of_a_description_acts() {
    let (_, counters) = outcome(&rough());
    let Counters { dropped_loss, duplicated, reordered, corrupted, .. } = counters;
    assert!([dropped_loss, duplicated, reordered, corrupted].iter().all(|tally| tally.packets > 100), "{counters:?}");
}

#[test]
fn switching_one_impairment_on_leaves_the_others_draws_alone() {
    let lossy = PathSpec { loss: Some(LossSpec::Bernoulli(0.05)), seed: 11, ..PathSpec::default() };
    let roomy = PathSpec { queue: QueueSize::Bdp(Duration::from_secs(1)), ..rough() };
    let mut survivors = numbers(&outcome(&roomy).0);
    survivors.sort_unstable();
    survivors.dedup();
    assert_eq!(survivors, numbers(&outcome(&lossy).0));
}

#[test]
fn a_lost_packet_has_taken_its_time_on_the_link() {
    let spec = PathSpec { queue: QueueSize::Packets(3), loss: Some(LossSpec::Bernoulli(1.0)), ..rough() };
    let mut path = spec.build();
    (0..10).for_each(|number| path.push(Instant::ZERO, Numbered::new(number)));
    path.advance(Instant::from_nanos(1_000_000_000));
    assert_eq!((path.counters().dropped_queue.packets, path.counters().dropped_loss.packets), (6, 4));
}

#[test]
fn the_default_path_is_perfect() {
    let (out, _) = outcome(&PathSpec::default());
    assert!(
        out.iter()
            .enumerate()
            .all(|(i, (due, packet))| due.as_nanos() == i as u64 * 11_990 && packet.number == i as u32)
    );
    assert_eq!(out.len(), 5_000);
}
