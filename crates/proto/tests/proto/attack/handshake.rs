//! Callers that lie, flood, guess, or call at a bad moment.

use farhaul_proto::{Config, ConnectionLost, Entropy, Event, Mode, Streams, udt};
use farhaul_units::Duration;
use farhaul_wire::udt4::{Control, Handshake, Packet, Request, SocketId};

use crate::attack::bench::{Bench, Peer, Sent, address, call, data_packets, encode, handshake, raw};

pub(crate) fn conclusion(call: &Handshake, cookie: u32) -> Vec<u8> {
    handshake(SocketId::NONE, &Handshake { request: Request::Conclusion, cookie, ..*call })
}

/// Handshake packets in the output, by request.
pub(crate) fn requests(sent: &[Sent]) -> Vec<Request> {
    let request = |sent: &Sent| match sent.control() {
        Some(Control::Handshake(packet)) => Some(packet.request),
        _ => None,
    };
    sent.iter().filter_map(request).collect()
}

// ---- A1, A2, A3 ----

#[test]
fn a1_a_cookie_depends_on_a_secret_and_is_good_for_nobody_else() {
    let cookie_of = |key: u8| {
        let mut bench = Bench::listening();
        bench.end = udt::endpoint(Config::default(), Entropy { cookie_key: [key; 16], seed: 0 });
        bench.end.listen(Mode::Stream).expect("UDT has the mode");
        bench.cookie(address(1), &call(5, 1))
    };
    assert_ne!(cookie_of(1), cookie_of(2));

    let mut bench = Bench::listening();
    let cookie = bench.cookie(address(1), &call(5, 1));
    bench.deliver(address(2), &conclusion(&call(5, 1), cookie));
    bench.deliver(address(1), &conclusion(&call(6, 1), cookie));
    bench.deliver(address(1), &conclusion(&call(5, 1), cookie ^ 1));
    assert_eq!((bench.end.connections(), bench.take_sent().len()), (0, 0));
}

/// Uses up the guesses of `address(1)`'s network for a second.
fn guess(bench: &mut Bench) {
    let cookie = bench.cookie(address(1), &call(5, 1));
    for guess in 1..=100 {
        bench.deliver(address(1), &conclusion(&call(5, 1), cookie.wrapping_add(guess)));
    }
    bench.take_sent();
}

#[test]
fn a1_after_a_hundred_guesses_per_second_and_network_a_lucky_one_connects_nobody() {
    let mut bench = Bench::listening();
    let cookie = bench.cookie(address(1), &call(5, 1));
    guess(&mut bench);
    bench.deliver(address(1), &conclusion(&call(5, 1), cookie));
    assert_eq!(bench.end.connections(), 0, "who guesses does not see the second cookie");
    let sent = bench.take_sent();
    assert_eq!(requests(&sent), [Request::Induction]);
    let Some(Control::Handshake(answer)) = sent[0].control() else { panic!("no handshake") };
    // The second cookie is bound to its caller too.
    bench.deliver(address(2), &conclusion(&call(5, 1), answer.cookie));
    bench.deliver(address(1), &conclusion(&call(6, 1), answer.cookie));
    assert_eq!((bench.end.connections(), bench.take_sent().len()), (0, 0));
    bench.accept(address(600), &call(5, 1));
    bench.run_millis(1_000);
    bench.deliver(address(1), &conclusion(&call(5, 1), cookie));
    assert_eq!(bench.end.connections(), 2, "another network was never held up, this one not for long");
}

#[test]
fn a1_a_right_cookie_is_not_refused_for_the_guesses_of_others() {
    let mut listener = Bench::listening();
    let mut caller = Bench::listening();
    let id = caller.end.connect(caller.now, address(600)).expect("there is room");
    let mut asked = Vec::new();
    for _ in 0..5 {
        // An attacker constantly sends guesses from addresses of the caller's network.
        guess(&mut listener);
        let said = caller.take_sent();
        asked.extend(requests(&said));
        for sent in said {
            listener.deliver(address(2), &sent.bytes);
        }
        for sent in listener.take_sent() {
            caller.deliver(address(600), &sent.bytes);
        }
    }
    assert!(caller.events.contains(&Event::Connected(id)));
    assert_eq!(asked, [Request::Induction, Request::Conclusion, Request::Conclusion], "a round trip more");
}

