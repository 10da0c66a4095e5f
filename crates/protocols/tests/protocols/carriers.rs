//! Two endpoints of each protocol inside secure connections, on the simplest network.

#![expect(clippy::unwrap_used, reason = "in tests a failure is a panic")]

mod ends;
mod hostile;

use farhaul_units::Duration;
use farhaul_wire::secure::inner::DATAGRAM_OVERHEAD;

use farhaul_proto::endpoint::protocol::Established as _;
use farhaul_proto::error::{PeerIncompatible, SecurityFault};
use farhaul_proto::secure::{Encapsulated, Null};
use farhaul_proto::{Config, ConnectionId, Endpoint, Entropy, Event, Read, Streams, controller_factory};
use farhaul_protocols::Protocol;
use farhaul_protocols::registry::protocols;

use crate::pair::{DELAY, Pair, address};

/// A carrier of udt-2004 may be without a connection inside for so long.
const IDLE: Duration = Duration::from_secs(10);

/// The protocols that carriers carry.
fn carried() -> impl Iterator<Item = &'static str> {
    protocols().iter().map(|entry| entry.name).filter(|name| *name != "udt")
}

fn end_of(name: &str, config: Config, seed: u8, provider: Null) -> Endpoint {
    let protocol: Protocol = name.parse().unwrap();
    let controller = protocol.controller().map_or_else(|| Config::default().controller, controller_factory);
    let entropy = Entropy { cookie_key: [seed; 16], seed: seed.into() };
    protocol.secure_endpoint(Config { controller, ..config }, entropy, Box::new(provider))
}

fn end(name: &str, seed: u8, provider: Null) -> Endpoint {
    end_of(name, Config::default(), seed, provider)
}

fn pair(name: &str) -> Pair {
    Pair::between([end(name, 1, Null::new(1)), end(name, 2, Null::new(2))])
}

fn content(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + i / 251) as u8).collect()
}

/// Lets time pass.
fn run_for(pair: &mut Pair, time: Duration) {
    let end = pair.now + time;
    while pair.now < end && pair.step() {}
}

/// Connections at both ends.
fn held(pair: &Pair) -> [usize; 2] {
    [0, 1].map(|side| pair.ends[side].connections())
}

#[test]
fn a_stream_arrives_and_nothing_of_it_is_left_at_either_end() {
    for name in carried() {
        let mut pair = pair(name);
        pair.fate = Box::new(|_, datagram| {
            assert!(farhaul_wire::secure::is_protected(datagram) && datagram.len() <= 1472);
            1
        });
        let ids = pair.connect();
        let data = content(3_000_000);
        assert!(pair.transfer(ids, &data) == data, "{name}");
        assert!(pair.sent[0].contains(&1472), "{name}: full packets fill the path: {:?}", pair.sent[0].iter().max());
        let now = pair.now;
        pair.ends[0].finish(now, ids[0]);
        pair.run_until(5, |pair| pair.ends[1].read(pair.now, ids[1], &mut [0; 10]) == Ok(Read::End));
        pair.run_until(5, |pair| pair.events[0].contains(&Event::Finished(ids[0])));
        assert_eq!([0, 1].map(|side| pair.ends[side].protection(ids[side]).is_some()), [true; 2], "{name}");
        for (side, id) in ids.into_iter().enumerate() {
            let now = pair.now;
            assert_eq!(pair.ends[side].peer(id), Some(address(1 - side)), "{name}");
            pair.ends[side].release(now, id);
        }
        run_for(&mut pair, IDLE + Duration::from_secs(5));
        assert_eq!(held(&pair), [0, 0], "{name}");
        // The last words of a carrier may meet nobody.
        let invalid = [0, 1].map(|side| pair.ends[side].invalid_datagrams());
        assert!(invalid.into_iter().all(|datagrams| datagrams <= 3), "{name}: {invalid:?}");
    }
}

#[test]
fn a_connection_takes_one_round_trip_more_than_its_carrier() {
    for name in carried() {
        let mut pair = pair(name);
        let caller = pair.call();
        let began = pair.now;
        pair.run_until(5, |pair| pair.events[0].contains(&Event::Connected(caller)));
        // The protocol of 2004 has a handshake of two.
        let round_trips = if name == "udt-2004" { 3 } else { 2 };
        assert_eq!(pair.news - began, DELAY * 2 * round_trips, "{name}");
    }
}

#[test]
fn several_connections_between_two_ports_keep_their_bytes_apart() {
    for name in carried() {
        let mut pair = pair(name);
        let mut all = Vec::new();
        for _ in 0..5 {
            pair.events = [Vec::new(), Vec::new()];
            all.push(pair.connect());
        }
        let data: Vec<Vec<u8>> = (0..5).map(|at| content(400_000 + at * 1_001)).collect();
        let (mut written, mut got, mut buffer) = ([0; 5], vec![Vec::new(); 5], vec![0; 50_000]);
        pair.run_until(60, |pair| {
            for (at, [from, to]) in all.iter().enumerate() {
                written[at] += pair.ends[0].write(pair.now, *from, &data[at][written[at]..]).unwrap();
                while let Ok(Read::Data(n)) = pair.ends[1].read(pair.now, *to, &mut buffer) {
                    got[at].extend_from_slice(&buffer[..n]);
                }
            }
            got.iter().zip(&data).all(|(got, data)| got.len() == data.len())
        });
        assert!(got == data, "{name}");
    }
}

#[test]
fn an_idle_connection_wakes_its_ends_seldom() {
    for name in carried() {
        let mut pair = pair(name);
        pair.connect();
        run_for(&mut pair, Duration::from_secs(5));
        let (end, mut steps) = (pair.now + Duration::from_secs(60), 0);
        pair.sent = [Vec::new(), Vec::new()];
        while pair.now < end && pair.step() {
            steps += 1;
        }
        let sent = pair.sent[0].len() + pair.sent[1].len();
        assert!(steps < 300 && sent < 150, "{name}: {steps} wake-ups, {sent} datagrams in a minute");
    }
}

#[test]
fn a_train_that_grows_beyond_a_datagram_of_udp_leaves_in_two() {
    let mut pair = pair("rbudp");
    let [caller, _] = pair.connect();
    let bytes = content(44 * 1_480);
    let now = pair.now;
    let mut left = &bytes[..];
    for packets in [43, 1] {
        let mut out = Vec::new();
        let sent = pair.ends[0]
            .on_established(caller, |inside: &mut Encapsulated| inside.send_datagrams(now, (left, 1_480), &mut out));
        assert_eq!(sent.flatten(), Some((packets * 1_480, 1_480 + DATAGRAM_OVERHEAD)));
        assert_eq!(out.len(), packets * (1_480 + DATAGRAM_OVERHEAD));
        left = &left[packets * 1_480..];
    }
    assert!(left.is_empty());
}

#[test]
fn keys_change_under_datagrams_as_under_streams() {
    for name in carried() {
        let provider = |seed| Null::new(seed).with_confidentiality_limit(256);
        let mut pair = Pair::between([end(name, 1, provider(1)), end(name, 2, provider(2))]);
        let ids = pair.connect();
        let data = content(2_000_000);
        assert!(pair.transfer(ids, &data) == data, "{name}");
    }
}
