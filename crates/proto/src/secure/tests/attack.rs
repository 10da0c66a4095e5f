//! Attacks on handshakes and connections under packet protection, by their letters in SECURITY.md.

use farhaul_wire::secure::{ConnectionName, Frame, TAG_LEN};

use super::*;

/// Datagrams of a client that calls, as the wire carries them.
fn initials(seed: u8) -> Vec<Vec<u8>> {
    let mut client = end(seed, Null::new(u64::from(seed)));
    client.connect(Instant::from_nanos(1), address(1)).unwrap();
    let (mut batch, mut all) = (Batch::new(), Vec::new());
    while let Some(transmit) = client.poll_transmit(Instant::from_nanos(1), &mut batch) {
        all.extend(transmit.datagrams().map(<[u8]>::to_vec));
    }
    all
}

fn answers(server: &mut Endpoint, now: Instant) -> Vec<Vec<u8>> {
    let (mut batch, mut all) = (Batch::new(), Vec::new());
    while let Some(transmit) = server.poll_transmit(now, &mut batch) {
        all.extend(transmit.datagrams().map(<[u8]>::to_vec));
    }
    all
}

#[test]
fn a6_a_flood_of_callers_must_prove_their_addresses_and_costs_no_memory() {
    let mut server = end(2, Null::new(2));
    server.listen(Mode::Stream).unwrap();
    let now = Instant::from_nanos(1);
    let mut client = end(1, Null::new(1));
    let (mut came, mut left) = (0, 0);
    for call in 0..3_000_u32 {
        client.connect(now, address(1)).unwrap();
        let from = SocketAddr::from(([10, (call >> 8) as u8, call as u8, 1], 4000));
        for mut datagram in answers(&mut client, now) {
            let len = datagram.len();
            came += len;
            server.handle_datagrams(now, now, from, &mut datagram, len);
        }
        left += answers(&mut server, now).iter().map(Vec::len).sum::<usize>();
    }
    assert_eq!(server.connections(), 256, "a quarter of the half-open ones that are permitted");
    assert!(left < came, "{left} of {came} bytes");
}

#[test]
fn a6_a_caller_that_proves_its_address_gets_in_during_a_flood() {
    let mut pair = Pair::new();
    let now = pair.now;
    for seed in 0..=255_u8 {
        for mut datagram in initials(seed) {
            let len = datagram.len();
            let from = SocketAddr::from(([10, 7, seed, 1], 4000));
            pair.ends[1].handle_datagrams(now, now, from, &mut datagram, len);
        }
    }
    answers(&mut pair.ends[1], now);
    assert_eq!(pair.ends[1].connections(), 256);
    let caller = pair.call();
    pair.run_until(5, |pair| pair.events[0].contains(&Event::Connected(caller)));
    assert!(pair.now - now < DELAY * 6, "one more round trip, not a time-out");
}

/// Forged callers take all free places of a network. Who is there proves it, and needs none of them.
#[test]
fn a6_a_flood_in_the_name_of_a_network_keeps_nobody_of_it_out() {
    let mut pair = Pair::new();
    let now = pair.now;
    let mut forger = end(3, Null::new(3));
    for port in 0..1_000_u16 {
        forger.connect(now, address(1)).unwrap();
        for mut datagram in answers(&mut forger, now) {
            let (len, from) = (datagram.len(), SocketAddr::from(([10, 0, 0, 9], 20_000 + port)));
            pair.ends[1].handle_datagrams(now, now, from, &mut datagram, len);
        }
        answers(&mut pair.ends[1], now);
    }
    let caller = pair.call();
    pair.run_until(5, |pair| pair.events[0].contains(&Event::Connected(caller)));
    assert!(pair.now - now < DELAY * 6, "one more round trip");
}

#[test]
fn a6_a_listener_with_few_places_keeps_some_for_callers_with_a_proof() {
    let config = Config { backlog: 8, ..Config::default() };
    let mut pair = Pair::new();
    pair.ends[1] = endpoint(config, Entropy { cookie_key: [2; 16], seed: 2 }, Box::new(Null::new(2)));
    pair.ends[1].listen(Mode::Stream).unwrap();
    let now = pair.now;
    for seed in 10..60 {
        for mut datagram in initials(seed) {
            let (len, from) = (datagram.len(), SocketAddr::from(([10, 9, seed, 1], 4_000)));
            pair.ends[1].handle_datagrams(now, now, from, &mut datagram, len);
        }
        answers(&mut pair.ends[1], now);
    }
    assert_eq!(pair.ends[1].connections(), 2, "a quarter of them");
    let caller = pair.call();
    pair.run_until(5, |pair| pair.events[0].contains(&Event::Connected(caller)));
}

