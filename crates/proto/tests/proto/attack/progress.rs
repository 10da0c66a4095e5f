//! Live peers that accept almost none of the data they requested (attack B10).

use farhaul_proto::{Config, ConnectionLost, MinProgress, Mode};
use farhaul_units::Duration;
use farhaul_wire::udt4::Control;

use crate::attack::bench::{Bench, Peer};

/// The settings of a daemon.
fn daemon() -> Config {
    Config { min_progress: Some(MinProgress::DAEMON), ..Config::default() }
}

/// A connection with much to send.
fn sending(config: Config) -> (Bench, Peer) {
    let mut bench = Bench::new(config, Mode::Stream);
    let peer = bench.accept_default();
    bench.control(&peer, &Control::KeepAlive);
    bench.write(&peer, 1 << 20);
    (bench, peer)
}

/// The peer stays for some minutes and takes a packet of 1456 bytes each `pace` seconds. Returns the minute in which it
/// was given up, if it was.
fn minutes_of(bench: &mut Bench, peer: &mut Peer, minutes: u64, pace: Option<u64>) -> Option<u64> {
    let mut taken = 0;
    for second in 1..=minutes * 60 {
        bench.run_millis(1_000);
        bench.take_sent();
        if second % 5 == 0 {
            bench.control(peer, &Control::KeepAlive);
        }
        if pace.is_some_and(|pace| second % pace == 0) {
            taken += 1;
            let ack = peer.full_ack(peer.isn().plus(taken), Duration::from_millis(100), 2, (0, 0));
            bench.control(peer, &ack);
        }
        if bench.closed(peer).is_some() {
            return Some(second / 60);
        }
    }
    None
}

#[test]
fn b10_a_peer_that_takes_less_than_a_kibibyte_a_minute_is_closed_after_ten() {
    // 728 bytes a minute.
    let (mut bench, mut peer) = sending(daemon());
    assert_eq!(minutes_of(&mut bench, &mut peer, 60, Some(120)), Some(10));
    let Some(ConnectionLost::TooSlow { bytes, time }) = bench.closed(&peer) else {
        panic!("{:?}", bench.closed(&peer))
    };
    assert!((4 * 1_456..=5 * 1_456).contains(&bytes), "{bytes}");
    assert_eq!(time, Duration::from_secs(600));
}

#[test]
fn b10_a_peer_that_takes_more_is_served_and_one_that_stops_is_closed_within_two_periods() {
    // 1 456 bytes a minute.
    let (mut bench, mut peer) = sending(daemon());
    assert_eq!(minutes_of(&mut bench, &mut peer, 60, Some(60)), None);
    let stopped = minutes_of(&mut bench, &mut peer, 60, None).expect("it is closed");
    assert!((10..=20).contains(&stopped), "{stopped}");
}

#[test]
fn b10_minimum_progress_is_asked_for_only_where_it_is_configured() {
    let (mut bench, mut peer) = sending(Config::default());
    assert_eq!(minutes_of(&mut bench, &mut peer, 120, Some(3_000)), None);
}

#[test]
fn b10_an_idle_connection_owes_no_progress() {
    let mut bench = Bench::new(daemon(), Mode::Stream);
    let mut peer = bench.accept_default();
    bench.control(&peer, &Control::KeepAlive);
    assert_eq!(minutes_of(&mut bench, &mut peer, 120, None), None);
    // The time starts with the data, not with the last data before it.
    bench.write(&peer, 10_000);
    assert_eq!(minutes_of(&mut bench, &mut peer, 9, None), None);
    assert_eq!(minutes_of(&mut bench, &mut peer, 2, None), Some(1));
}

#[test]
fn b20_suspended_time_does_not_count_for_minimum_progress() {
    let (mut bench, mut peer) = sending(daemon());
    assert_eq!(minutes_of(&mut bench, &mut peer, 5, None), None);
    bench.now += Duration::from_secs(3_600);
    assert_eq!(minutes_of(&mut bench, &mut peer, 9, None), None);
    assert!(minutes_of(&mut bench, &mut peer, 2, None).is_some());
}
