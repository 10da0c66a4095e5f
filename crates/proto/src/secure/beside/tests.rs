//! Measured streams between two ports with envelopes, on the simplest network.

use core::net::SocketAddr;

use farhaul_units::{Duration, Instant, Rate};
use farhaul_wire::probe::{self as wire, WORD};

use super::*;
use crate::any_endpoint::AnyEndpoint;
use crate::error::{ConnectionLost, PeerIncompatible, SecurityFault};
use crate::probe::{ANSWER_LEN, ENVELOPE, Responder, StableConfig};
use crate::registry::protocols;
use crate::secure::tests::pair::{DELAY, Pair, address};
use crate::secure::{Null, endpoint_with_plain_callers};
use crate::{Config, Entropy, Protocol, SharedChannel, Transport, controller_factory};

/// A port of any protocol, perhaps with a stream.
type Port = SharedChannel<Box<dyn AnyEndpoint>>;

/// UDP payload of a packet of 1500 bytes.
const PACKET: usize = 1_472;
const DATAGRAM: usize = PACKET - ENVELOPE;

fn port(name: &str, seed: u8, provider: Null) -> Port {
    let protocol: Protocol = name.parse().unwrap();
    let controller = protocol.controller().map_or_else(|| Config::default().controller, controller_factory);
    let entropy = Entropy { cookie_key: [seed; 16], seed: seed.into() };
    let config = Config { controller, ..Config::default() };
    SharedChannel::new(protocol.secure_endpoint(config, entropy, Box::new(provider)))
}

/// A client with UDT4, and a server of any protocol.
fn pair(name: &str) -> Pair<Port> {
    Pair::between([port("udt", 1, Null::new(1)), port(name, 2, Null::new(2))])
}

fn envelopes(port: &mut Port) -> &mut Endpoint {
    port.envelopes().unwrap()
}

fn stream() -> StableConfig {
    let target = Rate::from_bits_per_second(2_000_000);
    StableConfig { datagram: DATAGRAM as u16, first_sleep: Duration::from_millis(10), ..StableConfig::new(target) }
}

/// Hands the questions that have arrived at the server to a responder, and sends its answers.
fn respond(pair: &mut Pair<Port>, responder: &mut Responder) {
    let (now, server) = (pair.now, envelopes(&mut pair.ends[1]));
    server.take(Kind::Question, &mut |arrival| {
        for datagram in arrival.datagrams() {
            responder.handle_datagram(arrival.arrived, arrival.from, datagram);
        }
    });
    let mut answers = Vec::new();
    while let Some(inside) = responder.poll_answers(&mut answers, 64) {
        let mut sealed = Vec::new();
        if let Some((to, size)) = server.enclose(now, inside, (&answers, ANSWER_LEN), &mut sealed) {
            assert_eq!((to, size), (address(0), ANSWER_LEN + ENVELOPE));
            pair.wire.extend(sealed.chunks(size).map(|envelope| (now + DELAY, 0, envelope.to_vec())));
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
fn call(pair: &mut Pair<Port>) -> ConnectionId {
    let now = pair.now;
    envelopes(&mut pair.ends[0]).connect_measured(now, address(1)).unwrap()
}

/// Begins a stream through a connection of the client.
fn begin(pair: &mut Pair<Port>, id: ConnectionId) {
    let (now, inside) = (pair.now, pair.ends[0].address_inside(id).unwrap());
    pair.ends[0].begin_control(now, inside, stream(), 7);
}

fn acknowledged(pair: &Pair<Port>) -> u64 {
    pair.ends[0].control().unwrap().figures(pair.now).acknowledged
}

fn closed(events: &[Event]) -> Option<ConnectionLost> {
    events.iter().find_map(|event| if let Event::Closed(_, reason) = event { Some(*reason) } else { None })
}

#[test]
fn a_stream_settles_at_a_port_of_any_protocol_which_hears_of_no_connection() {
    for entry in protocols() {
        let mut pair = pair(entry.name);
        envelopes(&mut pair.ends[1]).answer();
        pair.fate = Box::new(|_, datagram| {
            assert!(farhaul_wire::secure::is_envelope(datagram) && datagram.len() <= PACKET);
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
        envelopes(&mut pair.ends[1]).answer();
        pair.fate = Box::new(|_, datagram| {
            assert!(farhaul_wire::secure::is_envelope(datagram) && datagram.len() <= PACKET);
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
            while let Ok(crate::Read::Data(n)) = pair.ends[1].read(pair.now, ids[1], &mut buffer) {
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
    envelopes(&mut pair.ends[1]).answer();
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
fn a_question_outside_of_envelopes_is_invalid() {
    for name in ["udt", "tsunami"] {
        let mut pair = pair(name);
        envelopes(&mut pair.ends[1]).answer();
        let mut question = question();
        let now = pair.now;
        pair.ends[1].handle_datagrams(now, now, address(0), &mut question, ANSWER_LEN);
        let mut taken = 0;
        envelopes(&mut pair.ends[1]).take(Kind::Question, &mut |_| taken += 1);
        assert_eq!((taken, pair.ends[1].invalid_datagrams()), (0, 1), "{name}");
    }
}

#[test]
fn a_port_with_plain_clients_serves_streams_inside_envelopes_alone() {
    let entropy = Entropy { cookie_key: [2; 16], seed: 2 };
    let networks = vec!["10.0.0.0/8".parse().unwrap()];
    let dual =
        endpoint_with_plain_callers([Config::default(), Config::default()], networks, entropy, Box::new(Null::new(2)));
    let mut pair = Pair::between([port("udt", 1, Null::new(1)), SharedChannel::new(Box::new(dual))]);
    envelopes(&mut pair.ends[1]).answer();
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
    envelopes(&mut pair.ends[1]).answer();
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
    envelopes(&mut pair.ends[1]).answer();
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
    assert_eq!(envelopes(&mut pair.ends[1]).beside.connections.len(), 1, "those before are forgotten");
}

#[test]
fn datagrams_that_nobody_takes_are_bounded_and_kinds_stay_apart() {
    let mut beside = Beside::default();
    let (at, from) = (Instant::ZERO, SocketAddr::from(([10, 0, 0, 1], 9)));
    let mut question = WORD.to_be_bytes().to_vec();
    question.extend([1; 76]);
    let mut answer = WORD.to_be_bytes().to_vec();
    answer.extend([2; 76]);
    let mut train = [&question[..], &question, &answer, &[9; 80], &question[..50]].concat();
    beside.sort((at, from, from), &mut train.clone(), 80, |_| ());
    beside.questions = Some(Box::default());
    assert!(beside.is_wanted());
    let mut others = Vec::new();
    beside.sort((at, from, from), &mut train, 80, |other| others.extend_from_slice(other));
    assert_eq!(others, [9; 80]);
    let mut taken = Vec::new();
    beside.inbox(Kind::Question).unwrap().deliver(&mut |run| taken.push((run.bytes.len(), run.stride)));
    assert_eq!(taken, [(160, 80), (50, 80)]);
    assert!(beside.inbox(Kind::Answer).is_none());
    let mut large = question.repeat(1_000);
    (0..100).for_each(|_| beside.sort((at, from, from), &mut large, 80, |_| ()));
    assert_eq!(beside.inbox(Kind::Question).unwrap().bytes.len(), MOST_WAITING / 80_000 * 80_000);
}
