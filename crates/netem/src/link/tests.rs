//! Exact rate, delay, overflow and queue depth of a link.

use farhaul_units::{ByteSize, Duration, Instant, Rate, Rng};

use crate::testing::{Numbered, drain, numbers, play, pop_until};
use crate::{
    CoDel, CoDelSpec, DropTail, Element, Limit, Link, QueueDepth, QueueSize, Red, RedSpec, Schedule, Step, Variation,
};

const GIGABIT: Rate = Rate::from_megabits_per_second(1_000);

fn link(rate: Rate, delay: Duration, packets: u32) -> Link<Numbered> {
    Link::new(Some(rate), delay, QueueSize::Packets(packets))
}

fn flood(link: &mut Link<Numbered>, packets: u32) {
    (0..packets).for_each(|number| link.push(Instant::ZERO, Numbered::new(number)));
}

/// Keeps a link busy for `time` and returns how many packets it delivered.
fn delivered_in(rate: Rate, time: Duration) -> u64 {
    let mut link = link(rate, Duration::ZERO, 2);
    flood(&mut link, 2);
    let end = Instant::ZERO + time;
    while let Some(due) = link.next_event().filter(|due| *due <= end) {
        while link.pop(due).is_some() {
            link.push(due, Numbered::new(0));
        }
    }
    link.counters().delivered.packets
}

#[test]
fn a_gigabit_link_delivers_its_exact_rate() {
    assert_eq!(delivered_in(GIGABIT, Duration::from_secs(30)), 2_500_000);
}

#[test]
fn a_rate_that_divides_no_nanosecond_is_exact_after_three_hours() {
    let rate = Rate::from_bits_per_second(2_999_993);
    let time = Duration::from_secs(3 * 3_600);
    assert_eq!(delivered_in(rate, time), rate.bytes_in(time) / 1_500);
}

#[test]
fn a_packet_is_sent_and_then_travels() {
    let mut link = link(GIGABIT, Duration::from_millis(50), 10);
    let out = play(&mut link, 2, 0);
    let due: Vec<u64> = out.iter().map(|(due, _)| due.as_nanos()).collect();
    assert_eq!(due, [50_012_000, 50_024_000]);
}

#[test]
fn a_link_without_a_rate_only_delays() {
    let mut link: Link<Numbered> = Link::new(None, Duration::from_millis(1), QueueSize::Packets(1));
    let out = play(&mut link, 5_000, 0);
    assert!(out.len() == 5_000 && out.iter().all(|(due, _)| due.as_nanos() == 1_000_000));
}

#[test]
fn a_link_of_rate_zero_delivers_nothing_and_has_no_event() {
    let mut link = link(Rate::ZERO, Duration::ZERO, 3);
    flood(&mut link, 10);
    assert_eq!(link.next_event(), None);
    assert_eq!((link.counters().dropped_queue.packets, link.counters().inside()), (6, 4));
}

#[test]
fn the_packet_being_sent_does_not_count_as_waiting() {
    let mut link = link(GIGABIT, Duration::ZERO, 3);
    flood(&mut link, 6);
    let counters = link.counters();
    assert_eq!((counters.queue.waiting.packets, counters.dropped_queue.packets), (3, 2));
    assert_eq!(counters.dropped_queue.bytes, 3_000);
    assert_eq!(numbers(&drain(&mut link)), [0, 1, 2, 3]);
}

#[test]
fn an_idle_link_queues_nothing() {
    let mut link = link(GIGABIT, Duration::from_millis(1), 3);
    play(&mut link, 1_000, 12_000);
    assert_eq!(link.counters().queue.high_water.packets, 0);
}

#[test]
fn queue_depth_follows_time() {
    let mut link: Link<Numbered> =
        Link::new(Some(GIGABIT), Duration::from_millis(10), QueueSize::Bytes(ByteSize(15_000)));
    flood(&mut link, 11);
    assert_eq!(link.counters().queue.waiting.bytes, 15_000);
    link.advance(Instant::from_nanos(36_000));
    assert_eq!(link.counters().queue.waiting.packets, 7);
    assert_eq!(link.counters().queue.high_water.packets, 10);
}