#[test]
fn a2_socket_ids_are_spread_and_follow_from_the_key() {
    let ids = |key: u8| -> Vec<u32> {
        let mut bench = Bench::listening();
        bench.end = udt::endpoint(Config::default(), Entropy { cookie_key: [key; 16], seed: 0 });
        bench.end.listen(Mode::Stream).expect("UDT has the mode");
        (0..200).map(|n| bench.accept(address(n), &call(5, 1)).victim.value()).collect()
    };
    let (first, second) = (ids(1), ids(2));
    assert!(first.iter().all(|&id| (1..1 << 31).contains(&id)));
    assert!(first.iter().all(|id| !second.contains(id)));
    let near = first.windows(2).filter(|pair| pair[0].abs_diff(pair[1]) < 1 << 16).count();
    assert!(near <= 2, "{near} of 200 ids lie close to the one before");
}

#[test]
fn a2_a_peer_that_proved_nothing_gets_sixteen_packets() {
    let mut bench = Bench::listening();
    let mut peer = bench.accept_default();
    bench.write(&peer, 1 << 20);
    bench.run_millis(5_000);
    let sent = bench.take_sent();
    let (distinct, all) = data_packets(&sent);
    assert_eq!(distinct, 16);
    assert!(all < 16 * 20, "{all} packets into the void");
    // Only an acknowledgement of sent packets proves its address.
    bench.control(&peer, &Control::KeepAlive);
    let isn = peer.isn();
    bench.full(&peer, isn);
    for seq in [isn, isn.plus(17), isn.minus(1)] {
        let ack = peer.ack(seq);
        bench.control(&peer, &ack);
    }
    bench.run_millis(2_000);
    assert!(bench.take_sent().iter().filter_map(Sent::seq).all(|seq| seq.is_before(isn.plus(16))));
    let ack = peer.ack(isn.plus(16));
    bench.control(&peer, &ack);
    bench.run_millis(1_000);
    assert!(bench.take_sent().iter().filter_map(Sent::seq).any(|seq| seq.is_after(isn.plus(16))));
}

#[test]
fn a3_a_cookie_survives_the_minute_boundary() {
    let mut bench = Bench::listening();
    bench.run_millis(59_999);
    let cookie = bench.cookie(address(1), &call(5, 1));
    bench.run_millis(2);
    bench.deliver(address(1), &conclusion(&call(5, 1), cookie));
    assert_eq!(bench.end.connections(), 1);
}

/// The victim calls. The crafted listener answers inductions only.
fn calling() -> (Bench, Peer) {
    let mut bench = Bench::listening();
    let id = bench.end.connect(bench.now, address(1)).expect("there is room");
    bench.drain();
    let first = bench.take_sent();
    let Some(Control::Handshake(request)) = first[0].control() else { panic!("no handshake") };
    let peer = Peer::called(address(1), request, id);
    bench.deliver(address(1), &handshake(request.socket_id, &Handshake { cookie: 0xC00C_1E55, ..request }));
    (bench, peer)
}

fn answer(peer: &Peer) -> Vec<u8> {
    let answer = Handshake { request: Request::Conclusion, socket_id: SocketId::new(77), cookie: 0, ..peer.call };
    handshake(peer.victim, &answer)
}

#[test]
fn a3_our_caller_asks_for_a_new_cookie_after_two_silent_conclusions_and_shows_the_old_one_in_turns() {
    let (mut bench, _) = calling();
    bench.run_millis(1_100);
    use Request::{Conclusion, Induction};
    assert_eq!(requests(&bench.take_sent()), [Conclusion, Conclusion, Induction, Conclusion, Induction]);
}

#[test]
fn a3_a_late_answer_connects_although_a_new_cookie_was_asked_for() {
    // An RTT longer than two attempts, as over a satellite.
    let (mut bench, peer) = calling();
    bench.run_millis(600);
    bench.deliver(address(1), &answer(&peer));
    assert!(bench.events.contains(&Event::Connected(peer.id)));
}

#[test]
fn a3_nothing_connects_a_caller_that_never_showed_a_cookie() {
    let mut bench = Bench::listening();
    let id = bench.end.connect(bench.now, address(1)).expect("there is room");
    let first = bench.take_sent();
    let Some(Control::Handshake(request)) = first[0].control() else { panic!("no handshake") };
    let peer = Peer::called(address(1), request, id);
    bench.deliver(address(1), &answer(&peer));
    assert!(!bench.events.contains(&Event::Connected(id)));
}

#[test]
fn a3_an_answer_after_the_end_of_the_attempt_connects_nobody() {
    let (mut bench, peer) = calling();
    bench.run_millis(6_000);
    assert!(matches!(bench.closed(&peer), Some(ConnectionLost::HandshakeTimeout(_))));
    bench.deliver(address(1), &answer(&peer));
    assert!(!bench.events.contains(&Event::Connected(peer.id)));
    bench.run_millis(60_000);
}

// ---- A4, A5 ----

