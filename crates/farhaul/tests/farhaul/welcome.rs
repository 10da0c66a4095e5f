//! Clients that are welcome no more, while they are connected.
#![expect(clippy::unwrap_used, reason = "in tests a failure is a panic")]

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

use farhaul::probe::{BlasterConfig, EnclosureConfig, ProbeSocket};
use farhaul::registry::protocols;
use farhaul::security::{AcceptAll, KeyPair, Security};
use farhaul::{Builder, ConnectionLost, Endpoint, Error, Stream};

/// Nothing here waits for so long unless it hangs.
const LIMIT: Duration = Duration::from_secs(20);

fn bind(builder: Builder) -> Endpoint {
    builder.bind("127.0.0.1:0".parse::<SocketAddr>().unwrap()).unwrap()
}

fn secure(key: &KeyPair, protocol: &str) -> Endpoint {
    let security = Security::new(key.clone(), AcceptAll);
    bind(Endpoint::builder().secure(security).protocol(protocol.parse().unwrap()))
}

/// Whether the stream still carries data from one side to the other.
fn carries(mut from: Stream, mut to: Stream) -> bool {
    let mut got = Vec::new();
    from.write_all(&[7; 1000]).is_ok() && from.finish().is_ok() && to.read_to_end(&mut got).is_ok() && got.len() == 1000
}

#[test]
fn clients_that_are_welcome_no_more_lose_their_connections_and_others_keep_theirs() {
    for entry in protocols() {
        let [alice, bob, host] = [(); 3].map(|()| KeyPair::generate().unwrap());
        let server = secure(&host, entry.name);
        let listener = server.listen().unwrap();
        let clients = [&alice, &bob].map(|key| secure(key, entry.name));
        let [mut near, others] = [0, 1].map(|at| clients[at].connect(server.local_addr()).unwrap());
        let accepted = [(); 2].map(|()| listener.accept().unwrap().0);
        let is_alice = |stream: &Stream| stream.protection().unwrap().unwrap().peer_key == Some(alice.public());
        let [mut far, other] = if is_alice(&accepted[0]) {
            accepted
        } else {
            let [one, two] = accepted;
            [two, one]
        };
        for stream in [&near, &far, &others, &other] {
            stream.set_read_timeout(Some(LIMIT));
        }
        let mut asked = Vec::new();
        let ended = server.end_clients(|from, key| {
            asked.push((from, key));
            key != alice.public()
        });
        assert_eq!(ended.unwrap(), 1, "{}", entry.name);
        asked.sort_by_key(|(from, _)| from.port());
        let mut all = [(&clients[0], &alice), (&clients[1], &bob)].map(|(at, key)| (at.local_addr(), key.public()));
        all.sort_by_key(|(from, _)| from.port());
        assert_eq!(asked, all, "{}", entry.name);
        // Within far less than any time-out of a connection.
        for end in [&mut near, &mut far] {
            let lost = end.read(&mut [0; 10]).unwrap_err();
            assert_ne!(lost.kind(), std::io::ErrorKind::TimedOut, "{}: {lost}", entry.name);
        }
        assert!(near.write_all(&[0; 1000]).is_err() || near.finish().is_err(), "{}", entry.name);
        assert!(carries(others, other), "{}", entry.name);
    }
}

#[test]
fn the_sender_of_a_measured_stream_that_is_welcome_no_more_is_not_counted_any_longer() {
    for entry in protocols() {
        let [alice, host] = [(); 2].map(|()| KeyPair::generate().unwrap());
        let server = secure(&host, entry.name);
        let _listener = server.listen().unwrap();
        server.answer_probes().unwrap();
        let security = Security::new(alice, AcceptAll);
        let mut socket = ProbeSocket::enclosed(server.local_addr(), security, EnclosureConfig::default()).unwrap();
        assert!(socket.connect(LIMIT).unwrap());
        let sleep = Duration::from_millis(2);
        let (datagram, spaced, messages) = (800, false, false);
        let mut point =
            socket.blaster(BlasterConfig { datagram, window: 1, sleep, spaced, messages, time: LIMIT }).unwrap();
        socket.run(&mut point, Duration::from_millis(200)).unwrap();
        let counted = || server.probe_totals().unwrap().0;
        assert!(counted() > 0, "{}", entry.name);
        assert_eq!(server.end_clients(|_, _| false).unwrap(), 1, "{}", entry.name);
        let at_the_end = counted();
        let lost = socket.run(&mut point, Duration::from_secs(5)).unwrap_err();
        assert!(matches!(lost, Error::Lost(ConnectionLost::Aborted)), "{}: {lost}", entry.name);
        assert_eq!(counted(), at_the_end, "{}", entry.name);
    }
}
