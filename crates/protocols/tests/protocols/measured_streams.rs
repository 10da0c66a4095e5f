//! Measured streams between two ports with encryption, on the simplest network.
#![expect(clippy::unwrap_used, reason = "in tests a failure is a panic")]

use farhaul_units::{Duration, Rate};
use farhaul_wire::probe as wire;

use farhaul_proto::endpoint::MOST_CONNECTIONS;
use farhaul_proto::error::{ConnectionLost, PeerIncompatible, SecurityFault};
use farhaul_proto::probe::{ANSWER_LEN, PROTECTION_OVERHEAD, Responder, StableConfig};
use farhaul_proto::secure::{Null, endpoint_with_plain_callers};
use farhaul_proto::{
    Config, ConnectionId, ControlPath, DatagramKind, Datagrams, Endpoint, Entropy, Event, Read, Streams, Transport,
    controller_factory,
};
use farhaul_protocols::Protocol;
use farhaul_protocols::registry::protocols;

use crate::pair::{DELAY, Pair, address};

/// UDP payload of a packet of 1500 bytes.
const PACKET: usize = 1_472;
const DATAGRAM: usize = PACKET - PROTECTION_OVERHEAD;

fn port(name: &str, seed: u8, provider: Null) -> Endpoint {
    let protocol: Protocol = name.parse().unwrap();
    let controller = protocol.controller().map_or_else(|| Config::default().controller, controller_factory);
    let entropy = Entropy { cookie_key: [seed; 16], seed: seed.into() };
    let config = Config { controller, ..Config::default() };
    protocol.secure_endpoint(config, entropy, Box::new(provider))
}

/// A client with UDT4, and a server of any protocol.
fn pair(name: &str) -> Pair {
    Pair::between([port("udt", 1, Null::new(1)), port(name, 2, Null::new(2))])
}

fn datagrams(port: &mut Endpoint) -> &mut dyn Datagrams {
    port.datagrams().unwrap()
}

fn answer(port: &mut Endpoint) {
    datagrams(port).want_datagrams(DatagramKind::Question, true);
}

fn stream() -> StableConfig {
    let target = Rate::from_bits_per_second(2_000_000);
    StableConfig { datagram: DATAGRAM as u16, first_sleep: Duration::from_millis(10), ..StableConfig::new(target) }
}

/// Hands the questions that have arrived at the server to a responder, and sends its answers.
fn respond(pair: &mut Pair, responder: &mut Responder<ConnectionId>) {
    let (now, server) = (pair.now, datagrams(&mut pair.ends[1]));
    server.take_datagrams(DatagramKind::Question, &mut |arrival| {
        for datagram in arrival.datagrams() {
            responder.handle_datagram(arrival.arrived, arrival.connection, datagram);
        }
    });
    let mut answers = Vec::new();
    while let Some(id) = responder.poll_answers(&mut answers, 64) {
        let mut sealed = Vec::new();
        if let Some((to, size)) = server.send_datagrams(now, id, (&answers, ANSWER_LEN), &mut sealed) {
            assert_eq!((to, size), (address(0).into(), ANSWER_LEN + PROTECTION_OVERHEAD));
            pair.wire.extend(sealed.chunks(size).map(|packet| (now + DELAY, 0, packet.to_vec())));
        }
        answers.clear();
    }
}

/// A question for counts, as it is in plain.
fn question() -> Vec<u8> {
    let mut question = Vec::new();
    wire::Probe { kind: wire::Kind::Query, session: 1, number: 0, clock: 0 }.encode(&mut question);
    question
}

/// Opens a connection for measured streams alone.
fn call(pair: &mut Pair) -> ConnectionId {
    let now = pair.now;
    datagrams(&mut pair.ends[0]).connect_for_datagrams(now, address(1)).unwrap()
}

/// Begins a stream through a connection of the client.
fn begin(pair: &mut Pair, id: ConnectionId) {
    let now = pair.now;
    pair.ends[0].begin_control(now, ControlPath::Inside(id, address(1)), stream(), 7);
}

fn acknowledged(pair: &Pair) -> u64 {
    pair.ends[0].control().unwrap().figures(pair.now).acknowledged
}

fn closed(events: &[Event]) -> Option<ConnectionLost> {
    events.iter().find_map(|event| if let Event::Closed(_, reason) = event { Some(*reason) } else { None })
}