#[test]
fn a_late_driver_does_not_slow_the_link_down() {
    let mut link = link(GIGABIT, Duration::ZERO, 100);
    flood(&mut link, 50);
    // Ten packets have left by now and the driver collected none. The next one still leaves on time.
    assert_eq!(link.pop(Instant::from_nanos(120_000)).map(|packet| packet.number), Some(0));
    assert_eq!(pop_until(&mut link, Instant::from_nanos(120_000)).len(), 9);
    assert_eq!(link.next_event(), Some(Instant::from_nanos(132_000)));
}

#[test]
fn the_mean_queue_depth_is_the_integral_over_time() {
    let mut link = link(GIGABIT, Duration::ZERO, 100);
    flood(&mut link, 5);
    // Four packets wait for 12 µs, then three, two, one, none.
    link.advance(Instant::from_nanos(100_000));
    let queue = link.counters().queue;
    assert_eq!(queue.packet_nanos, 12_000 * (4 + 3 + 2 + 1));
    assert_eq!(queue.byte_nanos, 1_500 * queue.packet_nanos);
    assert_eq!(queue.mean_packets_since(&QueueDepth::default(), Duration::from_micros(100)), 1.2);
    assert_eq!(queue.mean_bytes_since(&queue, Duration::from_micros(10)), 0.0);
    assert_eq!(queue.mean_bytes_since(&queue, Duration::ZERO), 0.0);
}

fn varying(delay: Duration, variation: &Variation) -> Link<Numbered> {
    Link::varying(Some(GIGABIT), delay, variation, DropTail::of_packets(100))
}

fn dues(link: &mut Link<Numbered>, arrivals: &[u64]) -> Vec<(u32, u64)> {
    for (number, at) in (0..).zip(arrivals) {
        link.push(Instant::from_nanos(*at), Numbered::new(number));
    }
    drain(link).into_iter().map(|(due, packet)| (packet.number, due.as_nanos())).collect()
}

fn shorter_from(nanos: u64) -> Schedule {
    let delay = Some(Duration::from_nanos(1_000));
    Schedule::new([Step { at: Duration::from_nanos(nanos), rate: None, delay }]).unwrap()
}

#[test]
fn a_shorter_delay_lets_packets_catch_up_but_not_overtake() {
    let mut link = varying(Duration::from_micros(50), &Variation::Schedule(shorter_from(13_000)));
    assert_eq!(dues(&mut link, &[0, 0, 0, 90_000]), [(0, 62_000), (1, 62_000), (2, 62_000), (3, 103_000)]);
}

#[test]
fn a_shorter_route_lets_packets_overtake() {
    let mut link = varying(Duration::from_micros(50), &Variation::Schedule(shorter_from(13_000).reordering()));
    assert_eq!(dues(&mut link, &[0, 0, 0]), [(1, 25_000), (2, 37_000), (0, 62_000)]);
}

#[test]
fn a_longer_delay_applies_to_packets_sent_after_the_change() {
    let step = Step { at: Duration::from_nanos(13_000), rate: None, delay: Some(Duration::from_micros(9)) };
    let schedule = Schedule::new([step]).unwrap();
    let mut link = varying(Duration::ZERO, &Variation::Schedule(schedule));
    assert_eq!(dues(&mut link, &[0, 0]), [(0, 12_000), (1, 33_000)]);
}

#[test]
fn a_link_without_a_rate_follows_the_delays_of_its_schedule() {
    let variation = Variation::Schedule(shorter_from(5));
    let mut link = Link::varying(None, Duration::from_nanos(1_500), &variation, DropTail::of_packets(1));
    assert_eq!(dues(&mut link, &[0, 4, 5, 600]), [(0, 1_500), (1, 1_504), (2, 1_504), (3, 1_600)]);
}

const MILLISECOND: u64 = 1_000_000;

#[test]
fn a_recorded_link_delivers_one_full_packet_an_opportunity() {
    let trace = Variation::Trace("2\n2\n7\n10\n".parse().unwrap());
    let mut link = varying(Duration::from_millis(100), &trace);
    let out = dues(&mut link, &[0; 7]);
    // The period is 10 ms. Its last opportunity is the instant at which the next period begins.
    let expected = [2, 2, 7, 10, 12, 12, 17].map(|millis| (100 + millis) * MILLISECOND);
    assert_eq!(out.iter().map(|(_, due)| *due).collect::<Vec<_>>(), expected);
}

