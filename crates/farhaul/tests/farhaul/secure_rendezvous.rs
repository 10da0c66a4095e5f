//! Two encrypted sides that call each other, between real sockets.
#![expect(clippy::unwrap_used, reason = "in tests a failure is a panic")]

use std::io::{Read, Write};
use std::net::{SocketAddr, UdpSocket};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use farhaul::security::{KeyPair, Pinned, Security, SecurityFault};
use farhaul::{ConnectOptions, ConnectionLost, Endpoint, Error, Stream};
use farhaul_proto::ConnectError;
use farhaul_wire::secure::is_protected;

/// A side with a key, which expects that of its peer.
fn side(own: &KeyPair, expects: &KeyPair) -> Endpoint {
    // The keys of clients have no say in a rendezvous.
    let trust = Pinned { servers: vec![expects.public()], clients: Vec::new() };
    let builder = Endpoint::builder().secure(Security::new(own.clone(), trust));
    builder.rendezvous_timeout(Duration::from_secs(10)).bind("127.0.0.1:0".parse().unwrap()).unwrap()
}

fn keys() -> [KeyPair; 3] {
    [(); 3].map(|()| KeyPair::generate().unwrap())
}

/// Both sides call, the second after a while.
fn meet(sides: &[Endpoint; 2], late: Duration) -> [Result<Stream, Error>; 2] {
    let [left, right] = sides;
    thread::scope(|scope| {
        let early = scope.spawn(|| left.connect_with(right.local_addr(), ConnectOptions::stream().rendezvous()));
        thread::park_timeout(late);
        let other = right.connect_with(left.local_addr(), ConnectOptions::stream().rendezvous());
        [early.join().unwrap(), other]
    })
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

/// Which side is the TLS server is drawn anew each time.
#[test]
fn two_sides_meet_and_each_knows_the_key_of_the_other() {
    let [alice, bob, _] = keys();
    for late in [0, 0, 0, 0, 300, 300, 300] {
        let sides = [side(&alice, &bob), side(&bob, &alice)];
        let [left, right] = meet(&sides, Duration::from_millis(late)).map(Result::unwrap);
        let peer = |stream: &Stream| stream.protection().unwrap().unwrap().peer_key;
        assert_eq!([peer(&left), peer(&right)], [Some(bob.public()), Some(alice.public())]);
        carries(left, right, 1_000_000);
    }
}

#[test]
fn one_pair_of_ports_meets_again_and_again() {
    let [alice, bob, _] = keys();
    let sides = [side(&alice, &bob), side(&bob, &alice)];
    let first = meet(&sides, Duration::ZERO).map(Result::unwrap);
    let [left, right] = meet(&sides, Duration::ZERO).map(Result::unwrap);
    carries(left, right, 100_000);
    let [left, right] = first;
    carries(right, left, 100_000);
}

/// Whichever side becomes the TLS server, both learn of the wrong key.
#[test]
fn a_side_with_another_key_is_no_peer() {
    let [alice, bob, mallory] = keys();
    for _ in 0..6 {
        // The left one expects a key that the right one does not have.
        let sides = [side(&alice, &bob), side(&mallory, &alice)];
        let [left, right] = meet(&sides, Duration::ZERO);
        let fault = |result: Result<Stream, Error>| {
            // A TLS client learns of the refusal after it is connected.
            let error = result.map_or_else(
                |error| error,
                |mut stream| {
                    let error = stream.read(&mut [0; 10]).unwrap_err();
                    *error.into_inner().unwrap().downcast().unwrap()
                },
            );
            match error {
                Error::Lost(ConnectionLost::Insecure(fault)) => fault,
                other => panic!("{other}"),
            }
        };
        assert_eq!([fault(left), fault(right)], [SecurityFault::UnknownKey, SecurityFault::NotAdmitted]);
    }
}

#[test]
fn a_side_alone_gives_up_and_sent_protected_packets_alone() {
    let [alice, bob, _] = keys();
    let trust = Pinned { servers: vec![bob.public()], clients: Vec::new() };
    let alone = Endpoint::builder()
        .secure(Security::new(alice, trust))
        .rendezvous_timeout(Duration::from_secs(1))
        .bind("127.0.0.1:0".parse().unwrap())
        .unwrap();
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = silent.local_addr().unwrap();
    let again = alone.clone();
    let (say, heard) = channel();
    let watch = thread::spawn(move || {
        let mut datagram = [0; 2_000];
        let len = silent.recv(&mut datagram).unwrap();
        assert!(is_protected(&datagram[..len]));
        let second = again.connect_with(to, ConnectOptions::stream().rendezvous()).unwrap_err();
        say.send(matches!(second, Error::Connect(ConnectError::RendezvousUnderWay))).unwrap();
        silent
    });
    let error = alone.connect_with(to, ConnectOptions::stream().rendezvous()).unwrap_err();
    assert!(matches!(error, Error::Lost(ConnectionLost::ConnectTimeout(_))), "{error}");
    assert!(heard.recv().unwrap());
    watch.join().unwrap();
}

/// Neither becomes what the other one is.
#[test]
fn an_encrypted_side_and_a_plain_one_do_not_meet() {
    let [alice, bob, _] = keys();
    let short = |builder: farhaul::Builder| {
        let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
        builder.rendezvous_timeout(Duration::from_secs(1)).bind(any).unwrap()
    };
    let trust = Pinned { servers: vec![bob.public()], clients: Vec::new() };
    let secure = short(Endpoint::builder().secure(Security::new(alice, trust)));
    let plain = short(Endpoint::builder().plain());
    let results = meet(&[secure, plain], Duration::ZERO);
    for result in results {
        assert!(matches!(result.unwrap_err(), Error::Lost(ConnectionLost::ConnectTimeout(_))));
    }
}
