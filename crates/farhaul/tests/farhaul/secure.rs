//! Encrypted connections between real sockets.
#![expect(clippy::unwrap_used, reason = "in tests a failure is a panic")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use farhaul::registry::protocols;
use farhaul::security::{AcceptAll, Cipher, KeyPair, Pinned, Security, SecurityFault, Trust};
use farhaul::{Builder, ConnectOptions, ConnectionLost, Endpoint, Error, Stream};
use farhaul_proto::PeerIncompatible;
use farhaul_wire::secure::{Epoch, Header};

const ANY: &str = "127.0.0.1:0";
/// Nothing here waits for so long unless it hangs.
const LIMIT: Duration = Duration::from_secs(20);

fn bind(builder: Builder) -> Endpoint {
    builder.bind(ANY.parse().unwrap()).unwrap()
}

fn secure(key: &KeyPair, trust: impl Trust + 'static) -> Builder {
    Endpoint::builder().secure(Security::new(key.clone(), trust))
}

fn keys() -> [KeyPair; 2] {
    [KeyPair::generate().unwrap(), KeyPair::generate().unwrap()]
}

fn content(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 + at / 251) as u8).collect()
}

/// Sends both ways, and returns what the server read.
fn exchange(client: &Endpoint, to: SocketAddr, server: &Endpoint, data: &[u8]) -> Vec<u8> {
    let listener = server.listen().unwrap();
    thread::scope(|scope| {
        let reads = scope.spawn(|| {
            let (mut stream, _) = listener.accept().unwrap();
            let mut all = Vec::new();
            stream.read_to_end(&mut all).unwrap();
            all
        });
        let mut stream = client.connect(to).unwrap();
        stream.write_all(data).unwrap();
        stream.finish().unwrap();
        reads.join().unwrap()
    })
}

#[test]
fn a_stream_arrives_with_every_cipher_and_both_sides_know_each_other() {
    let [alice, bob] = keys();
    for cipher in [Cipher::Auto, Cipher::Aes128Gcm, Cipher::Aes256Gcm, Cipher::ChaCha20Poly1305] {
        let trusts = Pinned { servers: vec![bob.public()], ..Pinned::default() };
        let admits = Pinned { clients: vec![alice.public()], ..Pinned::default() };
        let client = bind(Endpoint::builder().secure(Security::new(alice.clone(), trusts).cipher(cipher)));
        let server = bind(secure(&bob, admits));
        let data = content(20_000_000);
        assert!(exchange(&client, server.local_addr(), &server, &data) == data, "{cipher:?}");
    }
}

/// A connection between two programs of one user, encrypted: the client's end, and the server's.
fn connected() -> ([Endpoint; 2], [Stream; 2]) {
    let [alice, bob] = keys();
    let trusts = Pinned { servers: vec![bob.public()], ..Pinned::default() };
    let admits = Pinned { clients: vec![alice.public()], ..Pinned::default() };
    let (client, server) = (bind(secure(&alice, trusts)), bind(secure(&bob, admits)));
    let listener = server.listen().unwrap();
    let ends = thread::scope(|scope| {
        let accepts = scope.spawn(|| listener.accept().unwrap().0);
        [client.connect(server.local_addr()).unwrap(), accepts.join().unwrap()]
    });
    ([client, server], ends)
}

#[test]
fn each_direction_ends_by_itself() {
    let (_ports, [mut client, mut server]) = connected();
    let answer = content(10_000_000);
    thread::scope(|scope| {
        let answers = scope.spawn(|| {
            let mut question = String::new();
            server.read_to_string(&mut question).unwrap();
            server.write_all(&answer).unwrap();
            server.finish_sending().unwrap();
            server.finish().unwrap();
            question
        });
        client.write_all(b"a question").unwrap();
        client.finish_sending().unwrap();
        client.finish_sending().unwrap();
        assert!(matches!(client.send(b"more"), Err(Error::Finished)));
        let mut all = Vec::new();
        client.read_to_end(&mut all).unwrap();
        client.wait_until_closed().unwrap();
        assert!(all == answer);
        assert_eq!(answers.join().unwrap(), "a question");
    });
    assert!(client.ending().unwrap().is_some() && client.has_half_close().unwrap());
}