#[test]
fn a4_a_window_bomb_takes_no_memory_and_no_more_than_the_local_window() {
    for claim in [1 << 28, u32::MAX, 0x8000_0000, 0] {
        let mut bench = Bench::listening();
        let mut peer = bench.accept(address(1), &Handshake { flow_window: claim, ..call(5, 1) });
        let stats = bench.stats(&peer);
        assert!(stats.memory < 10_000, "{} bytes for a claim of {claim}", stats.memory);
        assert!((2..=Config::default().max_flow_window).contains(&stats.flow_window), "{}", stats.flow_window);
        let isn = peer.isn();
        let ack = peer.full_ack(isn, Duration::from_millis(10), claim, (u32::MAX, u32::MAX));
        bench.control(&peer, &ack);
        let stats = bench.stats(&peer);
        assert!(stats.memory < 10_000 && stats.flow_window <= Config::default().max_flow_window);
    }
}

#[test]
fn a5_packet_sizes_below_the_minimum_are_refused_and_above_ours_are_cut() {
    let mut bench = Bench::listening();
    for mss in [0, 1, 43, 44, 75, 76, 575] {
        let tiny = Handshake { mss, ..call(5, 1) };
        let cookie = bench.cookie(address(1), &tiny);
        bench.deliver(address(1), &conclusion(&tiny, cookie));
        assert_eq!(requests(&bench.take_sent()), [Request::Refused], "{mss}");
        assert_eq!(bench.end.connections(), 0);
    }
    for mss in [1501, 65_536, u32::MAX, 0x8000_0000] {
        let peer = bench.accept(address(mss as u16 % 7), &Handshake { mss, ..call(mss % 1000 + 1, 1) });
        assert_eq!(bench.stats(&peer).payload_size, 1456, "{mss}");
        bench.write(&peer, 5_000);
        assert!(bench.take_sent().iter().all(|sent| sent.bytes.len() <= 1472));
    }
    let peer = bench.accept(address(9), &Handshake { mss: 576, ..call(9, 1) });
    assert_eq!(bench.stats(&peer).payload_size, 532);
}

#[test]
fn a5_our_caller_refuses_a_tiny_packet_size_as_well() {
    let (mut bench, mut peer) = calling();
    peer.call.mss = 44;
    bench.deliver(address(1), &answer(&peer));
    assert!(matches!(bench.closed(&peer), Some(ConnectionLost::PeerIncompatible(_))));
}

// ---- A7 ----

fn repeat(bench: &mut Bench, peer: &Peer, packet: &Handshake) -> usize {
    bench.take_sent();
    for to in [SocketId::NONE, peer.victim] {
        for _ in 0..50 {
            bench.deliver(peer.address, &handshake(to, packet));
            bench.run_millis(1);
        }
    }
    requests(&bench.take_sent()).len()
}

#[test]
fn a7_a_repeated_handshake_is_answered_once_a_round_trip() {
    let mut bench = Bench::listening();
    let peer = bench.accept_default();
    bench.run_millis(500);
    let answers = repeat(&mut bench, &peer, &peer.call);
    assert!((1..=2).contains(&answers), "{answers} answers in a tenth of a second, which is a round trip at first");
    assert_eq!(bench.end.connections(), 1);
}

#[test]
fn a7_a_handshake_that_differs_or_comes_from_elsewhere_is_not_answered() {
    let mut bench = Bench::listening();
    let peer = bench.accept_default();
    bench.run_millis(500);
    let others = [
        Handshake { isn: peer.isn().next(), ..peer.call },
        Handshake { mss: 1400, ..peer.call },
        Handshake { socket_id: SocketId::new(6), ..peer.call },
    ];
    for other in others {
        assert_eq!(repeat(&mut bench, &peer, &other), 0, "{other:?}");
    }
    let elsewhere = Peer { address: address(2), ..peer };
    assert_eq!(repeat(&mut bench, &elsewhere, &elsewhere.call), 0);
}

#[test]
fn a7_the_packet_size_that_was_asked_for_counts_not_the_one_that_was_granted() {
    for (asked, others) in [(1500, [1501, 9000, u32::MAX]), (9000, [1500, 1501, 8999])] {
        let mut bench = Bench::listening();
        let peer = bench.accept(address(1), &Handshake { mss: asked, ..call(5, 1000) });
        bench.run_millis(500);
        for mss in others {
            assert_eq!(repeat(&mut bench, &peer, &Handshake { mss, ..peer.call }), 0, "{mss} instead of {asked}");
        }
        assert!(repeat(&mut bench, &peer, &peer.call) > 0, "the very same is answered");
    }
}

#[test]
fn a7_two_endpoints_do_not_answer_each_others_answers() {
    let (mut bench, peer) = calling();
    bench.deliver(address(1), &answer(&peer));
    assert!(bench.events.contains(&Event::Connected(peer.id)));
    bench.run_millis(500);
    bench.take_sent();
    for _ in 0..10 {
        bench.deliver(address(1), &answer(&peer));
        bench.run_millis(300);
    }
    assert_eq!(requests(&bench.take_sent()), [], "a caller has nothing to answer");
}

