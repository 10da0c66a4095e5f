use farhaul_units::SeqNo;
use proptest::prelude::*;

use super::*;
use crate::udt4::{self, SocketId};

fn header() -> Header {
    Header { epoch: Epoch(3), number: 0x06_0708, to: SocketId::new(0x1122_3344) }
}

#[test]
fn a_header_has_its_golden_bytes() {
    let bytes = [0xC5, 3, 6, 7, 8, 0x11, 0x22, 0x33, 0x44];
    assert_eq!(header().bytes(), bytes);
    let datagram = [&bytes[..], &[0; TAG_LEN]].concat();
    assert_eq!(Header::decode(&datagram), Ok(header()));
    assert!(is_protected(&datagram) && udt4::is_control(&datagram));
    assert_eq!(destination(&datagram), Some(SocketId::new(0x1122_3344)));
}

#[test]
fn no_control_packet_of_udt4_is_a_protected_packet() {
    for kind in (0..=8_u8).map(u16::from).chain([0x4650, 0x7FFF]) {
        assert!(!is_protected(&(kind | 0x8000).to_be_bytes()), "{kind}");
    }
    assert!(!is_protected(&[]) && !is_protected(&[0x45]));
}

#[test]
fn epochs_of_the_application_follow_each_other_for_ever() {
    let mut epoch = Epoch::FIRST_APPLICATION;
    for _ in 0..1_000 {
        assert!(epoch.is_application() && epoch.next() != epoch);
        epoch = epoch.next();
    }
    assert_eq!(Epoch(255).next(), Epoch::FIRST_APPLICATION);
}

#[test]
fn a_datagram_without_room_for_a_tag_is_refused() {
    let datagram = [&header().bytes()[..], &[0; TAG_LEN - 1]].concat();
    assert!(Header::decode(&datagram).is_err());
}

#[test]
fn a_packet_of_udt4_is_restored_where_it_was_opened() {
    let packet: Vec<u8> = [[0x40, 0, 0, 9], [0xE0, 0, 0, 1], [0, 0, 0, 5], [0x11, 0x22, 0x33, 0x44], *b"data"].concat();
    let mut datagram = Vec::new();
    inner::enclose(&header(), packet.split_first_chunk().unwrap(), DataForm::Messages, &mut datagram);
    assert_eq!(datagram.len(), packet.len() + OVERHEAD);
    assert_eq!(inner::restore(&mut datagram).unwrap(), packet);
    assert_eq!(inner::restore(&mut [0; HEADER_LEN + 11 + TAG_LEN]), None);
}

#[test]
fn data_of_a_stream_travel_with_their_number_alone() {
    let packet = [[0x40, 0, 0, 9], [0xE0, 0, 0, 1], [0, 0, 0, 5], [0x11, 0x22, 0x33, 0x44], *b"data"].concat();
    let mut protected = Vec::new();
    inner::enclose(&header(), packet.split_first_chunk().unwrap(), DataForm::Stream, &mut protected);
    assert_eq!((protected.len(), STREAM_OVERHEAD), (packet.len() + STREAM_OVERHEAD, 13));
    let body = &protected[HEADER_LEN..protected.len() - TAG_LEN];
    assert_eq!(inner::stream_data(body), Some((SeqNo::new(0x4000_0009), &b"data"[..])));
    assert_eq!(inner::stream_data(&[0x80, 2, 0, 0]), None, "a control packet");
    assert_eq!(inner::stream_data(&[0x40, 2, 0]), None);
}

#[test]
fn a_packet_is_enclosed_in_place_as_elsewhere() {
    for (first, form) in [(0x40, DataForm::Stream), (0x40, DataForm::Messages), (0x80, DataForm::Stream)] {
        for length in 0..40 {
            let packet: Vec<u8> = (0..length).map(|byte| byte + first).collect();
            let (mut protected, mut in_place) = (Vec::new(), packet.clone());
            if let Some(pieces) = packet.split_first_chunk() {
                inner::enclose(&header(), pieces, form, &mut protected);
            }
            inner::enclose_in_place(&header(), &mut in_place, form);
            assert_eq!(in_place, protected, "{first:x} {form:?} {length}");
        }
    }
}

#[test]
fn a_datagram_of_another_protocol_stands_behind_the_word_of_a_message() {
    let mut protected = Vec::new();
    inner::enclose_datagram(&header(), b"datagram", &mut protected);
    assert_eq!(protected.len(), 8 + inner::DATAGRAM_OVERHEAD);
    let body = &protected[HEADER_LEN..protected.len() - TAG_LEN];
    assert_eq!(body[..2], [0xC5, 16]);
    assert_eq!(inner::Message::decode(body), Some(inner::Message::Datagram(b"datagram")));
}

#[test]
fn the_header_of_an_initial_packet_survives_and_its_limits_hold() {
    let initial = InitialHeader { version: 1, from: SocketId::new(7), client_id: &[9; 8], token: b"token" };
    let mut datagram = header().bytes().to_vec();
    initial.encode(&mut datagram);
    let length = datagram.len();
    datagram.extend_from_slice(b"body");
    assert_eq!(InitialHeader::decode(&datagram), Ok((initial, length)));
    for cut in 0..length {
        assert!(InitialHeader::decode(&datagram[..cut]).is_err(), "{cut}");
    }
    datagram[HEADER_LEN + 8] = 21;
    assert!(InitialHeader::decode(&datagram).is_err(), "a client id that is too long");
    datagram[HEADER_LEN + 8] = 7;
    assert!(InitialHeader::decode(&datagram).is_err(), "a client id that is too short");
}

