//! Bytes sent by libudt 4.11, decoded to their values and encoded back to the same bytes. `golden/README.md` describes
//! how each was captured.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use farhaul_units::{AckNo, MsgNo, SeqNo, SeqRange};
use farhaul_wire::udt4::{
    self, Ack, Control, DataHeader, DropRequest, Handshake, Largest, LossList, MessageField, Packet, Position, Request,
    SocketId, SocketType, Timestamp,
};

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// The one file that is encoded to other bytes, because our encoder always writes the pad.
const WITHOUT_PAD: &str = "handmade-keep-alive-without-pad";

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn bytes_of(name: &str) -> Vec<u8> {
    fs::read(folder().join(name).with_extension("bin")).expect(name)
}

fn control(destination: u32, control: Control<'_>) -> Packet<'_> {
    Packet::Control { timestamp: Timestamp::ZERO, destination: SocketId::new(destination), control }
}

fn data(seq: u32, message: (Position, bool, u32), timestamp: u32, payload: &[u8]) -> Packet<'_> {
    let (position, in_order, message) = message;
    let header = DataHeader {
        seq: SeqNo::new(seq),
        field: MessageField { position, in_order, message: MsgNo::new(message) },
        timestamp: Timestamp::new(timestamp),
        destination: SocketId::new(0x0503_151B),
    };
    Packet::Data { header, payload }
}

fn range(first: u32, last: u32) -> SeqRange {
    SeqRange::new(SeqNo::new(first), SeqNo::new(last))
}

/// The content of the test program's long messages: the alphabet, repeated.
fn alphabet(length: usize) -> Vec<u8> {
    (b'A'..=b'Z').cycle().take(length).collect()
}

/// A handshake of libudt with default options; the variants change single fields.
fn handshake(request: Request, isn: u32, socket_id: u32, cookie: u32) -> Handshake {
    Handshake {
        version: Handshake::VERSION,
        socket_type: SocketType::Stream,
        isn: SeqNo::new(isn),
        mss: 1500,
        flow_window: 8192,
        request,
        socket_id: SocketId::new(socket_id),
        cookie,
        peer_ip: LOOPBACK,
        largest: Largest::Unsaid,
        wants_receipts: false,
    }
}

fn handshakes() -> Vec<(&'static str, Packet<'static>)> {
    let isn = 0x1B4E_B7DD;
    let (client, server, cookie) = (0x05C0_9EFF, 0x05C0_9EFE, 0x15AF_0FE6);
    let at = |destination: u32, handshake: Handshake| control(destination, Control::Handshake(handshake));
    let over_ipv6 = Handshake {
        peer_ip: IpAddr::V6(Ipv6Addr::LOCALHOST),
        ..handshake(Request::Conclusion, 0x1FB6_7929, 0x04F9_06F2, 0xA45F_7643)
    };
    let of_messages =
        Handshake { socket_type: SocketType::Dgram, ..handshake(Request::Induction, 0x54B7_8AB9, 0x0503_151C, 0) };
    let refused = handshake(Request::Refused, 0x35C9_1946, 0x1B27_200F, 0xB8E8_3EBF);
    let final_answer = Handshake {
        version: 0,
        socket_type: SocketType::Other(0),
        flow_window: 25_600,
        peer_ip: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        ..handshake(Request::RendezvousFinal, 0x52FC_48F2, 0x3D1D_5E1E, 0)
    };
    vec![
        ("handshake-induction-request", at(0, handshake(Request::Induction, isn, client, 0))),
        ("handshake-induction-answer", at(client, handshake(Request::Induction, isn, client, cookie))),
        ("handshake-conclusion-request", at(0, handshake(Request::Conclusion, isn, client, cookie))),
        ("handshake-conclusion-answer", at(client, handshake(Request::Conclusion, isn, server, cookie))),
        ("handshake-ipv6", at(0x04F9_06F3, over_ipv6)),
        ("handshake-dgram", at(0, of_messages)),
        ("handshake-refused", at(0x1B27_200F, refused)),
        ("handshake-rendezvous", at(0, handshake(Request::Rendezvous, 0x1AB1_3BB2, 0x366A_CAAF, 0))),
        (
            "handshake-rendezvous-conclusion",
            at(0x366A_CAAE, handshake(Request::Conclusion, 0x1AB1_3BB2, 0x366A_CAAF, 0)),
        ),
        ("handshake-rendezvous-final", at(77, final_answer)),
    ]
}

fn acknowledgements() -> Vec<(&'static str, Packet<'static>)> {
    let client = 0x05C0_9EFF;
    let medium = Ack::Medium {
        number: AckNo::new(9),
        seq: SeqNo::new(0x1B4E_BAB2),
        rtt: Duration::from_micros(34_498),
        rtt_var: Duration::from_micros(53_527),
        free_buffer: 7_817,
    };
    let full = Ack::Full {
        number: AckNo::new(6),
        seq: SeqNo::new(0x1B4E_B814),
        rtt: Duration::from_micros(51_314),
        rtt_var: Duration::from_micros(66_966),
        free_buffer: 8_166,
        arrival_rate: 500_000,
        capacity: 1_000,
    };
    vec![
        ("ack-light", control(client, Control::Ack(Ack::Light { seq: SeqNo::new(0x1B4E_B854) }))),
        ("ack-medium", control(client, Control::Ack(medium))),
        ("ack-full", control(client, Control::Ack(full))),
        ("ack2", control(0x05C0_9EFE, Control::Ack2(AckNo::FIRST))),
    ]
}