#[test]
fn a7_a_repeated_handshake_to_a_dead_connection_neither_answers_nor_keeps_the_processor_busy() {
    let mut bench = Bench::listening();
    let peer = bench.accept_default();
    bench.end.close(bench.now, peer.id);
    bench.run_millis(5_000);
    bench.take_sent();
    let wakes = bench.wakes;
    bench.deliver(peer.address, &handshake(SocketId::NONE, &peer.call));
    bench.run_millis(1_000);
    assert_eq!(requests(&bench.take_sent()), []);
    assert!(bench.wakes - wakes < 10);
}

// ---- A11 ----

#[test]
fn a11_an_invalid_datagram_is_never_answered() {
    let mut bench = Bench::listening();
    let peer = bench.accept_default();
    bench.run_millis(100);
    bench.take_sent();
    let good = handshake(SocketId::NONE, &call(5, 1));
    for length in 0..good.len() {
        bench.deliver(address(9), &good[..length]);
    }
    let long = [good.clone(), vec![0; 4]].concat();
    bench.deliver(address(9), &long);
    for kind in 0..=0x7FFF {
        for body in [&[][..], &[0; 4], &[0xFF; 48]] {
            bench.deliver(address(9), &raw(kind, 1, SocketId::NONE, body));
            bench.deliver(address(9), &raw(kind, 1, peer.victim, body));
        }
    }
    let mut rng = farhaul_units::Rng::new(1);
    for _ in 0..10_000 {
        let length = rng.next_u64() as usize % 100;
        let noise: Vec<u8> = (0..length).map(|_| rng.next_u64() as u8).collect();
        bench.deliver(address(9), &noise);
    }
    assert_eq!(bench.take_sent().len(), 0);
}

#[test]
fn a11_an_answer_without_state_is_no_longer_than_its_trigger_and_addressed_to_a_socket() {
    let mut bench = Bench::listening();
    for request in [1, -1, 0, -2, 1002, 7, i32::MIN] {
        for id in [0, 5] {
            let mut trigger = handshake(SocketId::NONE, &call(id, 1));
            trigger[36..40].copy_from_slice(&i32::to_be_bytes(request));
            bench.deliver(address(9), &trigger);
            let sent = bench.take_sent();
            assert!(sent.len() <= 1 && sent.iter().all(|sent| sent.bytes.len() <= trigger.len()));
            for answer in sent {
                let Packet::Control { destination, .. } = answer.packet() else { panic!("data") };
                assert!(!destination.is_none(), "another listener would take it for a question");
            }
        }
    }
}

#[test]
fn a11_two_listeners_cannot_be_made_to_talk_to_each_other() {
    let mut ends = [Bench::listening(), Bench::listening()];
    let mut flying: Vec<(usize, Vec<u8>)> = vec![(0, handshake(SocketId::NONE, &call(0, 1)))];
    flying.push((1, handshake(SocketId::NONE, &call(5, 1))));
    let mut steps = 0;
    while let Some((to, datagram)) = flying.pop() {
        // Each takes the other for the sender.
        ends[to].deliver(address(1 - to as u16), &datagram);
        flying.extend(ends[to].take_sent().into_iter().map(|sent| (1 - to, sent.bytes)));
        steps += 1;
        assert!(steps < 100, "they talk for ever");
    }
}

#[test]
fn a11_every_type_to_an_open_connection_brings_at_most_as_many_bytes_back() {
    let mut bench = Bench::listening();
    let peer = bench.accept_default();
    bench.control(&peer, &Control::KeepAlive);
    bench.run_millis(500);
    let mut answered = 0;
    for kind in [0, 1, 2, 3, 4, 6, 7, 9, 0x7FFF] {
        for length in (0..64).step_by(4) {
            bench.take_sent();
            // An acknowledgement of nothing, which can be true.
            let body: Vec<u8> = peer.isn().value().to_be_bytes().into_iter().chain([0; 64]).take(length).collect();
            let trigger = raw(kind, 3, peer.victim, &body);
            bench.deliver(peer.address, &trigger);
            let back: usize = bench.take_sent().iter().map(|sent| sent.bytes.len()).sum();
            assert!(back <= trigger.len() + 4, "type {kind}, body of {length}: {back} bytes");
            answered += usize::from(back > 0);
        }
    }
    assert!(answered > 0, "acknowledgements are confirmed");
    let ack2 = encode(peer.victim, &Control::KeepAlive);
    bench.deliver(peer.address, &ack2);
    assert_eq!(bench.closed(&peer), None);
}