#[test]
fn a_stream_that_is_dropped_after_its_own_end_loses_only_what_the_peer_has_yet_to_send() {
    let (_ports, [mut client, mut server]) = connected();
    client.write_all(b"everything").unwrap();
    client.finish_sending().unwrap();
    let mut all = String::new();
    server.read_to_string(&mut all).unwrap();
    // Its own end is acknowledged now, or soon.
    while client.stats().unwrap().totals.bytes_acked < 10 {
        thread::yield_now();
    }
    drop(client);
    let lost = server.wait_until_closed();
    assert!(matches!(lost, Ok(()) | Err(Error::Lost(ConnectionLost::Aborted))), "{lost:?}");
    assert_eq!((all.as_str(), server.recv(&mut [0]).unwrap()), ("everything", 0));
    assert!(server.send(b"an answer").is_err());
}

#[test]
fn a_plain_connection_has_no_half_close() {
    let listener = farhaul::Listener::plain(ANY).unwrap();
    let stream = Stream::connect_plain(listener.local_addr()).unwrap();
    assert!(!stream.has_half_close().unwrap());
    let refused = stream.finish_sending().unwrap_err();
    assert!(matches!(refused, Error::NoHalfClose), "{refused:?}");
    assert_eq!(stream.send(b"it goes on").unwrap(), 10);
    assert_eq!(stream.ending().unwrap(), None);
}

/// None of them needs a TCP port: their channels are inside.
#[test]
fn every_protocol_is_carried_and_both_sides_know_each_other() {
    let [alice, bob] = keys();
    let data = content(20_000_000);
    for entry in protocols() {
        let protocol = || entry.name.parse().unwrap();
        let trusts = Pinned { servers: vec![bob.public()], ..Pinned::default() };
        let admits = Pinned { clients: vec![alice.public()], ..Pinned::default() };
        let (client, server) =
            (bind(secure(&alice, trusts).protocol(protocol())), bind(secure(&bob, admits).protocol(protocol())));
        let _taken = TcpListener::bind(server.local_addr()).unwrap();
        let listener = server.listen().unwrap();
        thread::scope(|scope| {
            let reads = scope.spawn(|| {
                let (mut stream, from) = listener.accept().unwrap();
                assert_eq!(from, client.local_addr(), "{}", entry.name);
                assert_eq!(stream.protection().unwrap().unwrap().peer_key, Some(alice.public()), "{}", entry.name);
                let mut all = Vec::new();
                stream.read_to_end(&mut all).unwrap();
                all
            });
            let mut stream = client.connect(server.local_addr()).unwrap();
            assert_eq!(stream.peer_addr(), server.local_addr());
            assert_eq!(stream.protection().unwrap().unwrap().peer_key, Some(bob.public()), "{}", entry.name);
            stream.write_all(&data).unwrap();
            stream.finish().unwrap();
            assert!(reads.join().unwrap() == data, "{}", entry.name);
        });
    }
}

#[test]
fn a_client_that_no_protocol_admits_hears_so_when_it_connects() {
    let ([alice, bob], [carol, _]) = (keys(), keys());
    for entry in protocols().iter().filter(|entry| entry.name != "udt") {
        let protocol = || entry.name.parse().unwrap();
        let admits = Pinned { clients: vec![carol.public()], ..Pinned::default() };
        let server = bind(secure(&bob, admits).protocol(protocol()));
        let _listener = server.listen().unwrap();
        let refused = bind(secure(&alice, AcceptAll).protocol(protocol())).connect(server.local_addr());
        let error = refused.unwrap_err();
        let expected = matches!(error, Error::Lost(ConnectionLost::Insecure(SecurityFault::NotAdmitted)));
        assert!(expected, "{}: {error}", entry.name);
        let trusts = Pinned { servers: vec![carol.public()], ..Pinned::default() };
        let error = bind(secure(&alice, trusts).protocol(protocol())).connect(server.local_addr()).unwrap_err();
        let expected = matches!(error, Error::Lost(ConnectionLost::Insecure(SecurityFault::UnknownKey)));
        assert!(expected, "{}: {error}", entry.name);
    }
}

