//! RFC 9438, rule by rule.

use farhaul_units::Duration;

use super::super::windowed::tests::Connection;
use super::*;

/// A window of `cwnd` packets at this RTT.
fn connection(cwnd: f64, round_trip_ms: u64) -> Connection<Cubic> {
    Connection::with_window(Cubic::new(), cwnd).over_ms(round_trip_ms)
}

fn rounds(tcp: &mut Connection<Cubic>, rounds: u32) {
    (0..rounds).for_each(|_| _ = tcp.round());
}

#[test]
fn slow_start_doubles_until_a_loss_leaves_seven_tenths() {
    let mut tcp = connection(10.0, 100);
    rounds(&mut tcp, 4);
    assert_eq!(tcp.cwnd(), 160.0);
    assert!((tcp.lose_one() - 112.0).abs() < 1e-9);
}

#[test]
fn the_window_follows_the_cubic_back_and_beyond() {
    // From 1000 packets: K = (300/0.4)^(1/3) = 9.086 s.
    let mut tcp = connection(1_000.0, 100);
    tcp.lose_one();
    let began = tcp.path.now;
    for (round, at) in [(45, 4.5), (45, 9.0), (60, 15.0)] {
        rounds(&mut tcp, round);
        let t = (tcp.path.now - began).as_secs_f64();
        assert!((t - at).abs() < 0.1, "{t}");
        let beyond = t - 9.0856;
        let expected = 0.4 * beyond * beyond * beyond + 1_000.0;
        assert!((tcp.cwnd() / expected - 1.0).abs() < 0.01, "at {t} s {}, expected {expected}", tcp.cwnd());
    }
}

#[test]
fn cubic_grows_like_reno_where_reno_is_faster() {
    // At 20 packets and 10 ms the cubic needs seconds. Reno adds 0.529 packets per RTT.
    let mut tcp = connection(30.0, 10);
    tcp.lose_one();
    assert!((tcp.cwnd() - 21.0).abs() < 1e-9);
    rounds(&mut tcp, 10);
    assert!((tcp.cwnd() - (21.0 + 10.0 * 0.529)).abs() < 0.3, "{}", tcp.cwnd());
    // Back at 30 packets after 17 RTTs, it grows by one per RTT.
    rounds(&mut tcp, 10);
    let before = tcp.cwnd();
    assert!(before > 30.0);
    rounds(&mut tcp, 10);
    assert!((tcp.cwnd() - before - 10.0).abs() < 0.5, "{}", tcp.cwnd() - before);
}

#[test]
fn a_second_loss_below_the_first_lowers_the_origin() {
    let mut tcp = connection(1_000.0, 100);
    tcp.lose_one();
    rounds(&mut tcp, 1);
    let cwnd = tcp.cwnd();
    assert!(cwnd < 1_000.0);
    tcp.lose_one();
    assert!((tcp.law().origin.unwrap() - cwnd * 0.85).abs() < 1e-9, "fast convergence");
}

#[test]
fn after_a_timeout_slow_start_precedes_the_flat_part_of_the_cubic() {
    let mut tcp = connection(100.0, 100);
    assert_eq!(tcp.time_out(1, 100), 1.0);
    assert_eq!(tcp.time_out(2, 1), 1.0);
    (0..69).for_each(|_| _ = tcp.ack(1));
    assert!((tcp.cwnd() - 70.0).abs() < 1e-9, "the threshold");
    rounds(&mut tcp, 10);
    // K = 0: one second later the cubic is 0.4 packets above, so Reno's five packets count.
    assert!((tcp.cwnd() - 75.3).abs() < 0.4, "{}", tcp.cwnd());
}

#[test]
fn a_round_trip_adds_half_of_the_window_at_most() {
    let mut tcp = connection(100.0, 1_000);
    tcp.lose_one();
    tcp.ack(1);
    tcp.path.now += Duration::from_secs(100);
    let before = tcp.cwnd();
    tcp.ack(1);
    assert!((tcp.cwnd() - before - 0.5).abs() < 1e-9);
}

#[test]
fn application_limited_time_does_not_count() {
    let mut tcp = connection(1_000.0, 100);
    tcp.lose_one();
    rounds(&mut tcp, 1);
    tcp.path.application_limited = true;
    tcp.path.now += Duration::from_secs(60);
    let before = tcp.cwnd();
    tcp.ack(1);
    assert!((tcp.cwnd() - before).abs() < 1e-9);
    tcp.path.application_limited = false;
    rounds(&mut tcp, 1);
    assert!(tcp.cwnd() < 1_000.0, "{}", tcp.cwnd());
}