#[test]
fn a_stream_settles_at_a_port_of_any_protocol_which_hears_of_no_connection() {
    for entry in protocols() {
        let mut pair = pair(entry.name);
        answer(&mut pair.ends[1]);
        pair.fate = Box::new(|_, datagram| {
            assert!(farhaul_wire::secure::is_protected(datagram) && datagram.len() <= PACKET);
            1
        });
        let id = call(&mut pair);
        pair.run_until(5, |pair| pair.events[0].contains(&Event::Connected(id)));
        begin(&mut pair, id);
        let mut responder = Responder::new();
        pair.run_until(20, |pair| {
            respond(pair, &mut responder);
            pair.ends[0].control().unwrap().figures(pair.now).converged_after.is_some()
        });
        let figures = pair.ends[0].control().unwrap().figures(pair.now);
        let error = figures.goodput.bits_per_second() as f64 / 2e6 - 1.0;
        assert!(error.abs() < 0.03, "{}: {figures:?}", entry.name);
        assert_eq!(responder.totals().1, responder.totals().0 * DATAGRAM as u64, "{}: payload counts", entry.name);
        assert!(pair.sent[0].contains(&PACKET), "{}: full datagrams fill the path", entry.name);
        // Clocks of streams have microseconds.
        let surplus = pair.ends[0].control().unwrap().delays().mean() - DELAY * 2;
        assert!(surplus < Duration::from_micros(1), "{}: {surplus:?}", entry.name);
        assert!(pair.events[1].is_empty(), "{}: {:?}", entry.name, pair.events[1]);

        let now = pair.now;
        pair.ends[0].end_control();
        pair.ends[0].close(now, id);
        pair.ends[0].release(now, id);
        let end = pair.now + Duration::from_secs(5);
        while pair.now < end && pair.step() {}
        let held = [0, 1].map(|end| pair.ends[end].connections());
        assert_eq!(held, [0, 0], "{}: {:?}", entry.name, pair.events[1]);
        assert!(pair.events[1].is_empty(), "{}: {:?}", entry.name, pair.events[1]);
    }
}

#[test]
fn a_stream_goes_beside_a_connection_of_any_protocol_and_harms_none_of_its_bytes() {
    for entry in protocols() {
        let mut pair = Pair::between([1, 2].map(|seed| port(entry.name, seed, Null::new(seed.into()))));
        answer(&mut pair.ends[1]);
        pair.fate = Box::new(|_, datagram| {
            assert!(farhaul_wire::secure::is_protected(datagram) && datagram.len() <= PACKET);
            1
        });
        let ids = pair.connect();
        begin(&mut pair, ids[0]);
        let data: Vec<u8> = (0..1_000_000_u32).map(|i| (i * 7 + i / 251) as u8).collect();
        let (mut written, mut got, mut buffer) = (0, Vec::new(), vec![0; 100_000]);
        let mut responder = Responder::new();
        pair.run_until(60, |pair| {
            respond(pair, &mut responder);
            written += pair.ends[0].write(pair.now, ids[0], &data[written..]).unwrap();
            while let Ok(Read::Data(n)) = pair.ends[1].read(pair.now, ids[1], &mut buffer) {
                got.extend_from_slice(&buffer[..n]);
            }
            got.len() == data.len() && acknowledged(pair) >= 10
        });
        assert!(got == data, "{}", entry.name);
        assert_eq!(pair.ends[0].ceiling(pair.now).map(|ceiling| ceiling.rate.is_some()), Some(true), "{}", entry.name);
    }
}

#[test]
fn a_port_that_answers_no_streams_refuses_a_caller_that_wants_nothing_else() {
    for name in ["udt", "rbudp"] {
        let mut pair = pair(name);
        call(&mut pair);
        pair.run_until(5, |pair| closed(&pair.events[0]).is_some());
        let reason = closed(&pair.events[0]);
        assert_eq!(reason, Some(ConnectionLost::PeerIncompatible(PeerIncompatible::OtherProtocol)), "{name}");
        assert!(pair.events[1].is_empty(), "{name}");
    }
}