#[test]
fn a_packet_that_arrives_at_an_opportunity_misses_it() {
    let trace = Variation::Trace("1\n3\n3\n4".parse().unwrap());
    let mut link = varying(Duration::ZERO, &trace);
    let out = dues(&mut link, &[MILLISECOND, 3 * MILLISECOND - 1, 3 * MILLISECOND, 40 * MILLISECOND]);
    assert_eq!(out, [(0, 3), (1, 3), (2, 4), (3, 41)].map(|(number, due)| (number, due * MILLISECOND)));
}

#[test]
fn an_opportunity_serves_several_short_packets_and_a_long_packet_takes_several() {
    let trace = Variation::Trace("1\n2\n3\n4\n5\n6".parse().unwrap());
    let mut link = varying(Duration::ZERO, &trace);
    for (number, bytes) in (0..).zip([496, 496, 496, 9, 2_990, 1_500]) {
        link.push(Instant::ZERO, Numbered { bytes, ..Numbered::new(number) });
    }
    let out: Vec<u64> = drain(&mut link).iter().map(|(due, _)| due.as_nanos() / MILLISECOND).collect();
    // Three times 500 bytes leave 4 for the fourth packet, whose other 9 bytes come a millisecond later. 2994 = 1495 +
    // 1499.
    assert_eq!(out, [1, 1, 1, 2, 3, 4]);
}

#[test]
fn a_recorded_link_is_as_fast_as_its_trace_says() {
    let trace: crate::DeliveryTrace = "0\n1\n1\n3\n8\n".parse().unwrap();
    let rate = trace.mean_rate();
    let variation = Variation::Trace(trace);
    let mut link = Link::varying(None, Duration::ZERO, &variation, DropTail::of_packets(10_000));
    (0..5_000).for_each(|number| link.push(Instant::ZERO, Numbered::new(number)));
    let (last, _) = drain(&mut link).pop().unwrap();
    assert_eq!(rate.bytes_in(last - Instant::ZERO), 5_000 * 1_504);
}

#[test]
fn a_red_queue_on_a_saturated_link_stays_between_its_thresholds() {
    let queue = Red::new(RedSpec::default(), Limit::of_packets(1_000), Some(GIGABIT), Rng::new(1));
    let mut link = Link::with_queue(Some(GIGABIT), Duration::ZERO, queue);
    // Offers 10 % more than the link carries, evenly spaced: one packet every 10.9 µs.
    let out = play(&mut link, 200_000, 10_909);
    let counters = link.counters();
    assert!((180_000..184_000).contains(&out.len()), "{}", out.len());
    assert_eq!(counters.dropped_queue, counters.dropped_early);
    let mean = counters.queue.mean_packets_since(&QueueDepth::default(), out[out.len() - 1].0 - Instant::ZERO);
    assert!((5.0..16.0).contains(&mean) && (counters.queue.average - mean).abs() < 3.0, "{mean}, {counters:?}");
}

#[test]
fn codel_on_a_saturated_link_ends_a_standing_queue() {
    let rate = Rate::from_megabits_per_second(12); // a packet a millisecond
    let mut link =
        Link::with_queue(Some(rate), Duration::ZERO, CoDel::new(CoDelSpec::default(), Limit::of_packets(1_000)));
    for number in 0..100 {
        link.push(Instant::ZERO, Numbered::new(number));
    }
    // From here on arrivals match the link rate. Without drops a hundred packets would wait for ever.
    for number in 100..60_000u64 {
        let now = Instant::from_nanos((number - 99) * MILLISECOND);
        while link.pop(now).is_some() {}
        link.push(now, Numbered::new(number as u32));
    }
    let counters = link.counters();
    assert!(counters.queue.waiting.packets <= 6 && counters.queue.high_water.packets == 99, "{counters:?}");
    assert!(counters.dropped_early.packets >= 93, "{counters:?}");
}
