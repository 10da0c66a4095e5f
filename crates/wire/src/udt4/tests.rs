//! Properties of all packets: invalid ones are refused, no bytes panic, and decoding inverts encoding.

use core::net::IpAddr;
use core::time::Duration;

use farhaul_units::{AckNo, MsgNo, SeqNo, SeqRange};
use proptest::prelude::*;

use super::*;

fn control(kind: u16, information: u32, body: &[u8]) -> Vec<u8> {
    let mut datagram = (0x8000_0000 | u32::from(kind) << 16).to_be_bytes().to_vec();
    datagram.extend_from_slice(&information.to_be_bytes());
    datagram.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 9]);
    datagram.extend_from_slice(body);
    datagram
}

fn said(datagram: &[u8]) -> Result<Control<'_>, DecodeError> {
    Control::decode(datagram).map(|(_, _, control)| control)
}

#[test]
fn short_datagrams_are_refused_and_peeked_at_safely() {
    for length in 0..HEADER_LEN {
        let bytes = vec![0xFF; length];
        assert_eq!(Packet::decode(&bytes), Err(DecodeError::TooShort { length, header: HEADER_LEN }));
        assert_eq!(destination(&bytes), None);
    }
}

/// Attack B4: bodies that are too short or too long.
#[test]
fn each_type_accepts_exactly_its_legal_body_lengths() {
    let is_legal = |kind: u16, length: usize| match kind {
        0 => length == 48,
        2 => matches!(length, 4 | 16 | 24),
        3 => length > 0 && length.is_multiple_of(4),
        7 => length == 8,
        _ => matches!(length, 0 | 4),
    };
    for kind in 0..=8 {
        for length in 0..=64 {
            let datagram = control(kind, 1, &vec![0; length]);
            let decoded = Packet::decode(&datagram);
            let refused_for_length = matches!(decoded, Err(DecodeError::BodyLength { .. }));
            assert_eq!(decoded.is_ok(), is_legal(kind, length), "type {kind}, {length} bytes: {decoded:?}");
            assert_eq!(refused_for_length, !is_legal(kind, length), "type {kind}, {length} bytes: {decoded:?}");
        }
    }
}

/// Attack B13: a 31-bit number whose top bit is set.
#[test]
fn a_top_bit_is_refused_in_every_31_bit_number() {
    const TOP: [u8; 4] = [0x80, 0, 0, 0];
    let with_top_at = |length: usize, at: usize| {
        let mut body = vec![0; length];
        body[at..at + 4].copy_from_slice(&TOP);
        body
    };
    let mut no_such_socket = control(1, 0, &[]);
    no_such_socket[12] = 0x80;
    assert_eq!(destination(&no_such_socket), None);
    for datagram in [
        no_such_socket,
        control(0, 0, &with_top_at(48, 8)),
        control(0, 0, &with_top_at(48, 24)),
        control(2, 0, &TOP),
        control(2, 0, &with_top_at(16, 0)),
        control(2, 0, &with_top_at(24, 0)),
        control(2, 0x8000_0000, &[0; 16]),
        control(2, 0x8000_0000, &[0; 24]),
        control(6, 0x8000_0000, &[]),
        control(7, 0, &with_top_at(8, 0)),
        control(7, 0, &with_top_at(8, 4)),
    ] {
        let decoded = Packet::decode(&datagram);
        assert!(matches!(decoded, Err(DecodeError::TopBit { .. })), "{datagram:02x?}: {decoded:?}");
    }
}

/// Attack B7: a range that would cause an endless loop.
#[test]
fn a_drop_request_that_runs_backwards_is_refused() {
    let datagram = control(7, 5, &[0, 0, 0, 9, 0, 0, 0, 8]);
    let error =
        DecodeError::ReversedRange { packet: "message drop request", first: SeqNo::new(9), last: SeqNo::new(8) };
    assert_eq!(said(&datagram), Err(error));
}

#[test]
fn a_drop_request_may_cross_the_wrap() {
    let datagram = control(7, 0xE000_0005, &[0x7F, 0xFF, 0xFF, 0xFF, 0, 0, 0, 1]);
    let range = SeqRange::new(SeqNo::MAX, SeqNo::new(1));
    assert_eq!(said(&datagram), Ok(Control::DropRequest(DropRequest { message: MsgNo::new(5), range })));
}