#[test]
fn a_sender_whose_key_is_not_admitted_gets_nothing_counted() {
    let mut pair = Pair::between([port("udt", 1, Null::new(1)), port("udt", 2, Null::new(2).that_admits_nobody())]);
    answer(&mut pair.ends[1]);
    let id = call(&mut pair);
    let (mut responder, mut began) = (Responder::new(), false);
    pair.run_until(5, |pair| {
        if !began && pair.events[0].contains(&Event::Connected(id)) {
            began = true;
            begin(pair, id);
        }
        respond(pair, &mut responder);
        closed(&pair.events[0]).is_some()
    });
    assert_eq!(closed(&pair.events[0]), Some(ConnectionLost::Insecure(SecurityFault::NotAdmitted)));
    assert!(began, "a client sends before the server has judged its key");
    assert_eq!((responder.totals(), acknowledged(&pair)), ((0, 0), 0));
    assert!(pair.events[1].is_empty());
}

#[test]
fn a_question_without_packet_protection_is_invalid() {
    for name in ["udt", "tsunami"] {
        let mut pair = pair(name);
        answer(&mut pair.ends[1]);
        let mut question = question();
        let now = pair.now;
        pair.ends[1].handle_datagrams(now, now, address(0), &mut question, ANSWER_LEN);
        let mut taken = 0;
        datagrams(&mut pair.ends[1]).take_datagrams(DatagramKind::Question, &mut |_| taken += 1);
        assert_eq!((taken, pair.ends[1].invalid_datagrams()), (0, 1), "{name}");
    }
}

#[test]
fn a_port_with_plain_clients_serves_protected_streams_alone() {
    let entropy = Entropy { cookie_key: [2; 16], seed: 2 };
    let networks = vec!["10.0.0.0/8".parse().unwrap()];
    let both =
        endpoint_with_plain_callers([Config::default(), Config::default()], networks, entropy, Box::new(Null::new(2)));
    let mut pair = Pair::between([port("udt", 1, Null::new(1)), both]);
    answer(&mut pair.ends[1]);
    let id = call(&mut pair);
    pair.run_until(5, |pair| pair.events[0].contains(&Event::Connected(id)));
    begin(&mut pair, id);
    let mut responder = Responder::new();
    pair.run_until(5, |pair| {
        respond(pair, &mut responder);
        acknowledged(pair) >= 10
    });
    let (now, counted) = (pair.now, responder.totals());
    let mut question = question();
    pair.ends[1].handle_datagrams(now, now, address(0), &mut question, ANSWER_LEN);
    respond(&mut pair, &mut responder);
    assert_eq!((responder.totals(), pair.ends[1].invalid_datagrams()), (counted, 1));
    assert!(pair.events[1].is_empty());
}

#[test]
fn a_connection_for_streams_that_carries_data_is_ended() {
    let mut pair = pair("udt");
    answer(&mut pair.ends[1]);
    let id = call(&mut pair);
    pair.run_until(5, |pair| pair.events[0].contains(&Event::Connected(id)));
    let now = pair.now;
    assert_eq!(pair.ends[0].write(now, id, &[7; 100_000]), Ok(100_000));
    pair.run_until(5, |pair| closed(&pair.events[0]).is_some());
    assert_eq!(closed(&pair.events[0]), Some(ConnectionLost::Aborted));
    let end = pair.now + Duration::from_secs(5);
    while pair.now < end && pair.step() {}
    assert_eq!((pair.ends[1].connections(), &pair.events[1][..]), (0, &[][..]));
}

#[test]
fn callers_beyond_the_limit_are_ended_and_make_room_again() {
    let mut pair = pair("udt");
    answer(&mut pair.ends[1]);
    let ids: Vec<ConnectionId> = (0..=MOST_CONNECTIONS).map(|_| call(&mut pair)).collect();
    pair.run_until(10, |pair| closed(&pair.events[0]).is_some());
    let end = pair.now + Duration::from_secs(1);
    while pair.now < end && pair.step() {}
    let ended = pair.events[0].iter().filter(|event| matches!(event, Event::Closed(..))).count();
    assert_eq!((ended, pair.ends[1].connections()), (1, MOST_CONNECTIONS));
    let now = pair.now;
    ids.iter().for_each(|id| pair.ends[0].release(now, *id));
    let end = pair.now + Duration::from_secs(5);
    while pair.now < end && pair.step() {}
    assert_eq!(pair.ends[1].connections(), 0);
    call(&mut pair);
    let end = pair.now + Duration::from_secs(1);
    while pair.now < end && pair.step() {}
    assert_eq!(pair.ends[1].connections(), 1, "those before are forgotten");
}
