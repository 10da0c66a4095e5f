//! Properties of all packets: invalid ones are refused, no bytes panic, and decoding inverts encoding.

use core::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::DecodeError;

fn encoded(packet: &Packet<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    packet.encode(&mut bytes);
    bytes
}

fn seq(value: u32) -> SeqNo30 {
    SeqNo30::new(value)
}

fn handshake() -> Handshake {
    Handshake {
        version: Handshake::VERSION,
        request: Request::Open,
        isn: seq(0x0102_0304),
        mtu: 1500,
        flow_window: 25_600,
        connection: 0x1122_3344,
        cookie: 0xA1B2_C3D4,
    }
}

fn ack() -> Ack {
    Ack { id: 0x0102, seq: seq(0x0A0B_0C0D), rtt: Duration::from_millis(10), arrival_speed: 8_000, capacity: 8_333 }
}

/// Written by hand from §3.2 of the paper, and from the module's tables for our own parts.
#[test]
fn golden_bytes_by_hand() {
    let losses = [0x80, 0, 0, 5, 0, 0, 0, 8, 0, 0, 0, 10];
    let golden: [(Packet<'_>, &[u8]); 8] = [
        (Packet::Data { seq: seq(0x2A00_0001), payload: b"abc" }, &[0x2A, 0, 0, 1, b'a', b'b', b'c']),
        (
            Packet::Control(Control::Handshake(handshake())),
            &[
                0x80, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 1, 2, 3, 4, 0, 0, 0x05, 0xDC, 0, 0, 0x64, 0, 0x11, 0x22, 0x33,
                0x44, 0xA1, 0xB2, 0xC3, 0xD4,
            ],
        ),
        (Packet::Control(Control::KeepAlive), &[0x90, 0, 0, 0]),
        (
            Packet::Control(Control::Ack(ack())),
            &[0xA0, 0, 1, 2, 0x0A, 0x0B, 0x0C, 0x0D, 0, 0, 0x27, 0x10, 0, 0, 0x1F, 0x40, 0, 0, 0x20, 0x8D],
        ),
        (
            // Packets 5, 6, 7 and 10: four losses. The end of the range is not one of them.
            Packet::Control(Control::Nak(LossList::from_body(4, &losses).unwrap())),
            &[0xB0, 0, 0, 4, 0x80, 0, 0, 5, 0, 0, 0, 8, 0, 0, 0, 10],
        ),
        (Packet::Control(Control::DelayWarning), &[0xC0, 0, 0, 0]),
        (
            Packet::Control(Control::Close { connection: 0x1122_3344, end: seq(9), acked: seq(7) }),
            &[0xD0, 0, 0, 0, 0x11, 0x22, 0x33, 0x44, 0, 0, 0, 9, 0, 0, 0, 7],
        ),
        (Packet::Control(Control::Ack2(0x0102)), &[0xE0, 0, 1, 2]),
    ];
    for (packet, bytes) in golden {
        assert_eq!(encoded(&packet), bytes, "{packet:?}");
        assert_eq!(Packet::decode(bytes), Ok(packet));
    }
}

#[test]
fn reserved_bits_are_ignored() {
    assert_eq!(Packet::decode(&[0x9F, 0xFF, 0, 0]), Ok(Packet::Control(Control::KeepAlive)));
}

/// Attack B4: bodies that are too short or too long, and the undefined type.
#[test]
fn each_type_accepts_exactly_its_legal_body_lengths() {
    let is_legal = |kind: u8, length: usize| match kind {
        0 => length == 28,
        2 => length == 16,
        3 => length == 4,
        5 => length == 12,
        1 | 4 | 6 => length == 0,
        _ => false,
    };
    for kind in 0..8u8 {
        for length in 0..=40 {
            // One loss, in a NAK; request 1, in a handshake.
            let mut datagram = vec![0x80 | kind << 4, 0, 0, 1];
            datagram.resize(4 + length, 0);
            if kind == 0 && length >= 8 {
                datagram[11] = 1;
            }
            assert_eq!(Packet::decode(&datagram).is_ok(), is_legal(kind, length), "type {kind}, {length} bytes");
        }
    }
}

#[test]
fn datagrams_shorter_than_a_header_are_refused() {
    for length in 0..HEADER_LEN {
        let bytes = vec![0xFF; length];
        assert_eq!(Packet::decode(&bytes), Err(DecodeError::TooShort { length, header: HEADER_LEN }));
    }
}

/// Attack B13: numbers beyond 2^30 - 1 in every field.
#[test]
fn numbers_of_more_than_thirty_bits_are_refused() {
    let refused = |bytes: &[u8]| matches!(Packet::decode(bytes), Err(DecodeError::OutOfRange { .. }));
    assert!(refused(&[0x40, 0, 0, 0]));
    assert!(refused(&[0xA0, 0, 0, 1, 0x40, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]));
    assert!(refused(&[0xB0, 0, 0, 1, 0x40, 0, 0, 0]));
    assert!(refused(&[0xB0, 0, 0, 3, 0xC0, 0, 0, 0, 0, 0, 0, 3]));
    assert!(refused(&[0xD0, 0, 0, 0, 0, 0, 0, 1, 0x40, 0, 0, 0, 0, 0, 0, 0]));
}

/// Attack B5: ranges that have no end, are empty or run backwards, and wrong sums.
#[test]
fn invalid_loss_lists_are_refused() {
    let word = |range: bool, value: u32| (u32::from(range) << 31 | value).to_be_bytes();
    let judge =
        |count: u16, words: &[[u8; 4]]| LossList::from_body(count, words.as_flattened()).map(|list| list.count());
    assert_eq!(judge(3, &[word(true, 5), word(false, 8)]), Ok(3));
    assert_eq!(judge(2, &[word(true, SeqNo30::MAX.value()), word(false, 1)]), Ok(2), "over the end of the numbers");
    assert!(matches!(judge(1, &[word(true, 5)]), Err(DecodeError::OpenRange { word: 0 })));
    assert!(matches!(judge(1, &[word(true, 5), word(true, 8)]), Err(DecodeError::RangeEndMarked { word: 1 })));
    for end in [5, 4, 0] {
        assert!(matches!(judge(1, &[word(true, 5), word(false, end)]), Err(DecodeError::ReversedRange { .. })));
    }
    assert!(matches!(judge(2, &[word(false, 5)]), Err(DecodeError::OutOfRange { .. })));
    assert_eq!(judge(u16::MAX, &[word(true, 0), word(false, 100_000)]), Ok(u16::MAX));
}

#[test]
fn a_list_that_does_not_fit_is_cut_between_ranges() {
    let range = |first, end| LossRange { first: seq(first), end: seq(end) };
    let ranges = [range(1, 2), range(4, 4), range(5, 9), range(20, 25)];
    let mut body = Vec::new();
    assert_eq!(encode_losses(ranges.into_iter(), 4, &mut body), (3, 5));
    let list = LossList::from_body(5, &body).unwrap();
    assert_eq!(list.iter().collect::<Vec<_>>(), [range(1, 2), range(5, 9)]);
}

fn any_handshake() -> impl Strategy<Value = Handshake> {
    let request = prop_oneof![Just(Request::Cookie), Just(Request::Open), Just(Request::Refused)];
    (any::<u32>(), request, any::<[u32; 5]>()).prop_map(|(version, request, [isn, mtu, window, id, cookie])| {
        Handshake { version, request, isn: seq(isn), mtu, flow_window: window, connection: id >> 1, cookie }
    })
}

fn any_ack() -> impl Strategy<Value = Ack> {
    any::<(u16, u32, u32, u32, u32)>().prop_map(|(id, number, micros, arrival_speed, capacity)| Ack {
        id,
        seq: seq(number),
        rtt: Duration::from_micros(micros.into()),
        arrival_speed,
        capacity,
    })
}

proptest! {
    #[test]
    fn decoding_undoes_encoding(
        number in any::<u32>(),
        payload in proptest::collection::vec(any::<u8>(), 0..100),
        handshake in any_handshake(),
        ack in any_ack(),
        id in any::<u16>(),
        losses in proptest::collection::vec((any::<u32>(), 0u32..1 << 20), 1..50),
    ) {
        let ranges = losses.iter().map(|&(first, len)| LossRange { first: seq(first), end: seq(first).plus(len + 1) });
        let mut body = Vec::new();
        let (taken, count) = encode_losses(ranges.clone(), 1_000, &mut body);
        prop_assert_eq!(taken, losses.len());
        let list = LossList::from_body(count, &body).unwrap();
        prop_assert_eq!(list.iter().collect::<Vec<_>>(), ranges.collect::<Vec<_>>());
        let packets = [
            Packet::Data { seq: seq(number), payload: &payload },
            Packet::Control(Control::Handshake(handshake)),
            Packet::Control(Control::Ack(ack)),
            Packet::Control(Control::Ack2(id)),
            Packet::Control(Control::Nak(list)),
            Packet::Control(Control::Close { connection: number >> 1, end: seq(number), acked: seq(!number) }),
        ];
        for packet in packets {
            let bytes = encoded(&packet);
            prop_assert_eq!(Packet::decode(&bytes), Ok(packet));
            prop_assert_eq!(is_handshake(&bytes), matches!(packet, Packet::Control(Control::Handshake(_))));
        }
    }

    #[test]
    fn no_bytes_panic_and_decoded_packets_encode_to_the_same_bytes(
        kind in 0u8..16,
        rest in proptest::collection::vec(any::<u8>(), 0..64),
    ) {
        let mut bytes = vec![kind << 4];
        bytes.extend(rest);
        if let Ok(packet) = Packet::decode(&bytes) {
            let again = encoded(&packet);
            prop_assert_eq!(Packet::decode(&again), Ok(packet));
        }
    }
}
