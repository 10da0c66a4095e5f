//! Composition: events, losslessness, and independence of how promptly the host calls.

use farhaul_units::{Duration, Instant, Rate, Rng};
use proptest::prelude::*;

use crate::testing::{Numbered, drain, numbers, play, pop_until};
use crate::{Bernoulli, Element, Impair, JitterSpec, Link, LossSpec, PathSpec, Pattern, Pipe, QueueSize, ReorderSpec};

fn link(megabits: u64, delay: Duration, packets: u32) -> Link<Numbered> {
    Link::new(Some(Rate::from_megabits_per_second(megabits)), delay, QueueSize::Packets(packets))
}

fn two_links() -> Pipe<Numbered> {
    Pipe::new(link(1_000, Duration::from_micros(5), 100)).then(link(500, Duration::from_micros(7), 3))
}

#[test]
fn the_next_event_is_the_earliest_of_all_elements() {
    let mut pipe = two_links();
    assert_eq!(pipe.next_event(), None);
    pipe.push(Instant::ZERO, Numbered::new(0));
    assert_eq!(pipe.next_event(), Some(Instant::from_nanos(17_000)));
    assert_eq!(pipe.pop(Instant::from_nanos(17_000)), None, "it only moves on inside");
    assert_eq!(pipe.next_event(), Some(Instant::from_nanos(17_000 + 31_000)));
    assert!(pipe.pop(Instant::from_nanos(48_000)).is_some());
    assert_eq!(pipe.next_event(), None);
}

#[test]
fn delays_add_up_and_the_slowest_link_spaces() {
    let due: Vec<u64> = play(&mut two_links(), 3, 0).iter().map(|(due, _)| due.as_nanos()).collect();
    assert_eq!(due, [48_000, 72_000, 96_000]);
}

#[test]
fn a_narrow_second_link_drops_what_the_first_lets_through() {
    let mut pipe = two_links();
    let out = play(&mut pipe, 50, 0);
    let counters = pipe.counters();
    assert_eq!(counters.pushed.packets, 50);
    assert_eq!(counters.delivered.packets, out.len() as u64);
    assert!(counters.dropped_queue.packets > 10);
    assert_eq!((counters.inside(), counters.queue.high_water.packets), (0, 49));
}

#[test]
fn a_pipe_in_a_pipe_is_the_same_pipe() {
    let loss = || Impair::new(Bernoulli::new(0.2, Rng::new(1)));
    let flat = play(&mut two_links().then(loss()), 200, 9_000);
    let nested = play(&mut Pipe::new(two_links()).then(Pipe::new(loss())), 200, 9_000);
    assert_eq!(flat, nested);
}

#[test]
fn a_loss_pattern_hits_the_packets_that_passed_the_queue() {
    let pattern: Pattern = ".x".parse().unwrap();
    let mut pipe = Pipe::new(link(1_000, Duration::ZERO, 10)).then(Impair::new(pattern));
    assert_eq!(numbers(&play(&mut pipe, 4, 0)), [0, 2, 3]);
}

/// A path with any mixture of impairments.
fn any_path() -> impl Strategy<Value = PathSpec> {
    let rate = prop::option::of((1u64..2_000).prop_map(Rate::from_megabits_per_second));
    let delay = (0u64..200_000).prop_map(Duration::from_nanos);
    let queue = prop_oneof![(0u32..20).prop_map(QueueSize::Packets), Just(QueueSize::Bdp(Duration::from_millis(1)))];
    let loss = prop::option::of((0.0..0.5).prop_map(LossSpec::Bernoulli));
    let jitter = prop::option::of((0u64..50_000, any::<bool>()))
        .prop_map(|jitter| jitter.map(|(max, may_reorder)| JitterSpec { max: Duration::from_nanos(max), may_reorder }));
    let reorder = prop::option::of((0.0..0.5, 0u64..50_000)).prop_map(|reorder| {
        reorder.map(|(probability, nanos)| ReorderSpec { probability, extra_delay: Duration::from_nanos(nanos) })
    });
    (rate, delay, queue, loss, (0.0..0.3, 0.0..0.3), jitter, reorder, any::<u64>()).prop_map(
        |(rate, delay, queue, loss, (duplicate, corrupt), jitter, reorder, seed)| PathSpec {
            rate,
            delay,
            queue,
            loss,
            duplicate,
            corrupt,
            jitter,
            reorder,
            seed,
        },
    )
}

/// Gaps between arrivals, in nanoseconds.
fn any_arrivals() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(prop_oneof![Just(0), 0u64..30_000, 0u64..1_000_000], 0..150)
}

fn arrivals(gaps: &[u64]) -> impl Iterator<Item = (Instant, Numbered)> {
    let times = gaps.iter().scan(Instant::ZERO, |now, gap| {
        *now += Duration::from_nanos(*gap);
        Some(*now)
    });
    times.zip((0..).map(Numbered::new))
}

proptest! {
    #[test]
    fn every_packet_is_accounted_for(spec in any_path(), gaps in any_arrivals()) {
        let mut path = spec.build();
        let mut delivered = 0;
        for (now, packet) in arrivals(&gaps) {
            path.push(now, packet);
            delivered += pop_until(&mut path, now).len() as u64;
            prop_assert_eq!(path.counters().delivered.packets, delivered);
        }
        delivered += drain(&mut path).len() as u64;
        let counters = path.counters();
        prop_assert_eq!(counters.pushed.packets, gaps.len() as u64);
        let dropped = counters.dropped_queue.packets + counters.dropped_loss.packets;
        prop_assert_eq!(counters.pushed.packets + counters.duplicated.packets, delivered + dropped);
        prop_assert_eq!((counters.inside(), counters.queue.waiting.packets), (0, 0));
    }

    #[test]
    fn nothing_is_lost_or_reordered_without_an_impairment(
        megabits in 1u64..2_000, nanos in 0u64..1_000_000, gaps in any_arrivals(),
    ) {
        let spec = PathSpec {
            rate: Some(Rate::from_megabits_per_second(megabits)),
            delay: Duration::from_nanos(nanos),
            ..PathSpec::default()
        };
        let mut path = spec.build();
        let mut out = Vec::new();
        for (now, packet) in arrivals(&gaps) {
            out.extend(pop_until(&mut path, now));
            path.push(now, packet);
        }
        out.extend(drain(&mut path));
        prop_assert_eq!(numbers(&out), (0..gaps.len() as u32).collect::<Vec<_>>());
    }

    #[test]
    fn a_late_host_changes_no_packets_fate(spec in any_path(), gaps in any_arrivals()) {
        let (mut prompt, mut late) = (spec.build(), spec.build());
        let mut out = Vec::new();
        for (now, packet) in arrivals(&gaps) {
            out.extend(pop_until(&mut prompt, now));
            prompt.push(now, packet);
            late.push(now, packet);
        }
        out.extend(drain(&mut prompt));
        let end = Instant::from_nanos(1 << 60);
        let at_once: Vec<Numbered> = core::iter::from_fn(|| late.pop(end)).collect();
        prop_assert_eq!(out.into_iter().map(|(_, packet)| packet).collect::<Vec<_>>(), at_once);
        prop_assert_eq!(prompt.counters(), late.counters());
    }
}