#[test]
fn sides_with_different_protocols_hear_so() {
    let [alice, bob] = keys();
    for (near, far) in [("udt", "hurricane"), ("hurricane", "udt"), ("fobs", "udt-2004")] {
        let server = bind(secure(&bob, AcceptAll).protocol(far.parse().unwrap()));
        let _listener = server.listen().unwrap();
        let client = bind(secure(&alice, AcceptAll).protocol(near.parse().unwrap()));
        let error = client.connect(server.local_addr()).unwrap_err();
        let expected = ConnectionLost::PeerIncompatible(PeerIncompatible::OtherProtocol);
        assert!(matches!(error, Error::Lost(lost) if lost == expected), "{near} calls {far}: {error}");
    }
}

/// Their sessions are plain, and nothing on a secure port is.
#[test]
fn clients_of_original_programs_are_never_on_a_secure_port() {
    let [_, bob] = keys();
    let server = bind(secure(&bob, AcceptAll).protocol("tsunami".parse().unwrap()));
    let _listener = server.listen().unwrap();
    let refused = TcpStream::connect(server.local_addr()).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
}

#[test]
fn the_protection_of_a_connection_names_the_peer() {
    let [alice, bob] = keys();
    let (client, server) = (bind(secure(&alice, AcceptAll)), bind(secure(&bob, AcceptAll)));
    let listener = server.listen().unwrap();
    let stream = client.connect(server.local_addr()).unwrap();
    let (accepted, _) = listener.accept().unwrap();
    let (there, here) = (accepted.protection().unwrap().unwrap(), stream.protection().unwrap().unwrap());
    assert_eq!((here.peer_key, there.peer_key), (Some(bob.public()), Some(alice.public())));
    assert!(here.to_string().starts_with("TLS1.3 X25519MLKEM768"), "{here}");
    assert!(here.to_string().ends_with(&bob.public().fingerprint()), "{here}");
    let plain = bind(Endpoint::builder().plain());
    let listener = plain.listen().unwrap();
    assert_eq!(bind(Endpoint::builder().plain()).connect(listener.local_addr()).unwrap().protection().unwrap(), None);
}

#[test]
fn messages_keep_their_boundaries() {
    let [alice, bob] = keys();
    let (client, server) = (bind(secure(&alice, AcceptAll)), bind(secure(&bob, AcceptAll)));
    let listener = server.listen_for_messages().unwrap();
    let socket = client.connect_with(server.local_addr(), ConnectOptions::messages()).unwrap();
    let (accepted, _) = listener.accept().unwrap();
    for size in [1, 1_400, 100_000] {
        socket.send(&content(size)).unwrap();
        let mut out = vec![0; 200_000];
        let received = accepted.recv(&mut out).unwrap();
        assert!(out[..size] == content(size), "{size}: {received:?}");
    }
}

#[test]
fn a_server_with_another_key_is_no_peer() {
    let [alice, bob] = keys();
    let [other, _] = keys();
    let trusts = Pinned { servers: vec![other.public()], ..Pinned::default() };
    let server = bind(secure(&bob, AcceptAll));
    let _listener = server.listen().unwrap();
    let error = bind(secure(&alice, trusts)).connect(server.local_addr()).unwrap_err();
    assert!(matches!(error, Error::Lost(ConnectionLost::Insecure(SecurityFault::UnknownKey))), "{error}");
    assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied);
}

#[test]
fn a_client_that_is_not_admitted_never_reaches_the_application() {
    let ([alice, bob], [carol, _]) = (keys(), keys());
    let server = bind(secure(&bob, Pinned { clients: vec![carol.public()], ..Pinned::default() }));
    let listener = server.listen().unwrap();
    let stream = bind(secure(&alice, AcceptAll)).connect(server.local_addr()).unwrap();
    let error = stream.finish().unwrap_err();
    assert!(matches!(error, Error::Lost(ConnectionLost::Insecure(SecurityFault::NotAdmitted))), "{error}");
    let admitted = bind(secure(&carol, AcceptAll)).connect(server.local_addr()).unwrap();
    let (first, _) = listener.accept().unwrap();
    assert_eq!(first.protection().unwrap().unwrap().peer_key, Some(carol.public()), "the other one never came");
    drop(admitted);
}

