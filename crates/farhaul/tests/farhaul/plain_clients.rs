//! Plain clients of some networks beside encrypted ones, on one real port.
#![expect(clippy::unwrap_used, reason = "in tests a failure is a panic")]

use std::io::{Read, Write};
use std::net::{SocketAddr, UdpSocket};
use std::thread;
use std::time::Duration;

use farhaul::security::{AcceptAll, KeyPair, PlainClients, Security};
use farhaul::{Builder, ConnectionLost, Endpoint, Error, Listener, Stream, probe};
use farhaul_units::Rate;
use farhaul_wire::secure::is_protected;

const SERVER: &str = "127.0.0.1:0";
/// The whole of 127.0.0.0/8 is this host.
const ADMITTED: &str = "127.0.0.2:0";
const OUTSIDE: &str = "127.0.0.3:0";
/// The connect time-out of those who get no answer.
const SHORT: Duration = Duration::from_millis(600);

fn security() -> Security {
    Security::new(KeyPair::generate().unwrap(), AcceptAll)
}

fn clients() -> PlainClients {
    PlainClients::of(["127.0.0.2".parse().unwrap()])
}

fn bind(builder: Builder, address: &str) -> Endpoint {
    builder.bind(address.parse().unwrap()).unwrap()
}

fn server() -> (Endpoint, Listener) {
    let server = bind(Endpoint::builder().secure(security()).plain_clients(clients()), SERVER);
    let listener = server.listen().unwrap();
    (server, listener)
}

fn plain(address: &str) -> Endpoint {
    bind(Endpoint::builder().plain().connect_timeout(SHORT), address)
}

fn meet(client: &Endpoint, to: SocketAddr, listener: &Listener) -> (Stream, Stream) {
    let near = client.connect(to).unwrap();
    (near, listener.accept().unwrap().0)
}

/// Sends from one side to the other.
fn carries(mut from: Stream, mut to: Stream, len: usize) {
    let data: Vec<u8> = (0..len).map(|at| (at * 31 + at / 251) as u8).collect();
    let got = thread::scope(|scope| {
        let reads = scope.spawn(move || {
            let mut all = Vec::new();
            to.read_to_end(&mut all).unwrap();
            all
        });
        from.write_all(&data).unwrap();
        from.finish().unwrap();
        reads.join().unwrap()
    });
    assert!(got == data);
}

#[test]
fn one_port_serves_encrypted_clients_and_plain_ones_of_its_networks() {
    let (server, listener) = server();
    let to = server.local_addr();
    let (secure_near, secure_far) = meet(&bind(Endpoint::builder().secure(security()), OUTSIDE), to, &listener);
    let (plain_near, plain_far) = meet(&plain(ADMITTED), to, &listener);
    assert_eq!([secure_near.is_plain().unwrap(), secure_far.is_plain().unwrap()], [false, false]);
    assert_eq!([plain_near.is_plain().unwrap(), plain_far.is_plain().unwrap()], [true, true]);
    assert!(secure_far.protection().unwrap().is_some() && plain_far.protection().unwrap().is_none());
    thread::scope(|scope| {
        scope.spawn(|| carries(secure_near, secure_far, 5_000_000));
        scope.spawn(|| carries(plain_far, plain_near, 5_000_000));
    });
}

#[test]
fn a_plain_client_of_another_network_gets_no_datagram_at_all() {
    let (server, _listener) = server();
    let outside = plain(OUTSIDE);
    let refused = outside.connect(server.local_addr()).unwrap_err();
    assert!(matches!(refused, Error::Lost(ConnectionLost::ConnectTimeout(_))), "{refused}");
    assert_eq!(outside.invalid_datagrams().unwrap(), 0);
    assert!(server.invalid_datagrams().unwrap() > 0);
    // A raw socket sees everything that arrives.
    let raw = UdpSocket::bind(OUTSIDE).unwrap();
    raw.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let relay = UdpSocket::bind(SERVER).unwrap();
    let caller = thread::spawn({
        let to = relay.local_addr().unwrap();
        move || plain(ADMITTED).connect(to).map(drop)
    });
    let mut call = [0; 2_000];
    let len = relay.recv(&mut call).unwrap();
    assert!(!is_protected(&call[..len]));
    raw.send_to(&call[..len], server.local_addr()).unwrap();
    assert!(raw.recv(&mut call).is_err(), "no answer");
    assert!(caller.join().unwrap().is_err());
}

#[test]
fn the_networks_of_a_port_change_while_it_runs() {
    let (server, listener) = server();
    let to = server.local_addr();
    let (near, far) = meet(&plain(ADMITTED), to, &listener);
    server.admit_plain(["127.0.0.3".parse().unwrap()]).unwrap();
    let lost = far.clone().read(&mut [0; 10]).unwrap_err();
    assert!(lost.get_ref().is_some(), "{lost}");
    drop(near);
    assert!(plain(ADMITTED).connect(to).is_err());
    meet(&plain(OUTSIDE), to, &listener);
    meet(&bind(Endpoint::builder().secure(security()), ADMITTED), to, &listener);
}

#[test]
fn plain_connections_have_a_cap_and_encrypted_ones_have_none_of_it() {
    let slow = clients().max_rate(Rate::from_megabits_per_second(40));
    let server = bind(Endpoint::builder().secure(security()).plain_clients(slow), SERVER);
    let listener = server.listen().unwrap();
    let to = server.local_addr();
    let (near, far) = meet(&plain(ADMITTED), to, &listener);
    let time = |from: Stream, to: Stream| {
        let began = probe::now();
        carries(from, to, 2_000_000);
        probe::now().saturating_sub(began)
    };
    let capped = time(far, near);
    assert!(capped > Duration::from_millis(350), "2 MB at 40 Mbit/s take 0.4 s: {capped:?}");
    let (near, far) = meet(&bind(Endpoint::builder().secure(security()), ADMITTED), to, &listener);
    let free = time(far, near);
    assert!(free < capped, "{free:?} against {capped:?}");
}

#[test]
fn ports_that_cannot_have_plain_clients_refuse_them_by_name() {
    let any: SocketAddr = SERVER.parse().unwrap();
    let builders = [
        Endpoint::builder().plain().plain_clients(clients()),
        Endpoint::builder().secure(security()).protocol("tsunami".parse().unwrap()).plain_clients(clients()),
    ];
    for builder in builders {
        assert!(matches!(builder.bind(any).unwrap_err(), Error::NoPlainClients));
    }
    let zero = Endpoint::builder().secure(security()).plain_clients(clients().max_rate(Rate::ZERO));
    assert!(matches!(zero.bind(any).unwrap_err(), Error::InvalidOption { .. }));
    let secure = bind(Endpoint::builder().secure(security()), SERVER);
    assert!(matches!(secure.admit_plain([]).unwrap_err(), Error::NoPlainClients));
}
