//! Measured streams between two ports of this machine.
#![expect(clippy::unwrap_used, reason = "in tests a failure is a panic")]

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

use farhaul::probe::{BlasterConfig, ProbeSocket, StableConfig};
use farhaul::{Endpoint, Rate};

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