#[test]
fn a_plain_side_and_a_secure_side_do_not_meet() {
    let [alice, bob] = keys();
    let quick = Duration::from_millis(600);
    let server = bind(secure(&bob, AcceptAll));
    let _listener = server.listen().unwrap();
    let plain = bind(Endpoint::builder().plain().connect_timeout(quick));
    assert!(plain.connect(server.local_addr()).is_err());
    let plain = bind(Endpoint::builder().plain());
    let _listener = plain.listen().unwrap();
    let client = bind(secure(&alice, AcceptAll).connect_timeout(quick));
    assert!(client.connect(plain.local_addr()).is_err(), "and nothing falls back");
}

#[test]
fn settings_that_cannot_be_encrypted_are_refused() {
    let [alice, _] = keys();
    let refused = |builder: Builder| builder.bind(ANY.parse().unwrap()).unwrap_err();
    let error = refused(secure(&alice, AcceptAll).mss(1_200));
    assert!(matches!(error, Error::InvalidOption { option: "mss", .. }), "{error}");
}

#[test]
fn sides_without_a_common_cipher_fail_by_name() {
    let [alice, bob] = keys();
    let with =
        |key: &KeyPair, cipher| bind(Endpoint::builder().secure(Security::new(key.clone(), AcceptAll).cipher(cipher)));
    let server = with(&bob, Cipher::ChaCha20Poly1305);
    let _listener = server.listen().unwrap();
    let error = with(&alice, Cipher::Aes256Gcm).connect(server.local_addr()).unwrap_err();
    assert!(matches!(error, Error::Lost(ConnectionLost::Insecure(SecurityFault::Handshake))), "{error}");
}

/// Whether a datagram came from the client, and its bytes.
type Seen = (bool, Vec<u8>);

/// A place that all datagrams pass, and that keeps them.
struct Tap {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Tap {
    fn before(far: SocketAddr) -> Self {
        let socket = UdpSocket::bind(ANY).unwrap();
        socket.set_read_timeout(Some(LIMIT)).unwrap();
        let tap = Self { address: socket.local_addr().unwrap(), seen: Arc::default() };
        let seen = Arc::clone(&tap.seen);
        thread::spawn(move || {
            let (mut near, mut datagram) = (far, vec![0; 65_536]);
            while let Ok((len, from)) = socket.recv_from(&mut datagram) {
                let from_client = from != far;
                seen.lock().unwrap().push((from_client, datagram[..len].to_vec()));
                near = if from_client { from } else { near };
                let _ = socket.send_to(&datagram[..len], if from_client { far } else { near });
            }
        });
        tap
    }
}

#[test]
fn no_run_of_the_payload_is_on_the_wire() {
    let [alice, bob] = keys();
    let server = bind(secure(&bob, AcceptAll));
    let tap = Tap::before(server.local_addr());
    let secret = b"the plans of the bridge over the river ".repeat(20_000);
    let client = bind(secure(&alice, AcceptAll));
    assert!(exchange(&client, tap.address, &server, &secret) == secret);
    let seen = tap.seen.lock().unwrap();
    assert!(seen.iter().map(|(_, datagram)| datagram.len()).sum::<usize>() > secret.len(), "everything passed the tap");
    assert!(!seen.iter().any(|(_, datagram)| datagram.windows(12).any(|bytes| bytes == b"of the bridg")));
}

/// The post-quantum exchange does not fit into one datagram in either direction.
#[test]
fn the_handshake_takes_three_datagrams_in_each_direction() {
    let [alice, bob] = keys();
    let server = bind(secure(&bob, AcceptAll));
    let tap = Tap::before(server.local_addr());
    exchange(&bind(secure(&alice, AcceptAll)), tap.address, &server, b"x");
    let seen = tap.seen.lock().unwrap();
    let epochs = |of_client: bool| -> Vec<Epoch> {
        let own = seen.iter().filter(|(from_client, _)| *from_client == of_client);
        let all = own.map(|(_, datagram)| Header::decode(datagram).unwrap().epoch);
        all.filter(|epoch| !epoch.is_application()).collect()
    };
    let expected = [Epoch::INITIAL, Epoch::INITIAL, Epoch::HANDSHAKE];
    assert_eq!([epochs(true), epochs(false)], [expected, expected]);
}

/// A NAT in front of a client: a relay whose port towards the server changes.
struct Rebinding {
    address: SocketAddr,
    outside: Arc<Mutex<Arc<UdpSocket>>>,
    far: SocketAddr,
    client: Arc<Mutex<Option<SocketAddr>>>,
    inside: Arc<UdpSocket>,
}

impl Rebinding {
    fn before(far: SocketAddr) -> Self {
        let socket = || Arc::new(UdpSocket::bind(ANY).unwrap());
        let (inside, outside) = (socket(), Arc::new(Mutex::new(socket())));
        let relay = Self { address: inside.local_addr().unwrap(), outside, far, client: Arc::default(), inside };
        let (inside, outside, client) =
            (Arc::clone(&relay.inside), Arc::clone(&relay.outside), Arc::clone(&relay.client));
        inside.set_read_timeout(Some(LIMIT)).unwrap();
        thread::spawn(move || {
            let mut datagram = vec![0; 65_536];
            while let Ok((len, from)) = inside.recv_from(&mut datagram) {
                *client.lock().unwrap() = Some(from);
                let outside = Arc::clone(&outside.lock().unwrap());
                let _ = outside.send_to(&datagram[..len], far);
            }
        });
        relay.carry_back();
        relay
    }

