//! Queues: how they are told from jitter, drained, and competed for.

use super::*;

#[test]
fn a_queue_is_drained_and_costs_the_same_factor_for_all() {
    let left = |share: f64| {
        let mut script = Script::grown();
        (script.law.rate, script.law.priced) = (10_000.0 * share, true);
        script.queue_until(8.0, |phase| matches!(phase, UnionPhase::Drain(_)));
        let drained = script.pace() / script.law.rate;
        assert!((0.80..=0.96).contains(&drained), "{drained}");
        let before = script.law.rate;
        (0..3).for_each(|_| script.deliver(before, 8.0, None));
        script.deliver(before, 0.0, None);
        script.law.rate / before
    };
    let [large, small] = [left(0.6), left(0.2)];
    assert!((large / small - 1.0).abs() < 0.02, "{large} and {small}");
    assert!((0.85..0.97).contains(&large), "{large}");
}

#[test]
fn a_queue_that_answers_no_drain_is_others_and_cubic_competes_with_them() {
    let mut script = Script::grown();
    (script.law.rate, script.law.priced) = (5_000.0, true);
    script.queue_until(30.0, |phase| matches!(phase, UnionPhase::Compete(_)));
    let window = cwnd(&script.control);
    (0..200).for_each(|_| script.deliver(5_000.0, 30.0, None));
    assert!(cwnd(&script.control) > window, "the window grows");
    script.lose(1);
    script.deliver(5_000.0, 30.0, None);
    assert!(matches!(script.law.phase, UnionPhase::Drain(_)), "a loss cuts it");
}

#[test]
fn a_flow_with_the_whole_link_competes_with_nobody() {
    let mut script = Script::grown();
    script.law.priced = true;
    (0..300).for_each(|_| {
        let rate = script.pace().min(10_000.0);
        script.deliver(rate.max(9_000.0), 30.0, None);
        assert!(!matches!(script.law.phase, UnionPhase::Compete(_)));
    });
}

#[test]
fn a_delay_that_stands_while_less_is_sent_and_as_much_less_arrives_is_the_paths() {
    // Packets in the order of a path that delays them by up to 30 ms, or behind a queue of a link of 10 000 packets/s.
    let quiet = |of_the_path: bool| {
        let mut script = Script::grown();
        script.law.priced = true;
        let (mut paces, mut sent) = (vec![9_900.0; 5], script.path.packets_sent as f64);
        for _ in 0..150 {
            let came = if of_the_path { paces[paces.len() - 5] } else { 10_000.0 };
            sent += script.pace() / 100.0;
            // It counts what comes as sent.
            script.path.packets_sent = sent as u64 - (came / 100.0) as u64;
            script.deliver(came, 30.0, None);
            paces.push(script.pace());
            // It drains from the third interval on.
            if paces.len() > 20 && matches!(script.law.phase, UnionPhase::Grow) {
                break;
            }
        }
        (matches!(script.law.phase, UnionPhase::Grow), script.law.queue.delay(), script.law.rate)
    };
    let (grows, delay, rate) = quiet(true);
    assert!(grows && delay == 0.0 && rate > 9_000.0, "{delay} {rate}");
    assert!(!quiet(false).0, "a queue gives up what is not sent");
}

#[test]
fn a_competition_without_losses_costs_no_cut() {
    let mut script = Script::grown();
    (script.law.rate, script.law.priced) = (5_000.0, true);
    script.queue_until(30.0, |phase| matches!(phase, UnionPhase::Compete(_)));
    let window = script.law.rate * 0.07;
    (0..3).for_each(|_| script.deliver(5_000.0, 0.0, None));
    assert!(matches!(script.law.phase, UnionPhase::Grow));
    assert!(script.law.rate > 0.9 * window / 0.04, "the window, without the queue: {}", script.law.rate);
}

#[test]
fn a_queue_that_falls_to_zero_has_answered_in_full() {
    let mut answer = Answer::default();
    answer.add(0.006, 0.02, 0.005);
    assert!((answer.share() - 5.0 / 6.0).abs() < 1e-9, "it could not fall by 20 ms: {answer:?}");
    answer.add(0.1, 0.02, -0.01);
    assert!((answer.share() - 5.0 / 26.0).abs() < 1e-9, "a rise is no answer: {answer:?}");
}

