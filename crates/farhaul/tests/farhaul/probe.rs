//! Measured streams between two ports of this machine.
#![expect(clippy::unwrap_used, reason = "in tests a failure is a panic")]

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

use farhaul::probe::{BlasterConfig, EnclosureConfig, PROTECTION_OVERHEAD, ProbeSocket, StableConfig};
use farhaul::registry::protocols;
use farhaul::security::{KeyPair, Pinned, Security, SecurityFault};
use farhaul::{ConnectionLost, Endpoint, Error, Rate};

const POINT: BlasterConfig = BlasterConfig {
    datagram: 1_200,
    window: 8,
    sleep: Duration::from_millis(5),
    spaced: false,
    messages: false,
    time: Duration::from_millis(300),
};

fn port(answers: bool) -> Endpoint {
    Endpoint::builder().plain().answer_probes(answers).bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap()
}

#[test]
fn a_port_answers_a_stable_stream_and_hands_over_its_payloads() {
    let far = port(false);
    let payloads = far.probe_payloads().unwrap();
    let mut socket = ProbeSocket::towards(far.local_addr()).unwrap();
    let config = StableConfig {
        first_sleep: Duration::from_millis(10),
        ..StableConfig::new(Rate::from_bits_per_second(2_000_000))
    };
    let mut stream = socket.stable(config).unwrap();
    stream.fill_with(|number, payload| payload[..8].copy_from_slice(&number.to_be_bytes()));
    while stream.figures(socket.now()).acknowledged < 20 {
        socket.run(&mut stream, Duration::from_millis(50)).unwrap();
    }
    let figures = stream.figures(socket.now());
    assert!(figures.sent >= 20 && figures.arrived >= 20 && !figures.delay.is_zero(), "{figures:?}");
    for number in 0..20_u64 {
        let payload = payloads.recv().unwrap();
        assert_eq!((payload.number, &payload.bytes[..8]), (number, &number.to_be_bytes()[..]));
        assert_eq!(payload.bytes.len(), stream.payload_len());
    }
}

#[test]
fn a_port_counts_a_point_of_a_profile_beside_its_connections() {
    let far = port(true);
    let listener = far.listen().unwrap();
    let mut stream = farhaul::Stream::connect_plain(far.local_addr()).unwrap();
    let (mut other, _) = listener.accept().unwrap();
    let mut socket = ProbeSocket::towards(far.local_addr()).unwrap();
    let mut point = socket.blaster(POINT).unwrap();
    socket.run(&mut point, Duration::from_secs(30)).unwrap();
    let figures = point.result().flatten().unwrap();
    assert!(figures.sent >= 8 && figures.arrived <= figures.sent && figures.arrived > 0, "{figures:?}");
    let datagram = u64::from(POINT.datagram);
    assert_eq!(far.probe_totals().unwrap(), (figures.arrived, figures.arrived * datagram), "no question counts");
    stream.write_all(b"words").unwrap();
    let mut words = [0; 5];
    other.read_exact(&mut words).unwrap();
    assert_eq!(&words, b"words");
}

#[test]
fn a_port_that_does_not_answer_gives_no_result() {
    let far = port(false);
    let mut socket = ProbeSocket::towards(far.local_addr()).unwrap();
    let mut point = socket.blaster(BlasterConfig { time: Duration::ZERO, ..POINT }).unwrap();
    socket.run(&mut point, Duration::from_secs(30)).unwrap();
    assert_eq!(point.result(), Some(None));
    assert_eq!(far.probe_totals().unwrap(), (0, 0));
    assert_eq!(far.invalid_datagrams().unwrap(), 11, "a transport has no use for the questions");
}

/// A client's key and a server's.
fn keys() -> [KeyPair; 2] {
    [KeyPair::generate().unwrap(), KeyPair::generate().unwrap()]
}

/// A port with encryption that answers streams of this client.
fn secure_port(protocol: &str, [client, server]: &[KeyPair; 2]) -> Endpoint {
    let admits = Pinned { clients: vec![client.public()], ..Pinned::default() };
    let builder = Endpoint::builder().protocol(protocol.parse().unwrap()).answer_probes(true);
    builder.secure(Security::new(server.clone(), admits)).bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap()
}

fn trusting([client, server]: &[KeyPair; 2]) -> Security {
    Security::new(client.clone(), Pinned { servers: vec![server.public()], ..Pinned::default() })
}

fn enclosed(far: &Endpoint, security: Security) -> ProbeSocket {
    ProbeSocket::enclosed(far.local_addr(), security, EnclosureConfig::default()).unwrap()
}

