//! Composition of elements: events, losslessness, independence of how promptly the driver calls.

use farhaul_units::{ByteSize, Duration, Instant, Rate, Rng};
use proptest::prelude::*;

use crate::testing::{Numbered, drain, numbers, play, pop_until};
use crate::{
    Bernoulli, CoDelSpec, Discipline, Element, GilbertElliottSpec, Impair, JitterShape, JitterSpec, Link, LossSpec,
    Mtu, PathSpec, Pattern, Periodic, Pipe, PolicerSpec, QueueSize, RedSpec, ReorderSpec, Schedule, Step, Variation,
};

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

fn any_rate() -> impl Strategy<Value = Rate> {
    (1u64..2_000).prop_map(Rate::from_megabits_per_second)
}

fn any_discipline() -> impl Strategy<Value = Discipline> {
    let red = (0.0..5.0, 0.1..10.0, 0.0..1.0, 0.0..1.0, any::<bool>(), any::<bool>()).prop_map(
        |(min, between, max_probability, weight, gentle, in_bytes)| {
            let max = min + between;
            Discipline::Red(RedSpec { min, max, max_probability, weight, gentle, in_bytes, ..RedSpec::default() })
        },
    );
    let codel = (0u64..200, 0u64..2_000).prop_map(|(target, interval)| {
        let (target, interval) = (Duration::from_micros(target), Duration::from_micros(interval));
        Discipline::CoDel(CoDelSpec { target, interval, ..CoDelSpec::default() })
    });
    prop_oneof![Just(Discipline::DropTail), Just(Discipline::DropHead), red, codel]
}

/// Schedules with outages that end, and short traces.
fn any_variation() -> impl Strategy<Value = Variation> {
    let rate = prop::option::of(prop_oneof![Just(Rate::ZERO), any_rate()]);
    let delay = prop::option::of((0u64..200_000).prop_map(Duration::from_nanos));
    let steps = prop::collection::vec((0u64..100_000, rate, delay), 0..6);
    let schedule = (steps, any_rate(), any::<bool>(), any::<bool>()).prop_map(|(steps, last, repeats, reorders)| {
        let mut at = Duration::ZERO;
        let mut steps: Vec<Step> = steps
            .into_iter()
            .map(|(gap, rate, delay)| {
                at += Duration::from_nanos(gap);
                Step { at, rate, delay }
            })
            .collect();
        steps.push(Step { at, rate: Some(last), delay: None });
        let schedule = Schedule::new(steps).expect("in order");
        let schedule = if reorders { schedule.reordering() } else { schedule };
        let period = at + Duration::from_nanos(1_234);
        Variation::Schedule(if repeats { schedule.repeated(period).expect("long enough") } else { schedule })
    });
    let trace = prop::collection::vec(0u32..3, 1..20).prop_map(|gaps| {
        let stamps = gaps.iter().scan(1, |stamp, gap| {
            *stamp += gap;
            Some(format!("{stamp}\n"))
        });
        Variation::Trace(stamps.collect::<String>().parse().expect("a trace"))
    });
    prop_oneof![2 => Just(Variation::None), 2 => schedule, 1 => trace]
}

fn any_loss() -> impl Strategy<Value = LossSpec> {
    prop_oneof![
        (0.0..0.5).prop_map(LossSpec::Bernoulli),
        (0.0..0.5, 1.0..5.0)
            .prop_map(|(loss, burst)| LossSpec::GilbertElliott(GilbertElliottSpec::bursts(loss, burst))),
        (0.0..1e-4).prop_map(LossSpec::BitErrors),
        (0u64..9).prop_map(|period| LossSpec::Periodic(Periodic::every(period))),
        "[.x]{1,80}".prop_map(|text| LossSpec::Trace(text.parse().expect("a trace"))),
    ]
}

fn any_jitter() -> impl Strategy<Value = JitterSpec> {
    let shape = prop_oneof![Just(JitterShape::Uniform), Just(JitterShape::Normal)];
    (0u64..50_000, shape, any::<bool>()).prop_map(|(max, shape, may_reorder)| JitterSpec {
        max: Duration::from_nanos(max),
        shape,
        may_reorder,
    })
}

