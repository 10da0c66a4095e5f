//! Exact rate, delay, overflow and depth of a link.

use farhaul_units::{ByteSize, Duration, Instant, Rate};

use crate::testing::{Numbered, drain, numbers, play, pop_until};
use crate::{Element, Link, QueueSize};

const GIGABIT: Rate = Rate::from_megabits_per_second(1_000);

fn link(rate: Rate, delay: Duration, packets: u32) -> Link<Numbered> {
    Link::new(Some(rate), delay, QueueSize::Packets(packets))
}

fn flood(link: &mut Link<Numbered>, packets: u32) {
    (0..packets).for_each(|number| link.push(Instant::ZERO, Numbered::new(number)));
}

/// Keeps a link busy for `time` and returns the number of packets that came out of it.
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
fn the_depth_of_the_queue_follows_time() {
    let mut link: Link<Numbered> =
        Link::new(Some(GIGABIT), Duration::from_millis(10), QueueSize::Bytes(ByteSize(15_000)));
    flood(&mut link, 11);
    assert_eq!(link.counters().queue.waiting.bytes, 15_000);
    link.advance(Instant::from_nanos(36_000));
    assert_eq!(link.counters().queue.waiting.packets, 7);
    assert_eq!(link.counters().queue.high_water.packets, 10);
}

#[test]
fn a_late_host_does_not_slow_the_link_down() {
    let mut link = link(GIGABIT, Duration::ZERO, 100);
    flood(&mut link, 50);
    // Ten packets are out by now, and nobody came for them; the next still leaves on time.
    assert_eq!(link.pop(Instant::from_nanos(120_000)).map(|packet| packet.number), Some(0));
    assert_eq!(pop_until(&mut link, Instant::from_nanos(120_000)).len(), 9);
    assert_eq!(link.next_event(), Some(Instant::from_nanos(132_000)));
}
