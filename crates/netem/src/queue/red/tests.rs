//! RED computed by hand, against a second implementation of the paper's algorithm, and the uniform spacing of drops.

use farhaul_units::Rng;
use proptest::prelude::*;

use super::*;
use crate::testing::Numbered;

const GIGABIT: Option<Rate> = Some(Rate::from_megabits_per_second(1_000));

fn red(spec: RedSpec) -> Red<Numbered> {
    Red::new(spec, Limit::of_packets(1_000), GIGABIT, Rng::new(3))
}

#[test]
fn the_average_follows_the_queue_as_computed_by_hand() {
    let mut queue = red(RedSpec { weight: 0.5, min: 100.0, max: 300.0, ..RedSpec::default() });
    let mut averages = Vec::new();
    for number in 0..5 {
        queue.enqueue(Instant::ZERO, Numbered::new(number));
        averages.push(queue.average());
    }
    assert_eq!(averages, [0.0, 0.5, 1.25, 2.125, 3.0625]);
    while queue.dequeue(Instant::ZERO).is_some() {}
    // Idle for three packet times: an eighth of the average is left, and the empty queue adds nothing.
    queue.enqueue(Instant::from_nanos(36_000), Numbered::new(5));
    assert_eq!(queue.average(), 3.0625 / 8.0);
}

#[test]
fn drop_probabilities_match_the_paper() {
    let spec = RedSpec { min: 5.0, max: 15.0, max_probability: 0.1, gentle: true, ..RedSpec::default() };
    for (average, base) in [(5.0, 0.0), (10.0, 0.05), (15.0, 0.1), (22.5, 0.55), (30.0, 1.0)] {
        assert!((spec.base_probability(average) - base).abs() < 1e-12, "{average}");
    }
    // pb = 1/20. Ten packets after a drop pa is 1/10, and the nineteenth packet is dropped for certain.
    for (count, probability) in [(0, 0.05), (10, 0.1), (19, 1.0), (40, 1.0)] {
        assert!((spread_probability(0.05, count) - probability).abs() < 1e-12, "{count}");
    }
}

#[test]
fn the_number_of_packets_between_drops_is_uniform() {
    // With weight 1 the average equals the queue, which is held at ten packets: pb = 1/20.
    let mut queue = red(RedSpec { weight: 1.0, ..RedSpec::default() });
    let mut gaps = [0u32; 20];
    let mut since = 0;
    let mut drops = 0;
    while drops < 19_000 {
        while queue.tallies().waiting.packets > 10 {
            queue.dequeue(Instant::ZERO);
        }
        queue.enqueue(Instant::ZERO, Numbered::new(0));
        since += 1;
        if queue.tallies().dropped.packets > drops {
            drops = queue.tallies().dropped.packets;
            if drops > 1 {
                gaps[since] += 1;
            }
            since = 0;
        }
    }
    // 19000 gaps over the lengths 1 to 19: 1000 each, with a standard deviation of 31.
    assert!(gaps[1..].iter().all(|count| (850..1_150).contains(count)), "{gaps:?}");
}

#[test]
fn a_standing_average_above_max_drops_everything_unless_gentle() {
    for (gentle, expected) in [(false, 1_000..1_001), (true, 600..700)] {
        let mut queue = red(RedSpec { weight: 1.0, gentle, ..RedSpec::default() });
        (0..16).for_each(|_| queue.backlog.push(Numbered::new(0)));
        queue.idle_since = None;
        // At 19 packets gentle has pb = 0.34. The next drop is the first packet behind a drop (0.515) or the second.
        for number in 0..1_000 {
            queue.enqueue(Instant::ZERO, Numbered::new(number));
            while queue.tallies().waiting.packets > 19 {
                queue.dequeue(Instant::ZERO);
            }
        }
        let dropped = queue.tallies().dropped_early.packets;
        assert!(expected.contains(&dropped), "{dropped} with gentle {gentle}");
    }
}

#[test]
fn the_size_limit_holds_at_any_average() {
    let mut queue: Red<Numbered> = Red::new(RedSpec::default(), Limit::of_packets(4), GIGABIT, Rng::new(1));
    (0..10).for_each(|number| queue.enqueue(Instant::ZERO, Numbered::new(number)));
    assert_eq!(
        (queue.tallies().waiting.packets, queue.tallies().dropped.packets, queue.tallies().dropped_early.packets),
        (4, 6, 0)
    );
}

