//! Attacks before there is a connection.

use core::net::SocketAddr;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

use farhaul_proto::udt::ConnectOptions;
use farhaul_proto::{Event, Mode, Transport};
use farhaul_sim::TapAction;
use farhaul_sim::topology::path::{CALLER, LISTENER, address};
use farhaul_units::{Duration, Instant, Rng};
use farhaul_wire::secure::{Epoch, Header, MIN_INITIAL};

use crate::attack_secure::bench::{assert_whole, finish, upload};
use crate::attack_secure::server::{Server, call, caller, sent, with_token};

#[test]
fn a1_a_token_of_another_address_or_a_damaged_one_proves_nothing() {
    let mut server = Server::flooded();
    let held = server.end.connections();
    let shown = with_token(&mut server, caller(400), 9);
    let token_at = 16 + 4 + 4 + 1 + 20 + 1;
    for at in token_at..token_at + 60 {
        let mut damaged = shown[0].clone();
        damaged[at] ^= 0x20;
        server.deliver(caller(400), &damaged);
        assert_eq!(server.end.connections(), held, "byte {at}");
    }
    server.deliver(caller(401), &shown[0]);
    assert_eq!(server.end.connections(), held, "another address");
    server.deliver(SocketAddr::new(caller(400).ip(), 4_001), &shown[0]);
    assert_eq!(server.end.connections(), held, "another port");
    server.deliver(caller(400), &shown[0]);
    assert_eq!(server.end.connections(), held + 1);
}

#[test]
fn a2_a_caller_that_hears_no_answer_gets_no_connection() {
    let mut server = Server::new();
    let (_, datagrams) = call(9);
    let (mut came, mut left) = (0, 0);
    for datagram in &datagrams {
        came += datagram.len();
        left += server.deliver(caller(1), datagram).iter().map(|(_, answer)| answer.len()).sum::<usize>();
    }
    // He guesses the end of the handshake, for any connection.
    let mut rng = Rng::new(3);
    for id in 0..20_000_u32 {
        let header = Header { epoch: Epoch::HANDSHAKE, number: 0, to: farhaul_wire::secure::ConnectionName::new(id) };
        let mut guess = header.bytes().to_vec();
        guess.extend((0..100).map(|_| rng.next_u64() as u8));
        came += guess.len();
        assert!(server.deliver(caller(1), &guess).is_empty());
    }
    left += server.run_millis(20_000);
    assert!(left <= 3 * came, "{left} bytes for {came}");
    assert_eq!((server.end.connections(), server.events.len()), (0, 0));
}

#[test]
fn a3_a_token_is_good_for_ten_seconds_wherever_those_lie() {
    for base in [1_u64, 59_990, 60_000, 3_599_995, 1 << 32] {
        for (later, good) in [(0, true), (9_900, true), (10_100, false)] {
            let mut server = Server::flooded();
            let held = server.end.connections();
            server.now = Instant::ZERO + Duration::from_millis(base);
            let shown = with_token(&mut server, caller(400), 9);
            server.now += Duration::from_millis(later);
            server.deliver(caller(400), &shown[0]);
            assert_eq!(server.end.connections() > held, good, "{later} ms after {base} ms");
        }
    }
}

#[test]
fn a7_repeated_handshakes_to_an_established_connection_are_not_answered() {
    let (mut run, taped) = (upload(), Rc::new(RefCell::new(Vec::new())));
    let tape = Rc::clone(&taped);
    run.set_tap(Some(Box::new(move |datagram| {
        tape.borrow_mut().push((usize::from(datagram.to == address(LISTENER)), datagram.from, datagram.bytes.clone()));
        TapAction::Pass
    })));
    run.run_for(Duration::from_millis(200));
    let handshake = |bytes: &[u8]| Header::decode(bytes).is_ok_and(|header| !header.epoch.is_application());
    let old: Vec<_> = taped.take().into_iter().filter(|(_, _, bytes)| handshake(bytes)).collect();
    assert!(old.len() >= 6);
    let answers = Rc::new(Cell::new(0));
    let count = Rc::clone(&answers);
    run.set_tap(Some(Box::new(move |datagram| {
        count.set(count.get() + u32::from(handshake(datagram.bytes)));
        TapAction::Pass
    })));
    for _ in 0..300 {
        run.run_for(Duration::from_millis(1));
        for (host, from, bytes) in &old {
            run.inject(*host, *from, bytes);
        }
    }
    finish(&mut run);
    assert_eq!(answers.get(), 0);
    assert_eq!([CALLER, LISTENER].map(|host| run.flows(host).len()), [1, 1]);
    assert_whole(&run);
}

/// `rendezvous` in the crate has the attacks in the name of the peer.
#[test]
fn a8_strangers_never_meet_a_side_that_waits_for_its_peer() {
    let mut server = Server::new();
    server.end.stop_listening();
    let options = ConnectOptions { mode: Mode::Stream, rendezvous: true };
    server.end.connect_with(server.now, caller(1), options).unwrap();
    sent(&mut server.end, server.now);
    for seed in 2..100 {
        let (_, datagrams) = call(seed);
        for datagram in datagrams {
            assert!(server.deliver(caller(seed.into()), &datagram).is_empty(), "another address than the peer's");
            let answers = server.deliver(caller(1), &datagram);
            assert!(answers.iter().all(|(to, _)| *to == caller(1)));
        }
    }
    assert_eq!(server.end.connections(), 1);
    let met = std::iter::from_fn(|| server.end.poll_event()).next();
    assert_eq!(met, None, "the calls of strangers are no calls by rendezvous");
}

#[test]
fn a11_nothing_is_answered_but_initial_packets_and_no_answer_is_longer_than_its_trigger() {
    let mut server = Server::flooded();
    let mut rng = Rng::new(5);
    let (_, calls) = call(9);
    let isakmp = [[7; 16].as_slice(), &[0x21, 0x20, 0x22, 0x08, 0, 0, 0, 0, 0, 0, 1, 0x50], &[0; 300]].concat();
    let dns = [0x12, 0x34, 0x01, 0, 0, 1, 0, 0, 0, 0, 0, 0, 3, b'w', b'w', b'w', 0, 0, 1, 0, 1];
    for nonsense in [isakmp.as_slice(), &dns, &[], &[0xC5], &[0xC5, 0]] {
        assert!(nonsense.is_empty() || server.deliver(caller(2), nonsense).is_empty());
    }
    for round in 0..3_000 {
        let mut datagram = calls[0].clone();
        for _ in 0..rng.below(3) {
            let at = rng.below(datagram.len() as u64) as usize;
            datagram[at] ^= 1 << rng.below(8);
        }
        if rng.below(2) == 0 {
            datagram.truncate(1 + rng.below(MIN_INITIAL as u64 - 1) as usize);
        }
        let answers = server.deliver(caller(round % 60_000), &datagram);
        let bytes: usize = answers.iter().map(|(_, answer)| answer.len()).sum();
        assert!(bytes <= datagram.len(), "{bytes} bytes for {}", datagram.len());
        assert!(bytes == 0 || datagram.len() >= MIN_INITIAL);
    }
    assert!(!server.events.iter().any(|event| matches!(event, Event::Accepted(_))));
}