#[test]
fn reserved_bits_and_pad_contents_are_ignored() {
    let mut datagram = control(5, 0xFFFF_FFFF, &[1, 2, 3, 4]);
    datagram[2] = 0xFF;
    assert_eq!(said(&datagram), Ok(Control::Shutdown));
}

#[test]
fn data_and_control_are_told_apart() {
    let control_packet = control(1, 0, &[]);
    let data_packet = [0; HEADER_LEN];
    assert!(is_control(&control_packet) && !is_control(&data_packet) && !is_control(&[]));
    assert_eq!(DataHeader::decode(&control_packet), Err(DecodeError::NotData));
    assert_eq!(Control::decode(&data_packet), Err(DecodeError::NotControl));
}

#[test]
fn an_rtt_too_long_for_the_wire_is_clamped() {
    let endless = Ack::Medium {
        number: AckNo::FIRST,
        seq: SeqNo::new(1),
        rtt: Duration::MAX,
        rtt_var: Duration::ZERO,
        free_buffer: 2,
    };
    let mut out = Vec::new();
    Control::Ack(endless).encode(Timestamp::ZERO, SocketId::new(1), &mut out);
    assert_eq!(out[20..24], [0xFF; 4]);
}

#[test]
fn a_time_stamp_wraps_after_seventy_one_minutes() {
    let wrap = Duration::from_micros(1 << 32);
    assert_eq!(Timestamp::from_elapsed(wrap + Duration::from_micros(3)), Timestamp::new(3));
}

fn seq() -> impl Strategy<Value = SeqNo> {
    prop_oneof![any::<u32>(), 0x7FFF_FFF0..=0x7FFF_FFFF_u32, 0..16_u32].prop_map(SeqNo::new)
}

/// Ranges that do not run backwards: up to half the circle, often across the wrap.
fn range() -> impl Strategy<Value = SeqRange> {
    let length = prop_oneof![Just(1), Just(2), 1..100_u32, 1..=1_u32 << 30];
    (seq(), length).prop_map(|(first, length)| SeqRange::new(first, first.plus(length - 1)))
}

fn handshake() -> impl Strategy<Value = Handshake> {
    let numbers = (any::<u32>(), 0..4_u32, seq(), any::<u32>(), any::<u32>());
    let request = prop_oneof![
        Just(Request::Induction),
        Just(Request::Conclusion),
        Just(Request::Rendezvous),
        Just(Request::RendezvousFinal),
        Just(Request::Refused),
        (3..1000_i32).prop_map(Request::Other),
    ];
    let peer_ip = prop_oneof![
        any::<[u8; 4]>().prop_map(IpAddr::from),
        (any::<[u16; 7]>(), 1_u16..).prop_map(|([a, b, c, d, e, f, g], h)| IpAddr::from([a, b, c, d, e, f, g, h])),
    ];
    (numbers, request, any::<u32>(), any::<u32>(), peer_ip).prop_map(
        |((version, socket_type, isn, mss, flow_window), request, socket_id, cookie, peer_ip)| Handshake {
            version,
            socket_type: match socket_type {
                1 => SocketType::Stream,
                2 => SocketType::Dgram,
                other => SocketType::Other(other),
            },
            isn,
            mss,
            flow_window,
            request,
            socket_id: SocketId::new(socket_id),
            cookie,
            peer_ip,
            largest: Largest::Unsaid,
            wants_receipts: false,
        },
    )
}

fn ack() -> impl Strategy<Value = Ack> {
    let words = (any::<u32>(), any::<u32>(), any::<u32>(), any::<u32>(), any::<u32>(), any::<u32>());
    (0..3, seq(), words).prop_map(|(length, seq, (number, rtt, rtt_var, free_buffer, arrival_rate, capacity))| {
        let number = AckNo::new(number);
        let (rtt, rtt_var) = (Duration::from_micros(rtt.into()), Duration::from_micros(rtt_var.into()));
        match length {
            0 => Ack::Light { seq },
            1 => Ack::Medium { number, seq, rtt, rtt_var, free_buffer },
            _ => Ack::Full { number, seq, rtt, rtt_var, free_buffer, arrival_rate, capacity },
        }
    })
}

