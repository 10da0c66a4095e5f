//! Determinism of whole paths, and the order of their parts.

use farhaul_units::{ByteSize, Duration, Instant, Rate};

use crate::testing::{Numbered, drain, numbers, play};
use crate::{
    CoDelSpec, Counters, Discipline, Element, JitterSpec, LossSpec, PathSpec, PolicerSpec, QueueSize, RedSpec,
    ReorderSpec, Schedule, Step, Variation,
};

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
        ..PathSpec::default()
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
fn every_impairment_of_a_description_has_an_effect() {
    let (_, counters) = outcome(&rough());
    let Counters { dropped_loss, duplicated, reordered, corrupted, .. } = counters;
    assert!([dropped_loss, duplicated, reordered, corrupted].iter().all(|tally| tally.packets > 100), "{counters:?}");
}

#[test]
fn enabling_an_impairment_keeps_the_random_draws_of_the_others() {
    let lossy = PathSpec { loss: Some(LossSpec::Bernoulli(0.05)), seed: 11, ..PathSpec::default() };
    let roomy = PathSpec { queue: QueueSize::Bdp(Duration::from_secs(1)), ..rough() };
    let mut survivors = numbers(&outcome(&roomy).0);
    survivors.sort_unstable();
    survivors.dedup();
    assert_eq!(survivors, numbers(&outcome(&lossy).0));
}

#[test]
fn a_lost_packet_has_occupied_the_link() {
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

#[test]
fn a_random_queue_keeps_the_random_draws_of_the_impairments() {
    let red = PathSpec { discipline: Discipline::Red(RedSpec { min: 1.0, max: 3.0, ..RedSpec::default() }), ..rough() };
    let arrived = |spec: PathSpec| outcome(&PathSpec { rate: None, ..spec }).0;
    assert_eq!(arrived(red), arrived(rough()));
}

#[test]
fn every_discipline_has_an_effect() {
    let packets = |spec: &PathSpec| {
        let mut path = spec.build();
        let out = play(&mut path, 5_000, 6_000);
        (numbers(&out), path.counters())
    };
    let narrow = PathSpec {
        rate: Some(Rate::from_megabits_per_second(1_000)),
        queue: QueueSize::Packets(400),
        ..PathSpec::default()
    };
    let with = |discipline| packets(&PathSpec { discipline, ..narrow.clone() });
    let (tail, tail_counters) = packets(&narrow);
    let (head, head_counters) = with(Discipline::DropHead);
    let (_, red) = with(Discipline::Red(RedSpec::default()));
    let target = Duration::from_micros(100);
    let (_, codel) = with(Discipline::CoDel(CoDelSpec { target, interval: 20 * target, ..CoDelSpec::default() }));
    assert_eq!(tail_counters.dropped_queue, head_counters.dropped_queue);
    assert!(tail.ends_with(&[4_998]) || tail.ends_with(&[4_999]), "the last that found room");
    assert!(head.ends_with(&[4_997, 4_998, 4_999]), "the last that came");
    assert_eq!((tail_counters.queue.high_water.packets, tail_counters.dropped_early.packets), (400, 0));
    assert!(red.queue.high_water.packets < 100 && red.dropped_early.packets > 2_000, "{red:?}");
    assert!(codel.dropped_early.packets > 50 && codel.dropped_queue.packets > 2_000, "{codel:?}");
}

#[test]
fn loss_on_data_spares_acknowledgements() {
    let spec = PathSpec { loss: Some(LossSpec::Bernoulli(1.0)), lossless_below: 100, ..PathSpec::default() };
    let mut path = spec.build();
    for (number, bytes) in (0..).zip([40, 1_500, 99, 100]) {
        path.push(Instant::ZERO, Numbered { bytes, ..Numbered::new(number) });
    }
    assert_eq!(numbers(&drain(&mut path)), [0, 2]);
}

#[test]
fn a_policed_path_drops_without_delay() {
    let policer = PolicerSpec { rate: Rate::from_megabits_per_second(100), burst: ByteSize(3_000) };
    let spec =
        PathSpec { rate: Some(Rate::from_megabits_per_second(1_000)), policer: Some(policer), ..PathSpec::default() };
    let mut path = spec.build();
    let out = play(&mut path, 100, 12_000);
    assert!(out.iter().all(|(due, packet)| due.as_nanos() == u64::from(packet.number + 1) * 12_000));
    // Two packets pass at once, then one more per ten packet times.
    assert_eq!((out.len(), path.counters().dropped_policer.packets), (11, 89));
}

#[test]
fn a_bandwidth_delay_product_follows_the_highest_rate_of_a_schedule_and_the_mean_of_a_trace() {
    let step = Step { at: Duration::from_secs(1), rate: Some(Rate::from_megabits_per_second(50)), delay: None };
    let base = PathSpec { rate: Some(Rate::from_megabits_per_second(10)), ..PathSpec::default() };
    let stepped = PathSpec { variation: Variation::Schedule(Schedule::new([step]).unwrap()), ..base.clone() };
    assert_eq!(stepped.nominal_rate(), Some(Rate::from_megabits_per_second(50)));
    let recorded = PathSpec { variation: Variation::Trace("1\n2".parse().unwrap()), ..base };
    assert_eq!(recorded.nominal_rate(), Some(Rate::from_bits_per_second(1_504 * 8 * 1_000)));
}