fn other_control() -> Vec<(&'static str, Packet<'static>)> {
    let dropped = DropRequest { message: MsgNo::new(2), range: range(0x3903_BB2C, 0x3903_BB2F) };
    let custom = Control::Custom { kind: 5, body: &[1, 2, 3, 4, 10, 11, 12, 13] };
    vec![
        ("keep-alive", control(0x05C0_9EFF, Control::KeepAlive)),
        ("shutdown", control(0x0503_151B, Control::Shutdown)),
        ("drop-request", control(0x14D2_7A0F, Control::DropRequest(dropped))),
        ("error-signal", control(0x1C96_0D7F, Control::ErrorSignal(4_000))),
        ("custom", control(0x2D39_55D5, custom)),
        ("handmade-congestion-warning", control(0x05C0_9EFF, Control::CongestionWarning)),
        ("handmade-unknown-type", control(0x05C0_9EFF, Control::Unknown { kind: 9 })),
        (WITHOUT_PAD, control(0x05C0_9EFF, Control::KeepAlive)),
    ]
}

/// A data packet by its file name: sequence number, message field, time stamp and payload.
type Data = (&'static str, u32, (Position, bool, u32), u32, Vec<u8>);

fn data_packets() -> [Data; 5] {
    [
        ("data-only", 0x54B7_8AB9, (Position::Only, false, 1), 53_705, b"hello, far end".to_vec()),
        ("data-only-in-order", 0x54B7_8ABA, (Position::Only, true, 2), 103_989, b"in order, please".to_vec()),
        ("data-middle-in-order", 0x54B7_8ABC, (Position::Middle, true, 3), 154_170, alphabet(2_912).split_off(1_456)),
        ("data-first", 0x54B7_8ABE, (Position::First, false, 4), 204_223, alphabet(1_456)),
        ("data-last", 0x54B7_8AC0, (Position::Last, false, 4), 204_272, alphabet(4_000).split_off(2_912)),
    ]
}

fn loss_reports() -> [(&'static str, Vec<SeqRange>); 4] {
    let mixed = vec![
        range(0x27FE_3B43, 0x27FE_3B43),
        range(0x27FE_3B52, 0x27FE_3B53),
        range(0x27FE_3B60, 0x27FE_3B60),
        range(0x7FFF_FFFE, 2),
    ];
    [
        ("nak-single", vec![range(0x27FE_3B43, 0x27FE_3B43)]),
        ("nak-range", vec![range(0x27FE_3B66, 0x27FE_3B69)]),
        ("nak-adjacent-pair", vec![range(0x27FE_3B52, 0x27FE_3B53)]),
        ("handmade-nak-mixed", mixed),
    ]
}

fn check(name: &str, expected: Packet<'_>) {
    let bytes = bytes_of(name);
    assert_eq!(Packet::decode(&bytes), Ok(expected), "{name}");
    let mut again = Vec::new();
    expected.encode(&mut again);
    if name == WITHOUT_PAD {
        assert_eq!(again, [&bytes[..], &[0; 4]].concat(), "{name}");
    } else {
        assert_eq!(again, bytes, "{name}");
    }
}

#[test]
fn handshakes_are_those_of_libudt() {
    for (name, packet) in handshakes() {
        check(name, packet);
    }
}

#[test]
fn acknowledgements_are_those_of_libudt() {
    for (name, packet) in acknowledgements() {
        check(name, packet);
    }
}

#[test]
fn other_control_packets_are_those_of_libudt() {
    for (name, packet) in other_control() {
        check(name, packet);
    }
}

#[test]
fn data_packets_are_those_of_libudt() {
    for (name, seq, message, timestamp, payload) in data_packets() {
        check(name, data(seq, message, timestamp, &payload));
    }
}

#[test]
fn loss_reports_are_those_of_libudt() {
    for (name, losses) in loss_reports() {
        let mut body = Vec::new();
        assert_eq!(udt4::encode_losses(losses.iter().copied(), 364, &mut body), losses.len());
        let list = LossList::from_body(&body).unwrap();
        assert_eq!(list.iter().collect::<Vec<_>>(), losses, "{name}");
        check(name, control(0x2027_056A, Control::Nak(list)));
    }
}

#[test]
fn every_golden_file_has_an_expected_value() {
    let mut named: BTreeSet<&str> = BTreeSet::new();
    named.extend(handshakes().iter().chain(&acknowledgements()).chain(&other_control()).map(|(name, _)| *name));
    named.extend(data_packets().iter().map(|(name, ..)| *name));
    named.extend(loss_reports().iter().map(|(name, _)| *name));
    let mut present = BTreeSet::new();
    for entry in fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "bin") {
            present.insert(path.file_stem().unwrap().to_str().unwrap().to_owned());
        }
    }
    assert!(present.iter().map(String::as_str).eq(named));
}

#[test]
fn a_packet_prints_as_one_line() {
    for (name, line) in [
        ("data-only", "data seq=1421314745 msg=1 only any-order bytes=14 ts=53705 us to=84088091"),
        ("ack-medium", "ack-medium number=9 seq=458144434 rtt=34.498ms var=53.527ms free=7817 ts=0 us to=96509695"),
        (
            "ack-full",
            "ack-full number=6 seq=458143764 rtt=51.314ms var=66.966ms free=8166 arrival=500000/s capacity=1000/s \
             ts=0 us to=96509695",
        ),
        ("handmade-nak-mixed", "nak 670972739,670972754..=670972755,670972768,2147483646..=2 ts=0 us to=539428202"),
        ("drop-request", "drop msg=2 seq=956545836..=956545839 ts=0 us to=349338127"),
    ] {
        assert_eq!(Packet::decode(&bytes_of(name)).unwrap().to_string(), line);
    }
}