/// A packet that TLS refuses at once costs no place, and its sender is told.
#[test]
fn a6_a_call_that_fails_at_its_first_packet_leaves_nothing() {
    let mut server = end(2, Null::new(2));
    server.listen(Mode::Stream).unwrap();
    let now = Instant::from_nanos(1);
    let client_id = [5; 16];
    let keys = Null::new(0).initial(&client_id, Side::Client);
    let header = Header { epoch: Epoch::INITIAL, number: 0, to: ConnectionName::NONE };
    let mut datagram = header.bytes().to_vec();
    InitialHeader { version: VERSION, from: ConnectionName::new(7), client_id: &client_id, token: &[] }
        .encode(&mut datagram);
    let head = datagram.len();
    Frame::Crypto { offset: 0, bytes: &[0] }.encode(&mut datagram);
    // More than any handshake has.
    Frame::Crypto { offset: 16 << 10, bytes: &[0] }.encode(&mut datagram);
    datagram.resize(MIN_INITIAL - TAG_LEN, 0);
    let (head, body) = datagram.split_at_mut(head);
    let tag = keys.local.seal(0, head, body);
    datagram.extend_from_slice(&tag);
    let len = datagram.len();
    server.handle_datagrams(now, now, address(0), &mut datagram, len);
    assert_eq!(server.connections(), 0);
    let told = answers(&mut server, now);
    assert!(told.len() == 1 && told[0].len() < len, "one answer, shorter than the call");
}

/// Anybody who sees a call can answer it so, and so does a listener that is full for a moment.
#[test]
fn a6_a_caller_that_hears_busy_calls_again_until_its_time_is_over() {
    for is_busy_for in [1, 4, u32::MAX] {
        let mut pair = Pair::new();
        let (busy, mut calls) = (std::rc::Rc::new(std::cell::RefCell::new(Vec::new())), 0);
        let said = std::rc::Rc::clone(&busy);
        pair.fate = Box::new(move |end, datagram| {
            let is_call = end == 0 && Header::decode(datagram).is_ok_and(|header| header.epoch == Epoch::INITIAL);
            calls += u32::from(is_call);
            if !is_call || calls > is_busy_for {
                return 1;
            }
            let (asked, _) = InitialHeader::decode(datagram).unwrap();
            let (keys, mut answer) = (Null::new(2).initial(asked.client_id, Side::Server), Vec::new());
            stateless_replies::close(&asked, &keys, (CloseCode::Busy, "no room"), &mut answer);
            said.borrow_mut().push(answer);
            0
        });
        let caller = pair.call();
        let end = pair.now + Duration::from_secs(12);
        let is_over = |pair: &Pair| pair.events[0].iter().any(|event| event.connection() == caller);
        while pair.now < end && !is_over(&pair) {
            pair.step();
            for mut answer in busy.take() {
                let (now, len) = (pair.now, answer.len());
                pair.ends[0].handle_datagrams(now, now, address(1), &mut answer, len);
            }
        }
        let expected = match is_busy_for {
            u32::MAX => Event::Closed(caller, ConnectionLost::Refused),
            _ => Event::Connected(caller),
        };
        assert_eq!(pair.events[0][0], expected, "busy for {is_busy_for} packets");
    }
}

#[test]
fn a10_a_damaged_first_packet_leaves_nothing() {
    for at in 0..MIN_INITIAL {
        let mut server = end(2, Null::new(2));
        server.listen(Mode::Stream).unwrap();
        let mut first = initials(1).remove(0);
        first[at] ^= 1;
        let len = first.len();
        let now = Instant::from_nanos(1);
        server.handle_datagrams(now, now, address(0), &mut first, len);
        assert_eq!(server.connections(), 0, "byte {at}");
    }
}

#[test]
fn a11_no_answer_is_longer_than_three_times_what_came() {
    let mut server = end(2, Null::new(2));
    server.listen(Mode::Stream).unwrap();
    let all = initials(1);
    let mut now = Instant::from_nanos(1);
    let came: usize = all.iter().map(Vec::len).sum();
    for mut datagram in all {
        let len = datagram.len();
        server.handle_datagrams(now, now, address(0), &mut datagram, len);
    }
    let mut left = 0;
    for _ in 0..200 {
        left += answers(&mut server, now).iter().map(Vec::len).sum::<usize>();
        now += Duration::from_millis(100);
        server.handle_timeout(now);
    }
    assert!(left <= 3 * came && left > 0, "{left} of {came} bytes");
    assert_eq!(server.connections(), 0, "the caller never came back");
}

