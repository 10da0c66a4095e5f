//! What a connection recalls of its path, and hands on.

use super::*;

/// A connection that recalls 10 000 packets/s, after its first delivery with an RTT of `millis`.
fn recalling(millis: f64) -> Script {
    let mut script = Script::new();
    let rate = PacketRate::new(10_000.0).to_rate(script.path.mss);
    script.law.recall(KnownPath { rate, rtt: RTT });
    script.deliver(400.0, millis - 40.0, None);
    script
}

#[test]
fn a_recalled_path_is_tried_at_half_its_rate_and_doubled_as_that_arrives() {
    let mut script = recalling(40.5);
    assert!((script.pace() - 5_000.0).abs() < 1.0, "{}", script.pace());
    (0..5).for_each(|_| script.deliver(400.0, 0.0, None));
    assert!((script.pace() - 5_000.0).abs() < 1.0, "nothing of it has arrived: {}", script.pace());
    script.path.capacity = Some(PacketRate::new(10_000.0));
    // The search beyond it has begun.
    assert!((script.echo(10).last().unwrap() - 9_900.0).abs() < 100.0, "{}", script.pace());
}

#[test]
fn a_recalled_rate_that_arrives_without_a_queue_bounds_nothing() {
    // The first step beyond is a tenth, because what was recalled may hold.
    let paces = recalling(40.0).echo(150);
    assert!(paces.last().is_some_and(|pace| *pace > 500_000.0), "{:?}", paces.last());
    let beyond = paces.iter().position(|pace| *pace > 10_000.0).unwrap();
    assert!(paces[beyond + 3] < 11_500.0, "{:?}", &paces[..beyond + 4]);
}

#[test]
fn a_recalled_rate_grows_although_no_two_of_its_packets_are_in_flight_together() {
    let mut script = Script::new();
    let rate = PacketRate::new(700.0).to_rate(script.path.mss);
    script.law.recall(KnownPath { rate, rtt: RTT });
    for _ in 0..200 {
        script.deliver_sampled(script.pace().min(100_000.0), 0.0, None, None);
    }
    assert!(script.pace() > 100_000.0, "{}", script.pace());
}

#[test]
fn a_path_with_another_round_trip_or_a_slower_train_is_not_the_recalled_one() {
    let mut script = Script::new();
    let rate = PacketRate::new(10_000.0).to_rate(script.path.mss);
    for millis in [20, 30, 50, 80] {
        let mut script = Script::new();
        script.law.recall(KnownPath { rate, rtt: Duration::from_millis(millis) });
        script.deliver(400.0, 0.0, None);
        assert!(matches!(script.law.phase, UnionPhase::Start(_)), "{millis} ms");
    }
    script.law.recall(KnownPath { rate, rtt: RTT });
    script.deliver(400.0, 0.0, Some(4_000.0));
    assert!(script.pace() > 7_000.0 && matches!(script.law.phase, UnionPhase::Start(_)), "{}", script.pace());
}

#[test]
fn a_recalled_rate_that_is_lost_yields_to_what_arrives() {
    let mut script = recalling(40.0);
    (0..12).for_each(|_| {
        script.lose(40);
        script.deliver(1_000.0, 0.0, None);
    });
    assert!(script.law.rate <= 1_000.0, "{}", script.law.rate);
}

#[test]
fn a_timeout_ends_what_is_recalled() {
    let mut script = recalling(40.0);
    script.law.on_timeout(&script.path, &TimeoutEvent::default(), &mut script.control);
    assert!(script.pace() <= 400.0 && script.law.belief.limit().is_some(), "{}", script.pace());
}

#[test]
fn a_connection_that_has_carried_nothing_is_not_remembered() {
    let mut script = Script::grown();
    script.law.carried = Extreme::most();
    assert_eq!(script.law.remember(&script.path, true), None);
}

#[test]
fn the_next_connection_recalls_what_this_one_has_carried() {
    let script = Script::grown();
    let known = script.law.remember(&script.path, true).unwrap();
    assert_eq!((known.rtt, known.rate), (RTT, PacketRate::new(10_000.0).to_rate(1_500)));
    assert_eq!(Script::new().law.remember(&script.path, true), None, "it has learned nothing");
    let known = recalling(40.0).law.remember(&script.path, true).unwrap();
    assert_eq!(known.rate, PacketRate::new(10_000.0).to_rate(1_500), "it has not tried it");
}

#[test]
fn a_connection_that_the_path_did_not_limit_hands_on_what_it_recalled_and_has_not_refuted() {
    assert_eq!(Script::grown().law.remember(&Path::default(), false), None, "what it found does not count");
    let mut script = recalling(40.0);
    let known = script.law.known.unwrap();
    assert_eq!(script.law.remember(&script.path, false), Some(known));
    script.echo(4);
    (0..12).for_each(|_| {
        script.lose(40);
        script.deliver(1_000.0, 0.0, None);
    });
    assert_eq!(script.law.remember(&script.path, false), None);
}
