//! Datagrams of strangers and of other protocols, and damaged calls.

use farhaul_proto::udt::ConnectOptions;
use farhaul_proto::{Event, Mode};
use farhaul_units::SeqNo;
use farhaul_wire::udt4::{Handshake, Request, SocketId};

use crate::attack::bench::{Bench, Peer, address, call, data, encode, handshake, only};

#[test]
fn a8_a_side_that_waits_for_its_peer_answers_nobody_else() {
    let mut bench = Bench::listening();
    bench.end.stop_listening();
    let options = ConnectOptions { mode: Mode::Stream, rendezvous: true };
    let id = bench.end.connect_with(bench.now, address(1), options).unwrap();
    bench.run_millis(1_000);
    bench.take_sent();
    let wave = |request| Handshake { request, ..call(5, 1000) };
    for request in [Request::Rendezvous, Request::Conclusion, Request::Induction, Request::RendezvousFinal] {
        for from in 2..100 {
            bench.deliver(address(from), &handshake(SocketId::NONE, &wave(request)));
        }
    }
    assert!(bench.take_sent().iter().all(|sent| sent.to == address(1)));
    assert!(bench.events.is_empty(), "{:?}", bench.events);
    // The peer alone is met.
    bench.deliver(address(1), &handshake(SocketId::NONE, &wave(Request::Rendezvous)));
    bench.deliver(address(1), &handshake(SocketId::NONE, &wave(Request::Conclusion)));
    assert!(bench.events.contains(&Event::Connected(id)), "{:?}", bench.events);
}

#[test]
fn a9_a_plain_listener_never_answers_a_protected_packet_or_another_version() {
    let mut bench = Bench::listening();
    for first in 0xC0..=0xFF_u8 {
        let mut initial = vec![0x5A; 1_200];
        initial[0] = first;
        bench.deliver(address(1), &initial);
    }
    for version in [0, 1, 2, 3, 5, 6, u32::MAX] {
        let other = Handshake { version, ..call(5, 1000) };
        let cookie = bench.cookie(address(1), &call(5, 1000));
        let concluding = Handshake { request: Request::Conclusion, cookie, ..other };
        bench.deliver(address(1), &handshake(SocketId::NONE, &concluding));
    }
    assert!(bench.events.is_empty(), "{:?}", bench.events);
}

#[test]
fn a10_no_flipped_bit_of_a_call_keeps_its_repetition_from_connecting() {
    for bit in 0..64 * 8 {
        let mut bench = Bench::listening();
        let calling = call(5, 1000);
        let cookie = bench.cookie(address(1), &calling);
        let concluding = handshake(SocketId::NONE, &Handshake { request: Request::Conclusion, cookie, ..calling });
        let mut damaged = concluding.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        bench.deliver(address(1), &damaged);
        bench.deliver(address(1), &concluding);
        let accepted = bench.events.iter().any(|event| matches!(event, Event::Accepted(_)));
        assert!(accepted, "bit {bit}: {:?}", bench.events);
    }
}

/// Everything that a forged packet could change.
fn state(bench: &Bench, peer: &Peer) -> (u64, u64, u32) {
    let stats = bench.stats(peer);
    (stats.totals.packets_received, stats.totals.acks_received, stats.in_flight)
}

#[test]
fn b16_copied_packets_from_another_address_change_nothing_and_move_nothing() {
    let mut bench = Bench::listening();
    let mut peer = bench.accept_default();
    let isn = peer.isn();
    bench.full(&peer, isn);
    bench.write(&peer, 1_456);
    bench.run_millis(50);
    bench.take_sent();
    let before = state(&bench, &peer);
    let ack = peer.ack(isn.plus(1));
    for from in 2..50 {
        for copy in [data(peer.victim, SeqNo::new(isn.value() + 1), only(1), &[7; 1_456]), encode(peer.victim, &ack)] {
            bench.deliver(address(from), &copy);
        }
    }
    assert_eq!(state(&bench, &peer), before);
    bench.run_millis(2_000);
    let sent = bench.take_sent();
    assert!(!sent.is_empty() && sent.iter().all(|sent| sent.to == address(1)), "the data goes where it went");
}