#[test]
fn an_encrypted_port_of_any_protocol_counts_a_point_and_accepts_nobody() {
    let keys = keys();
    for entry in protocols() {
        let far = secure_port(entry.name, &keys);
        let _listener = far.listen().unwrap();
        let mut socket = enclosed(&far, trusting(&keys));
        assert!(socket.connect(Duration::from_secs(20)).unwrap());
        assert_eq!(socket.protection().unwrap().peer_key, Some(keys[1].public()));
        let mut point = socket.blaster(POINT).unwrap();
        socket.run(&mut point, Duration::from_secs(30)).unwrap();
        let figures = point.result().flatten().unwrap();
        assert!(figures.sent >= 8 && figures.arrived <= figures.sent && figures.arrived > 0, "{figures:?}");
        let payload = figures.arrived * u64::from(POINT.datagram);
        assert_eq!(far.probe_totals().unwrap(), (figures.arrived, payload), "{}: payload counts", entry.name);
    }
}

#[test]
fn an_encrypted_stream_hands_over_its_payloads_and_names_the_senders_port() {
    let keys = keys();
    let far = secure_port("udt", &keys);
    let (_listener, payloads) = (far.listen().unwrap(), far.probe_payloads().unwrap());
    let mut socket = enclosed(&far, trusting(&keys));
    assert!(socket.connect(Duration::from_secs(20)).unwrap());
    let datagram = 1_472 - PROTECTION_OVERHEAD as u16;
    let first_sleep = Duration::from_millis(10);
    let config = StableConfig { datagram, first_sleep, ..StableConfig::new(Rate::from_bits_per_second(2_000_000)) };
    let mut stream = socket.stable(config).unwrap();
    stream.fill_with(|number, payload| payload[..8].copy_from_slice(&number.to_be_bytes()));
    while stream.figures(socket.now()).acknowledged < 20 {
        socket.run(&mut stream, Duration::from_millis(50)).unwrap();
    }
    for number in 0..20_u64 {
        let payload = payloads.recv().unwrap();
        assert_eq!((payload.number, &payload.bytes[..8]), (number, &number.to_be_bytes()[..]));
        assert_eq!((payload.from.ip(), payload.bytes.len()), ([127, 0, 0, 1].into(), stream.payload_len()));
        assert!(payload.from.is_ipv4(), "{}", payload.from);
    }
}

#[test]
fn a_stream_with_a_wrong_key_at_either_side_does_not_begin() {
    let (ours, others) = (keys(), keys());
    let far = secure_port("udt", &ours);
    let _listener = far.listen().unwrap();
    let unknown_client = [others[0].clone(), ours[1].clone()];
    let unknown_server = [ours[0].clone(), others[1].clone()];
    for (keys, fault) in [(unknown_client, SecurityFault::NotAdmitted), (unknown_server, SecurityFault::UnknownKey)] {
        let mut socket = enclosed(&far, trusting(&keys));
        let mut result = socket.connect(Duration::from_secs(20));
        if matches!(result, Ok(true)) {
            // A client is connected before the server has judged its key.
            let mut point = socket.blaster(POINT).unwrap();
            result = socket.run(&mut point, Duration::from_secs(20)).map(|()| true);
        }
        let Err(Error::Lost(ConnectionLost::Insecure(seen))) = result else { panic!("{result:?}") };
        assert_eq!(seen, fault);
    }
    assert_eq!(far.probe_totals().unwrap(), (0, 0));
}

#[test]
fn a_plain_stream_gets_nothing_out_of_an_encrypted_port() {
    let keys = keys();
    let far = secure_port("udt", &keys);
    let _listener = far.listen().unwrap();
    let mut socket = ProbeSocket::towards(far.local_addr()).unwrap();
    let mut point = socket.blaster(BlasterConfig { time: Duration::ZERO, ..POINT }).unwrap();
    socket.run(&mut point, Duration::from_secs(30)).unwrap();
    assert_eq!((point.result(), far.probe_totals().unwrap()), (Some(None), (0, 0)));
}

#[test]
fn a_control_stream_goes_inside_the_connection_of_any_protocol() {
    let keys = keys();
    for entry in protocols() {
        let far = secure_port(entry.name, &keys);
        let listener = far.listen().unwrap();
        let client = Endpoint::builder().protocol(entry.name.parse().unwrap()).secure(trusting(&keys));
        let client = client.bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let mut bulk = client.connect(far.local_addr()).unwrap();
        let (mut other, _) = listener.accept().unwrap();
        let config = StableConfig {
            first_sleep: Duration::from_millis(10),
            ..StableConfig::new(Rate::from_megabits_per_second(1))
        };
        let error = client.control_stream(far.local_addr(), config).unwrap_err();
        assert!(matches!(error, Error::NeedsConnection), "{error}");
        let control =
            bulk.control_stream(StableConfig { datagram: 1_472 - PROTECTION_OVERHEAD as u16, ..config }).unwrap();
        assert_eq!(control.peer_addr(), far.local_addr());
        let data = vec![7; 1 << 20];
        while control.figures().unwrap().acknowledged < 10 {
            bulk.write_all(&data).unwrap();
            other.read_exact(&mut vec![0; data.len()]).unwrap();
        }
        assert!(control.ceiling().unwrap().rate.is_some() && !control.is_alone().unwrap(), "{}", entry.name);
        assert!(far.probe_totals().unwrap().0 >= 10);
    }
}