#[test]
fn parameters_must_be_complete_and_stand_once() {
    let first = SeqNo::new(77);
    let parameters = TransportParameters {
        protocol: "udt",
        messages: true,
        mss: 1472,
        flow_window: 8192,
        first,
        options: b"",
        largest: None,
        call: None,
        half_close: false,
        receipts: false,
    };
    let mut bytes = Vec::new();
    parameters.encode(&mut bytes);
    assert_eq!(TransportParameters::decode(&bytes), Ok(parameters));
    let (probing, mut longer) = (TransportParameters { largest: Some(8_972), ..parameters }, Vec::new());
    probing.encode(&mut longer);
    assert_eq!((TransportParameters::decode(&longer), &longer[..bytes.len()]), (Ok(probing), &bytes[..]));
    let (rendezvous, mut named) = (TransportParameters { call: Some(&[7; 20]), ..parameters }, Vec::new());
    rendezvous.encode(&mut named);
    assert_eq!(TransportParameters::decode(&named), Ok(rendezvous));
    for length in [0, 7, 21] {
        let wrong = [&bytes[..], &[0, 8, 0, length], &vec![7; length.into()]].concat();
        assert_eq!(TransportParameters::decode(&wrong), Err(ParametersError::Length(8)), "{length}");
    }
    let (half_closing, mut ends) = (TransportParameters { half_close: true, ..parameters }, Vec::new());
    half_closing.encode(&mut ends);
    assert_eq!((TransportParameters::decode(&ends), &ends[bytes.len()..]), (Ok(half_closing), &[0, 9, 0, 0][..]));
    assert_eq!(TransportParameters::decode(&[&bytes[..], &[0, 9, 0, 1, 1]].concat()), Err(ParametersError::Length(9)));
    let later = [&bytes[..], &[0x12, 0x34, 0, 1, 0]].concat();
    assert_eq!(TransportParameters::decode(&later), Ok(parameters), "a term of a later version");
    assert_eq!(TransportParameters::decode(&[&bytes[..], &bytes[..]].concat()), Err(ParametersError::Twice(1)));
    assert_eq!(TransportParameters::decode(&[]), Err(ParametersError::Missing(1)));
    for cut in 1..bytes.len() {
        assert!(TransportParameters::decode(&bytes[..cut]).is_err(), "{cut}");
    }
}

#[test]
fn a_reason_is_cut_at_a_character() {
    let reason = "ä".repeat(MAX_REASON);
    let mut bytes = Vec::new();
    Frame::Close(CloseCode::Busy, &reason).encode(&mut bytes);
    let Ok(Some((Frame::Close(CloseCode::Busy, read), []))) = Frame::decode(&bytes) else { panic!("{bytes:?}") };
    assert_eq!(read, "ä".repeat(MAX_REASON / 2));
}

#[test]
fn a_challenge_has_its_golden_bytes_and_no_others() {
    let mut bytes = Vec::new();
    inner::Message::Challenge([1, 2, 3, 4, 5, 6, 7, 8]).encode(&mut bytes);
    assert_eq!(bytes, [0xC5, 3, 1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(HEADER_LEN + bytes.len() + TAG_LEN, inner::CHALLENGE_DATAGRAM);
    assert_eq!(inner::Message::decode(&bytes[..9]), None);
    bytes.push(9);
    assert_eq!(inner::Message::decode(&bytes), None);
}

proptest! {
    #[test]
    fn frames_survive(offset: u32, epoch: u8, code: u16, bytes in proptest::collection::vec(any::<u8>(), 0..128)) {
        let reason = String::from_utf8_lossy(&bytes[..bytes.len().min(60)]).into_owned();
        let frames = [
            Frame::Crypto { offset, bytes: &bytes },
            Frame::Received { epoch: Epoch(epoch), offset },
            Frame::Retry(&bytes),
            Frame::Close(code.into(), &reason),
        ];
        let mut encoded = Vec::new();
        frames.iter().for_each(|frame| frame.encode(&mut encoded));
        encoded.extend_from_slice(&[0; 9]);
        let mut rest = &encoded[..];
        for frame in frames {
            let (read, behind) = Frame::decode(rest).unwrap().unwrap();
            prop_assert_eq!(read, frame);
            rest = behind;
        }
        prop_assert_eq!(Frame::decode(rest), Ok(None));
    }

    #[test]
    fn messages_survive(code: u16, reason in "\\PC{0,40}", challenge: [u8; inner::CHALLENGE_LEN]) {
        let messages = [
            inner::Message::Done,
            inner::Message::Close(code.into(), &reason),
            inner::Message::Challenge(challenge),
            inner::Message::Response(challenge),
            inner::Message::Datagram(reason.as_bytes()),
        ];
        for message in messages {
            let mut bytes = Vec::new();
            message.encode(&mut bytes);
            prop_assert!(inner::is_message(&bytes));
            prop_assert_eq!(inner::Message::decode(&bytes), Some(message));
        }
    }

    #[test]
    fn no_bytes_make_a_decoder_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..1500)) {
        let _ = Header::decode(&bytes);
        let _ = InitialHeader::decode(&bytes);
        let _ = TransportParameters::decode(&bytes);
        let _ = inner::Message::decode(&bytes);
        let mut rest = &bytes[..];
        while let Ok(Some((_, behind))) = Frame::decode(rest) {
            prop_assert!(behind.len() < rest.len());
            rest = behind;
        }
        let _ = inner::restore(&mut bytes);
    }
}