    /// Passes on what comes to the present port, as long as it is that.
    fn carry_back(&self) {
        let outside = Arc::clone(&self.outside.lock().unwrap());
        outside.set_read_timeout(Some(LIMIT)).unwrap();
        let (inside, client, present) = (Arc::clone(&self.inside), Arc::clone(&self.client), Arc::clone(&self.outside));
        thread::spawn(move || {
            let mut datagram = vec![0; 65_536];
            while let Ok((len, _)) = outside.recv_from(&mut datagram) {
                if !Arc::ptr_eq(&outside, &present.lock().unwrap()) {
                    return;
                }
                if let Some(client) = *client.lock().unwrap() {
                    let _ = inside.send_to(&datagram[..len], client);
                }
            }
        });
    }

    /// Takes another port towards the server. What still comes to the old one is lost.
    fn rebind(&self) -> SocketAddr {
        let socket = UdpSocket::bind(ANY).unwrap();
        let address = socket.local_addr().unwrap();
        *self.outside.lock().unwrap() = Arc::new(socket);
        self.carry_back();
        assert_ne!(address, self.far);
        address
    }
}

/// Passes `data` through a relay that changes its port twice meanwhile. Returns what arrived.
fn through_changes(to_server: bool, data: &[u8]) -> Vec<u8> {
    let [alice, bob] = keys();
    let (client, server) = (bind(secure(&alice, AcceptAll)), bind(secure(&bob, AcceptAll)));
    let relay = Rebinding::before(server.local_addr());
    let listener = server.listen().unwrap();
    let stream = client.connect(relay.address).unwrap();
    let (accepted, before) = listener.accept().unwrap();
    let (mut from, mut to) = if to_server { (stream, accepted) } else { (accepted, stream) };
    thread::scope(|scope| {
        scope.spawn(move || {
            from.write_all(data).unwrap();
            from.finish().unwrap();
        });
        let (mut all, mut chunk, mut changes) = (Vec::new(), vec![0; 100_000], Vec::new());
        loop {
            let read = to.read(&mut chunk).unwrap();
            if read == 0 {
                break;
            }
            all.extend_from_slice(&chunk[..read]);
            if all.len() > (changes.len() + 1) * data.len() / 3 && changes.len() < 2 {
                changes.push(relay.rebind());
            }
        }
        assert_eq!(changes.len(), 2);
        if to_server {
            assert_eq!(to.peer_addr(), changes[1], "it was {before} at first");
        }
        all
    })
}

#[test]
fn a_transfer_survives_changes_of_the_clients_port_in_either_direction() {
    let data = content(30_000_000);
    for to_server in [true, false] {
        assert!(through_changes(to_server, &data) == data, "to the server: {to_server}");
    }
}