#[test]
fn in_bytes_a_short_packet_is_dropped_less_often() {
    let dropped = |bytes: u32| {
        let mut queue = red(RedSpec { weight: 1.0, in_bytes: true, ..RedSpec::default() });
        (0..10).for_each(|_| queue.backlog.push(Numbered::new(0)));
        queue.idle_since = None;
        for number in 0..20_000 {
            queue.enqueue(Instant::ZERO, Numbered { bytes, ..Numbered::new(number) });
            if queue.tallies().waiting.packets > 10 {
                let kept = queue.backlog.pop().expect("eleven wait");
                queue.backlog.push(Numbered { bytes: FULL_PACKET, ..kept });
                let last = queue.backlog.tallies.waiting;
                assert!(last.packets >= 10);
                // Back to ten full packets.
                while queue.tallies().waiting.packets > 10 {
                    queue.dequeue(Instant::ZERO);
                }
            }
        }
        queue.tallies().dropped.packets
    };
    let (full, short) = (dropped(1_500), dropped(150));
    assert!(short > 0 && full > 5 * short, "{full} full ones, {short} short ones");
}

#[test]
fn automatic_parameters_follow_the_rate() {
    let slow = RedSpec::for_rate(Rate::from_megabits_per_second(10));
    assert_eq!((slow.min, slow.max), (5.0, 15.0));
    let fast = RedSpec::for_rate(Rate::from_megabits_per_second(1_200));
    assert_eq!((fast.min, fast.max), (250.0, 750.0));
    assert!((fast.weight * 100_000.0 - 1.0).abs() < 1e-4, "{}", fast.weight);
}

/// The paper's figure 2, implemented a second time. Returns whether the packet is dropped.
struct Figure2 {
    avg: f64,
    count: i64,
    q: u64,
    q_time: Option<u64>,
    rng: Rng,
}

impl Figure2 {
    fn arrival(&mut self, time: u64, limit: u64) -> bool {
        let (w, min, max, maxp, s) = (0.1, 2.0, 6.0, 0.2, 12_000.0);
        if let Some(q_time) = self.q_time.take() {
            self.avg *= libm::pow(1.0 - w, (time - q_time) as f64 / s);
        } else {
            self.avg = (1.0 - w) * self.avg + w * self.q as f64;
        }
        let mut dropped = false;
        if min <= self.avg && self.avg < max {
            self.count += 1;
            let pb = maxp * (self.avg - min) / (max - min);
            let pa = if self.count as f64 * pb < 1.0 { pb / (1.0 - self.count as f64 * pb) } else { 1.0 };
            if self.rng.unit() < pa {
                (dropped, self.count) = (true, 0);
            }
        } else if max <= self.avg {
            (dropped, self.count) = (true, 0);
        } else {
            self.count = -1;
        }
        if !dropped && self.q > 0 && self.q >= limit {
            (dropped, self.count) = (true, 0);
        }
        self.q += u64::from(!dropped);
        dropped
    }
}

proptest! {
    #[test]
    fn every_drop_matches_the_papers_algorithm(
        steps in prop::collection::vec((0u64..40_000, 0usize..4, 0usize..4), 1..200), limit in 1u64..30, seed: u64,
    ) {
        let spec = RedSpec { weight: 0.1, min: 2.0, max: 6.0, max_probability: 0.2, ..RedSpec::default() };
        let mut queue = Red::new(spec, Limit::of_packets(limit), GIGABIT, Rng::new(seed));
        let mut figure = Figure2 { avg: 0.0, count: -1, q: 0, q_time: Some(0), rng: Rng::new(seed) };
        let mut time = 0;
        for (gap, arrivals, departures) in steps {
            for _ in 0..arrivals {
                let before = queue.tallies().dropped.packets;
                queue.enqueue(Instant::from_nanos(time), Numbered::new(0));
                prop_assert_eq!(queue.tallies().dropped.packets > before, figure.arrival(time, limit));
                prop_assert!((queue.average() - figure.avg).abs() < 1e-9);
            }
            for _ in 0..departures {
                if queue.dequeue(Instant::from_nanos(time)).is_some() {
                    figure.q -= 1;
                } else {
                    figure.q_time.get_or_insert(time);
                }
            }
            prop_assert_eq!(queue.tallies().waiting.packets, figure.q);
            time += gap;
        }
    }
}
