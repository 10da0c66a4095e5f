//! Suspended computers, and attempts to drive timers from outside.

use farhaul_proto::{Config, ConnectionLost, Event, Mode, Streams, Transport};
use farhaul_units::Duration;
use farhaul_wire::udt4::{Control, Handshake, Request, SocketId};

use crate::attack::acks::sending;
use crate::attack::bench::{Bench, Peer, Sent, address, call, data_packets, handshake};

/// Suspends the endpoint for `seconds`. Then the driver serves its timers first.
fn sleep(bench: &mut Bench, seconds: u64) {
    bench.now += Duration::from_secs(seconds);
    bench.end.handle_timeout(bench.now);
    bench.drain();
}

#[test]
fn b20_a_suspended_computer_asks_before_it_gives_the_peer_up() {
    let (mut bench, mut peer) = sending();
    bench.run_millis(28_000);
    assert_eq!(bench.closed(&peer), None);
    bench.take_sent();
    sleep(&mut bench, 3_600);
    assert_eq!(bench.closed(&peer), None);
    assert!(!bench.take_sent().is_empty(), "it asks at once");
    bench.run_millis(3_000);
    assert_eq!(bench.closed(&peer), None, "an answer may take its time");
    let ack = peer.ack(peer.isn().plus(16));
    bench.control(&peer, &ack);
    assert_eq!(bench.stats(&peer).in_flight, 0);
    bench.run_millis(29_000);
    assert_eq!(bench.closed(&peer), None);
}

#[test]
fn b20_a_peer_that_is_gone_after_a_suspension_is_noticed() {
    for data_first in [false, true] {
        let (mut bench, peer) = sending();
        bench.now += Duration::from_secs(3_600);
        if data_first {
            bench.full(&peer, peer.isn());
        }
        bench.end.handle_timeout(bench.now);
        bench.run_millis(29_000);
        assert_eq!(bench.closed(&peer), None);
        bench.run_millis(3_000);
        assert!(matches!(bench.closed(&peer), Some(ConnectionLost::PeerSilent(_))));
    }
}

#[test]
fn b20_neither_lingering_nor_stalling_nor_connecting_time_runs_while_suspended() {
    let config = Config { stall_timeout: Some(Duration::from_secs(40)), ..Config::default() };
    let mut bench = Bench::new(config, Mode::Stream);
    let peer = bench.accept_default();
    bench.control(&peer, &Control::KeepAlive);
    bench.write(&peer, 5_000);
    let calling = bench.end.connect(bench.now, address(7)).expect("there is room");
    let options = farhaul_proto::udt::ConnectOptions { mode: Mode::Stream, rendezvous: true };
    let rendezvous = bench.end.connect_with(bench.now, address(8), options).expect("there is room");
    let finishing = bench.accept(address(2), &call(6, 1));
    bench.control(&finishing, &Control::KeepAlive);
    bench.write(&finishing, 5_000);
    bench.end.finish(bench.now, finishing.id);
    bench.run_millis(2_000);
    sleep(&mut bench, 600);
    bench.run_millis(1_000);
    let over: Vec<_> = bench.events.iter().filter(|event| matches!(event, Event::Closed(..))).collect();
    assert!(over.is_empty(), "{over:?}");
    bench.run_millis(50_000);
    for id in [peer.id, calling, rendezvous, finishing.id] {
        assert!(bench.events.iter().any(|event| matches!(event, Event::Closed(other, _) if *other == id)));
    }
}

#[test]
fn b15_expirations_back_off_and_do_not_synchronise() {
    let expirations = |seed: u32| -> Vec<Duration> {
        let mut bench = Bench::listening();
        // Earlier events of the endpoint change its random numbers.
        for n in 0..seed {
            bench.accept(address(100 + n as u16), &call(n + 1, 1));
        }
        let peer = bench.accept_default();
        bench.control(&peer, &Control::KeepAlive);
        bench.write(&peer, 16 * 1456);
        let start = bench.now;
        bench.run_millis(25_000);
        let is_oldest = |sent: &Sent| sent.seq() == Some(peer.isn()) && sent.to == peer.address;
        bench.take_sent().iter().filter(|sent| is_oldest(sent)).map(|sent| sent.at - start).collect()
    };
    let (one, other) = (expirations(1), expirations(2));
    assert!(one.len() > 4 && one.len() < 30, "{one:?}");
    let last = one.windows(2).last().map(|pair| pair[1] - pair[0]).expect("several");
    assert!(last > Duration::from_millis(700), "{one:?}");
    assert_ne!(one[3..], other[3..]);
}

#[test]
fn b15_a_flood_of_keep_alives_does_not_stop_retransmission() {
    let (mut bench, peer) = sending();
    bench.take_sent();
    for _ in 0..2_000 {
        bench.control(&peer, &Control::KeepAlive);
        bench.run_millis(1);
    }
    assert!(data_packets(&bench.take_sent()).1 > 0, "the oldest packet is sent again for want of progress");
}

#[test]
fn a6_a_half_open_connection_is_not_prolonged_by_strangers_or_repeats() {
    let mut bench = Bench::listening();
    let peer = bench.accept_default();
    let stranger = Peer { address: address(9), ..peer };
    for _ in 0..105 {
        bench.control(&stranger, &Control::KeepAlive);
        bench.deliver(address(1), &handshake(SocketId::NONE, &stranger.call));
        bench.deliver(
            address(1),
            &handshake(stranger.victim, &Handshake { request: Request::Conclusion, ..stranger.call }),
        );
        bench.run_millis(100);
    }
    assert!(bench.closed(&stranger).is_some());
}