/// A path with any link, any queue and any mixture of impairments.
fn any_path() -> impl Strategy<Value = PathSpec> {
    let delay = (0u64..200_000).prop_map(Duration::from_nanos);
    let size = prop_oneof![
        (0u32..20).prop_map(QueueSize::Packets),
        (0u64..20_000).prop_map(|bytes| QueueSize::Bytes(ByteSize(bytes))),
        Just(QueueSize::Bdp(Duration::from_millis(1)))
    ];
    let link = (prop::option::of(any_rate()), delay, any_variation(), size, any_discipline());
    let policer = (any_rate(), 1_000u64..20_000).prop_map(|(rate, burst)| PolicerSpec { rate, burst: ByteSize(burst) });
    let loss = (prop::option::of(policer), prop::option::of(any_loss()), prop_oneof![Just(0u32), 40u32..1_500]);
    let reorder = (0.0..0.5, 0u64..50_000)
        .prop_map(|(probability, nanos)| ReorderSpec { probability, extra_delay: Duration::from_nanos(nanos) });
    let rest = (0.0..0.3, 0.0..0.3, prop::option::of(any_jitter()), prop::option::of(reorder), any::<u64>());
    (link, loss, rest).prop_map(
        |(
            (rate, delay, variation, queue, discipline),
            (policer, loss, lossless_below),
            (duplicate, corrupt, jitter, reorder, seed),
        )| PathSpec {
            rate,
            delay,
            variation,
            queue,
            discipline,
            policer,
            mtu: lossless_below.is_multiple_of(3).then(|| Mtu::new(1_400)),
            loss,
            lossless_below,
            duplicate,
            corrupt,
            jitter,
            reorder,
            seed,
        },
    )
}

/// Gaps between arrivals in nanoseconds, and packet lengths.
fn any_arrivals() -> impl Strategy<Value = Vec<(u64, u32)>> {
    let gap = prop_oneof![Just(0), 0u64..30_000, 0u64..1_000_000];
    prop::collection::vec((gap, prop_oneof![3 => Just(1_500), 1 => 0u32..3_000]), 0..150)
}

fn arrivals(arrivals: &[(u64, u32)]) -> impl Iterator<Item = (Instant, Numbered)> {
    let mut now = Instant::ZERO;
    (0..).zip(arrivals).map(move |(number, (gap, bytes))| {
        now += Duration::from_nanos(*gap);
        (now, Numbered { bytes: *bytes, ..Numbered::new(number) })
    })
}

proptest! {
    #[test]
    fn every_packet_is_accounted_for(spec in any_path(), gaps in any_arrivals()) {
        let mut path = spec.build();
        let mut delivered = 0;
        for (now, packet) in arrivals(&gaps) {
            delivered += pop_until(&mut path, now).len() as u64;
            prop_assert_eq!(path.pop(now), None, "next_event has announced all that is due");
            path.push(now, packet);
            delivered += pop_until(&mut path, now).len() as u64;
            prop_assert_eq!(path.counters().delivered.packets, delivered);
        }
        delivered += drain(&mut path).len() as u64;
        let counters = path.counters();
        prop_assert_eq!(counters.pushed.packets, gaps.len() as u64);
        prop_assert_eq!(counters.pushed.packets + counters.duplicated.packets, delivered + counters.dropped());
        prop_assert!(counters.dropped_early.packets <= counters.dropped_queue.packets);
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
    fn a_late_driver_changes_no_packets_fate(spec in any_path(), gaps in any_arrivals()) {
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

    #[test]
    fn equal_inputs_give_equal_outputs(spec in any_path(), gaps in any_arrivals()) {
        let run = |mut path: Box<dyn Element<Numbered>>| {
            let mut out = Vec::new();
            for (now, packet) in arrivals(&gaps) {
                path.push(now, packet);
                out.extend(core::iter::from_fn(|| path.pop(now)));
            }
            (out, path.counters())
        };
        prop_assert_eq!(run(Box::new(spec.build())), run(spec.clone().build_element()));
    }

    #[test]
    fn without_an_impairment_and_with_room_only_a_changing_route_reorders(
        rate in any_rate(), variation in any_variation(), gaps in any_arrivals(),
    ) {
        let reorders = matches!(&variation, Variation::Schedule(schedule) if schedule.may_reorder());
        let spec = PathSpec { rate: Some(rate), variation, ..PathSpec::default() };
        let mut path = spec.build();
        arrivals(&gaps).for_each(|(now, packet)| path.push(now, packet));
        let mut out = numbers(&drain(&mut path));
        if reorders {
            out.sort_unstable();
        }
        prop_assert_eq!(out, (0..gaps.len() as u32).collect::<Vec<_>>());
    }

    /// Lindley's recursion with the exact sum of bits. The k-th packet of a busy period leaves when the link has sent
    /// the bits of the first k packets.
    #[test]
    fn every_departure_of_a_link_is_the_closed_form(
        bits_per_second in 1_000_000u64..20_000_000_000, nanos in 0u64..1_000_000, gaps in any_arrivals(),
    ) {
        let (rate, delay) = (Rate::from_bits_per_second(bits_per_second), Duration::from_nanos(nanos));
        let spec = PathSpec { rate: Some(rate), delay, ..PathSpec::default() };
        let mut path = spec.build();
        let (mut expected, mut begin, mut bytes, mut free) = (Vec::new(), Instant::ZERO, 0, Instant::ZERO);
        for (now, packet) in arrivals(&gaps) {
            path.push(now, packet);
            if now >= free {
                (begin, bytes) = (now, 0);
            }
            bytes += u64::from(packet.bytes);
            free = begin + rate.time_for(bytes);
            expected.push(free + delay);
        }
        let out: Vec<Instant> = drain(&mut path).into_iter().map(|(due, _)| due).collect();
        prop_assert_eq!(out, expected);
    }
}