/// Every control packet type with a body of fixed length.
fn fixed_control() -> impl Strategy<Value = Control<'static>> {
    prop_oneof![
        handshake().prop_map(Control::Handshake),
        Just(Control::KeepAlive),
        ack().prop_map(Control::Ack),
        Just(Control::CongestionWarning),
        Just(Control::Shutdown),
        any::<u32>().prop_map(|number| Control::Ack2(AckNo::new(number))),
        (any::<u32>(), range())
            .prop_map(|(number, range)| Control::DropRequest(DropRequest { message: MsgNo::new(number), range })),
        any::<u32>().prop_map(Control::ErrorSignal),
        // All types but that of `Control::Path`.
        prop_oneof![9..0x4650_u16, 0x4651..0x7FFF_u16].prop_map(|kind| Control::Unknown { kind }),
    ]
}

/// Decoding inverts encoding.
fn check_round_trip(packet: Packet<'_>) {
    let mut datagram = Vec::new();
    packet.encode(&mut datagram);
    assert_eq!(Packet::decode(&datagram), Ok(packet));
    let handshake = matches!(packet, Packet::Control { control: Control::Handshake(_), .. });
    assert_eq!(is_handshake(&datagram), handshake);
    let receipt = matches!(packet, Packet::Control { control: Control::Receipt(_), .. });
    assert_eq!(is_receipt(&datagram), receipt);
}

proptest! {
    #[test]
    fn nothing_panics_on_arbitrary_bytes(datagram in proptest::collection::vec(any::<u8>(), 0..100)) {
        let _ = destination(&datagram);
        let _ = DataHeader::timestamp_of(&datagram);
        if let Ok(packet) = Packet::decode(&datagram) {
            let _ = packet.to_string();
            check_round_trip(packet);
        }
    }

    #[test]
    fn nothing_panics_on_arbitrary_control_bodies(
        kind in 0..10_u16,
        information in any::<u32>(),
        words in proptest::collection::vec(prop_oneof![any::<u32>(), 0..4_u32, 0x8000_0000..0x8000_0004_u32], 0..14),
        tail in 0..4_usize,
    ) {
        let mut body: Vec<u8> = words.into_iter().flat_map(u32::to_be_bytes).collect();
        body.truncate(body.len().saturating_sub(tail));
        let datagram = control(kind, information, &body);
        if let Ok(packet) = Packet::decode(&datagram) {
            let _ = packet.to_string();
            check_round_trip(packet);
        }
    }

    #[test]
    fn control_packets_survive_the_wire(control in fixed_control(), stamp: u32, id: u32) {
        let (timestamp, destination) = (Timestamp::new(stamp), SocketId::new(id));
        check_round_trip(Packet::Control { timestamp, destination, control });
    }

    #[test]
    fn loss_reports_survive_the_wire(ranges in proptest::collection::vec(range(), 1..20), id: u32) {
        let mut body = Vec::new();
        prop_assert_eq!(encode_losses(ranges.iter().copied(), 40, &mut body), ranges.len());
        let control = Control::Nak(LossList::from_body(&body).unwrap());
        check_round_trip(Packet::Control { timestamp: Timestamp::ZERO, destination: SocketId::new(id), control });
    }

    #[test]
    fn custom_packets_survive_the_wire(kind: u16, body in proptest::collection::vec(any::<u8>(), 0..40)) {
        let control = Control::Custom { kind, body: &body };
        check_round_trip(Packet::Control { timestamp: Timestamp::ZERO, destination: SocketId::new(1), control });
    }

    #[test]
    fn data_packets_survive_the_wire(
        seq in seq(), word: u32, stamp: u32, id: u32, payload in proptest::collection::vec(any::<u8>(), 0..40),
    ) {
        let field = MessageField::from_word(word);
        prop_assert_eq!(field.to_word(), word);
        let (timestamp, destination) = (Timestamp::new(stamp), SocketId::new(id));
        let header = DataHeader { seq, field, timestamp, destination };
        let mut head = [0; HEADER_LEN];
        header.encode(&mut head);
        prop_assert_eq!(super::destination(&head), Some(destination));
        prop_assert_eq!(DataHeader::timestamp_of(&head), timestamp);
        check_round_trip(Packet::Data { header, payload: &payload });
    }

    #[test]
    fn every_decoded_handshake_encodes_to_the_same_bytes(mut body: [u8; 48]) {
        body[8] &= 0x7F;
        body[24] &= 0x7F;
        let mut again = Vec::new();
        Handshake::decode_body(&body).unwrap().encode_body(&mut again);
        prop_assert_eq!(&again, &body);
    }
}