#[test]
fn a11_nonsense_is_never_answered() {
    let mut server = end(2, Null::new(2));
    server.listen(Mode::Stream).unwrap();
    let (mut rng, now) = (Rng::new(5), Instant::from_nanos(1));
    let first = initials(1).remove(0);
    for _ in 0..2_000 {
        let mut datagram = first.clone();
        datagram.truncate(rng.next_u64() as usize % (MIN_INITIAL - 1));
        for _ in 0..rng.next_u64() % 4 {
            let at = rng.next_u64() as usize % datagram.len().max(1);
            if let Some(byte) = datagram.get_mut(at) {
                *byte = rng.next_u64() as u8;
            }
        }
        let len = datagram.len();
        server.handle_datagrams(now, now, address(0), &mut datagram, len.max(1));
    }
    assert!(answers(&mut server, now).is_empty());
    assert_eq!(server.connections(), 0);
}

/// A forger on the path sees every packet, and has no key.
#[test]
fn b1_forged_packets_change_nothing() {
    let mut pair = Pair::new();
    let ids = pair.connect();
    let captured = std::sync::Arc::new(std::sync::Mutex::new(Vec::<Vec<u8>>::new()));
    let tap = std::sync::Arc::clone(&captured);
    pair.fate = Box::new(move |_, datagram| {
        tap.lock().unwrap().push(datagram.clone());
        1
    });
    let data = content(300_000);
    assert!(pair.transfer(ids, &data) == data);
    let packets = std::mem::take(&mut *captured.lock().unwrap());
    let mut rng = Rng::new(3);
    let now = pair.now;
    for packet in packets.iter().take(400) {
        for end in 0..2 {
            let mut forged = packet.clone();
            let at = rng.next_u64() as usize % forged.len();
            forged[at] ^= 1 << (rng.next_u64() % 8);
            let len = forged.len();
            pair.ends[end].handle_datagrams(now, now, address(1 - end), &mut forged, len);
            // The same packet once more.
            let mut again = packet.clone();
            pair.ends[end].handle_datagrams(now, now, address(1 - end), &mut again, len);
        }
    }
    assert!(pair.transfer(ids, &data) == data, "the stream goes on");
}

/// The keys of Initial packets follow from what is in clear on the path.
#[test]
fn b1_a_forged_end_in_an_initial_packet_ends_no_established_connection() {
    let mut pair = Pair::new();
    let clear = std::sync::Arc::new(std::sync::Mutex::new(Vec::<(usize, Vec<u8>)>::new()));
    let tap = std::sync::Arc::clone(&clear);
    pair.fate = Box::new(move |end, datagram| {
        tap.lock().unwrap().push((end, datagram.clone()));
        1
    });
    let ids = pair.connect();
    let seen = clear.lock().unwrap().clone();
    let answer = &seen.iter().find(|(end, _)| *end == 1).unwrap().1;
    let (initial, _) = InitialHeader::decode(answer).unwrap();
    let (client, server) = (Header::decode(answer).unwrap().to, initial.from);
    let now = pair.now;
    for (end, from, to, side) in [(0, server, client, Side::Server), (1, client, server, Side::Client)] {
        let keys = Null::new(0).initial(initial.client_id, side);
        let asked = InitialHeader { version: VERSION, from: to, client_id: initial.client_id, token: &[] };
        let mut forged = Vec::new();
        stateless_replies::close(&asked, &keys, (CloseCode::Busy, "forged"), &mut forged);
        assert_ne!(from, to);
        let len = forged.len();
        pair.ends[end].handle_datagrams(now, now, address(1 - end), &mut forged, len);
    }
    let data = content(100_000);
    assert!(pair.transfer(ids, &data) == data);
}

#[test]
fn the_packets_of_a_handshake_are_ignored_once_it_is_over() {
    let mut pair = Pair::new();
    let first = std::sync::Arc::new(std::sync::Mutex::new(Vec::<(usize, Vec<u8>)>::new()));
    let tap = std::sync::Arc::clone(&first);
    pair.fate = Box::new(move |end, datagram| {
        tap.lock().unwrap().push((end, datagram.clone()));
        1
    });
    let ids = pair.connect();
    let replayed = first.lock().unwrap().clone();
    let end = pair.now + Duration::from_secs(11);
    while pair.now < end && pair.step() {}
    let (now, before) = (pair.now, pair.sent.clone());
    for (end, mut datagram) in replayed {
        let handshake = Header::decode(&datagram).is_ok_and(|header| header.epoch < Epoch::FIRST_APPLICATION);
        let len = datagram.len();
        if handshake {
            pair.ends[1 - end].handle_datagrams(now, now, address(end), &mut datagram, len);
        }
    }
    pair.step();
    assert_eq!(pair.sent, before, "nothing is answered");
    let data = content(10_000);
    assert!(pair.transfer(ids, &data) == data);
    assert_eq!(pair.ends[1].connections(), 1);
}
