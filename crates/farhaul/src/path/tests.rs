use std::net::UdpSocket;

use super::*;
use crate::Endpoint;
use crate::security::{AcceptAll, KeyPair, Security};

const WAIT: Duration = Duration::from_secs(5);

fn any() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

#[test]
fn each_kind_of_port_answers_its_form_and_says_nothing_to_the_other() {
    let plain = Endpoint::builder().plain().answer_probes(true).bind(any()).unwrap();
    let secure = Endpoint::secure(any(), Security::new(KeyPair::generate().unwrap(), AcceptAll)).unwrap();
    let _listening = secure.listen().unwrap();
    for (port, own, other) in
        [(plain.local_addr(), Form::Plain, Form::Secure), (secure.local_addr(), Form::Secure, Form::Plain)]
    {
        let mut probe = PathProbe::towards(port).unwrap();
        probe.send(other, 1_300).unwrap();
        probe.send(own, 1_400).unwrap();
        let answer = probe.receive(WAIT).unwrap().unwrap();
        assert!((answer.form, answer.packet) == (own, 1_400) && answer.round_trip < WAIT, "{answer:?}");
        assert_eq!(probe.receive(Duration::from_millis(1)).unwrap(), None);
        let found = probe.find_mtu(own, 9_000, Duration::from_millis(1), WAIT).unwrap();
        assert_eq!(found, Some(PathMtu { passes: 9_000, fails: None }));
    }
}

#[test]
fn answers_to_somebody_else_are_not_heard() {
    let mut plain = Vec::new();
    let counts = farhaul_wire::probe::Counts::default();
    Probe { kind: Kind::Acknowledgement(counts), session: 7, number: 1_500, clock: 3 }.encode(&mut plain);
    assert_eq!((answer(&plain, 7), answer(&plain, 8)), (Some((Form::Plain, Some(1_500), 3)), None));
    assert!(answer(b"", 7).is_none() && answer(&[0; 200], 7).is_none());
    // A question is no answer.
    for form in [Form::Plain, Form::Udt] {
        assert!(answer(&question(form, 7, 1_500, 3), 7).is_none());
    }
}

#[test]
fn every_plain_listener_answers_the_first_packet_of_a_handshake_and_gets_no_connection() {
    let listener = Endpoint::plain(any()).unwrap().listen().unwrap();
    let mut probe = PathProbe::towards(listener.local_addr()).unwrap();
    probe.send(Form::Udt, 1_400).unwrap();
    let answer = probe.receive(WAIT).unwrap().unwrap();
    assert!((answer.form, answer.packet) == (Form::Udt, 92) && answer.round_trip < WAIT, "{answer:?}");
}

#[test]
fn a_round_trip_survives_the_end_of_a_short_clock() {
    assert_eq!(since(5, 12), Duration::from_micros(7));
    assert_eq!(since(LOW_31_BITS, (1 << 31) + 2), Duration::from_micros(3));
}

#[test]
fn a_closed_port_is_named() {
    let closed = UdpSocket::bind("127.0.0.77:0").unwrap();
    let mut probe = PathProbe::towards(closed.local_addr().unwrap()).unwrap();
    drop(closed);
    probe.send(Form::Secure, 0).unwrap();
    assert_eq!(probe.receive(WAIT).unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
}