#[test]
fn a_competing_flow_searches_once_per_second_and_forgets_evidence_when_the_queue_has_gone() {
    let mut script = Script::grown();
    (script.law.rate, script.law.priced) = (5_000.0, true);
    script.queue_until(30.0, |phase| matches!(phase, UnionPhase::Compete(_)));
    (0..10).for_each(|_| script.deliver(5_000.0, 30.0, None));
    script.lose(1);
    script.deliver(5_000.0, 30.0, None);
    assert!(matches!(script.law.phase, UnionPhase::Drain(_)));
    script.queue_until(30.0, |phase| matches!(phase, UnionPhase::Compete(_)));
    (0..10).for_each(|_| script.deliver(5_000.0, 30.0, None));
    let window = cwnd(&script.control);
    script.lose(1);
    script.deliver(5_000.0, 30.0, None);
    assert!(matches!(script.law.phase, UnionPhase::Compete(_)), "a second has not passed");
    assert!(cwnd(&script.control) < 0.75 * window, "but it is cut");
    assert!(script.law.answer.expected > 0.0);
    (0..3).for_each(|_| script.deliver(5_000.0, 0.0, None));
    assert!(matches!(script.law.phase, UnionPhase::Grow) && script.law.answer.expected == 0.0);
}

#[test]
fn packets_that_follow_each_other_differ_by_jitter_and_not_by_a_queue() {
    let jitter = |delays: [u64; 2]| {
        let (mut queue, mut path) = (Queue::new(), Path { now: Instant::ZERO, ..Path::default() });
        for millis in 1..200 {
            path.now = Instant::ZERO + Duration::from_millis(millis);
            queue.take(RTT + Duration::from_millis(delays[millis as usize % 2]), None, &path);
        }
        queue.jitter() * 1e3
    };
    assert!((jitter([2, 9]) - 7.0).abs() < 0.01, "{}", jitter([2, 9]));
    assert!(jitter([5, 5]) < 0.01, "{}", jitter([5, 5]));
}

#[test]
fn a_queue_on_the_return_path_is_none_of_this_flow() {
    // Clocks of which the peer's is 3 s ahead and loses 100 µs/s, queues of 20 ms there and back, and a peer that claims more.
    let delay = |there: u64, back: u64, claims: f64| {
        let (mut queue, mut path) = (Queue::new(), Path { now: Instant::ZERO, ..Path::default() });
        for millis in 1..400 {
            path.now = Instant::ZERO + Duration::from_millis(millis);
            let (there, back) = if millis > 100 { (there, back) } else { (0, 0) };
            let clocks = -3.0 + 1e-7 * millis as f64;
            let return_delay = 0.02 + back as f64 * 1e-3 + clocks - if millis > 100 { claims } else { 0.0 };
            queue.take(RTT + Duration::from_millis(there + back), Some(return_delay), &path);
        }
        queue.delay() * 1e3
    };
    let around = |value: f64, least: f64| (least..least + 0.1).contains(&(value + 0.05));
    assert!(around(delay(20, 0, 0.0), 20.0), "{}", delay(20, 0, 0.0));
    assert!(around(delay(0, 20, 0.0), 0.0), "{}", delay(0, 20, 0.0));
    assert!(around(delay(20, 0, 0.5), 20.0), "no more than the RTT has: {}", delay(20, 0, 0.5));
}

#[test]
fn delays_within_the_jitter_of_a_path_are_no_queue() {
    let drains = |delays: [f64; 4]| {
        let mut script = Script::grown();
        let mut drained = false;
        for step in 0..200 {
            script.deliver(5_000.0, delays[step % 4], None);
            drained |= step >= 100 && !matches!(script.law.phase, UnionPhase::Grow);
        }
        drained
    };
    assert!(!drains([3.0, 6.0, 9.0, 4.0]), "uniform in 9 ms");
    assert!(drains([3.0, 3.0, 3.0, 3.0]), "a queue");
}
