use super::*;
use crate::DecodeError;

/// Bytes from hexadecimal digits, spaces ignored.
fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<char> = text.chars().filter(|c| !c.is_whitespace()).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(&pair.iter().collect::<String>(), 16).unwrap()).collect()
}

fn encoded(encode: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    encode(&mut out);
    out
}

#[test]
fn the_revision_is_four_bytes_and_another_one_is_named() {
    assert_eq!(REVISION.to_be_bytes(), *hex("20061025"));
    assert_eq!(check_revision(&hex("200610")), Ok(None));
    assert_eq!(check_revision(&hex("20061025 ff")), Ok(Some(4)));
    assert_eq!(check_revision(&hex("20050130")), Err(MessageError::Revision(0x2005_0130)));
}

#[test]
fn a_proof_is_the_md5_of_the_challenge_and_the_repeated_secret() {
    let mut challenge = [0; CHALLENGE_LEN];
    challenge.iter_mut().zip(0..).for_each(|(byte, value)| *byte = value);
    let kitten = Proof::of(&challenge, b"kitten");
    assert_eq!(kitten.0, *hex("2ef1fa32913c8c342201761df3e1873e"));
    let none = Proof::of(&challenge, b"");
    assert_eq!(none.0, *hex("b2d3f56bc197fd985d5965079b5e7148"));
    assert!(kitten.matches(&kitten) && !kitten.matches(&none));
}

#[test]
fn answers_are_single_bytes() {
    for (answer, byte) in [(Answer::Accepted, 0), (Answer::WrongProof, 1), (Answer::NoFile, 8)] {
        assert_eq!((answer.byte(), Answer::from_byte(byte)), (byte, Ok(answer)));
    }
    assert_eq!(Answer::from_byte(2), Err(MessageError::Answer(2)));
}

#[test]
fn a_name_ends_with_a_line_feed_or_a_zero() {
    assert_eq!(encoded(|out| encode_name(b"vt100.dat", out)), b"vt100.dat\n");
    assert_eq!(read_name(b"vt100.dat\nrest"), Ok(Some((&b"vt100.dat"[..], 10))));
    assert_eq!(read_name(b"vt100.dat\0"), Ok(Some((&b"vt100.dat"[..], 10))));
    assert_eq!(read_name(b"vt100.d"), Ok(None));
    assert_eq!(read_name(&[b'a'; MAX_NAME]), Ok(None));
    let most = MessageError::TooLong { field: "the file name", most: MAX_NAME };
    assert_eq!(read_name(&[b'a'; MAX_NAME + 1]), Err(most));
}

const PARAMETERS: Parameters = Parameters {
    block_size: 1024,
    target_rate: 650_000_000,
    error_threshold: 7_500,
    slower: Ratio { numerator: 25, denominator: 24 },
    faster: Ratio { numerator: 5, denominator: 6 },
};
const PARAMETERS_HEX: &str = "00000400 26be3680 00001d4c 0019 0018 0005 0006";

#[test]
fn parameters_are_twenty_bytes() {
    let bytes = hex(PARAMETERS_HEX);
    assert_eq!(encoded(|out| PARAMETERS.encode(out)), bytes);
    assert_eq!(Parameters::decode(&bytes), Ok(Some(PARAMETERS)));
    assert_eq!(Parameters::decode(&bytes[..19]), Ok(None));
}

#[test]
fn parameters_that_no_server_can_obey_are_refused() {
    for (at, field) in [(0, "00000000"), (0, "0000ffde"), (4, "00000000"), (8, "000186a0"), (14, "0000"), (18, "0000")]
    {
        let mut bytes = hex(PARAMETERS_HEX);
        let field = hex(field);
        bytes[at..at + field.len()].copy_from_slice(&field);
        assert!(matches!(Parameters::decode(&bytes), Err(MessageError::OutOfRange { .. })), "{at}");
    }
}

#[test]
fn sizes_are_twenty_bytes_and_place_each_block() {
    let bytes = hex("0000000000000bb9 00000400 00000003 5f5e1000");
    let sizes = Sizes::new(3_001, 1_024, 0x5f5e_1000).unwrap();
    assert_eq!(encoded(|out| sizes.encode(out)), bytes);
    assert_eq!(Sizes::decode(&bytes), Ok(Some(sizes)));
    assert_eq!(Sizes::decode(&bytes[..19]), Ok(None));
    assert_eq!((sizes.place(1), sizes.place(3)), (Some((0, 1_024)), Some((2_048, 953))));
    assert_eq!((sizes.place(0), sizes.place(4)), (None, None));
    let full = Sizes::new(2_048, 1_024, 0).unwrap();
    assert_eq!((full.count, full.place(2)), (2, Some((1_024, 1_024))));
    assert_eq!(Sizes::new(0, 1_024, 0).unwrap().count, 0, "an empty file has no block");
}

#[test]
fn sizes_that_contradict_each_other_are_refused() {
    for bytes in [
        "0000000000000bb9 00000400 00000004 00000000",
        "0000000000000bb9 00000000 00000003 00000000",
        "0000000000000bb9 ffffffff 00000001 00000000",
        "ffffffffffffffff 00000400 ffffffff 00000000",
    ] {
        assert!(matches!(Sizes::decode(&hex(bytes)), Err(MessageError::OutOfRange { .. })), "{bytes}");
    }
    assert_eq!(Sizes::new(u64::MAX, 1, 0), None);
}

#[test]
fn requests_are_twelve_bytes_whose_padding_means_nothing() {
    for (request, golden, with_garbage) in [
        (Request::Retransmit(77), "0000 0000 0000004d 00000000", "0000 0000 0000004d 00000000"),
        (Request::Restart(9), "0001 0000 00000009 00000000", "0001 0000 00000009 00000000"),
        // The original sends memory in a stop.
        (Request::Stop, "0002 0000 00000000 00000000", "0002 7ffc 00000000 00000000"),
        (Request::ErrorRate(10_173), "0003 0000 00000000 000027bd", "0003 0000 00000000 000027bd"),
        (Request::RetransmitRange { first: 3, last: 5 }, "0004 0000 00000003 00000005", "0004 ffff 00000003 00000005"),
    ] {
        assert_eq!(request.bytes(), *hex(golden));
        for bytes in [golden, with_garbage] {
            assert_eq!(Request::decode(&hex(bytes).try_into().unwrap()), Ok(request));
        }
    }
    assert_eq!(Request::decode(&[9; 12]), Err(UnknownRequest(0x0909)));
}

#[test]
fn a_datagram_is_a_number_a_letter_and_a_block() {
    for (kind, golden) in [
        (Kind::Original, "00000001 004f 616263"),
        (Kind::Retransmission, "00000001 0052 616263"),
        (Kind::Last, "00000001 0058 616263"),
    ] {
        let header = Header { block: 1, kind };
        let bytes = hex(golden);
        assert_eq!(header.bytes(), bytes[..HEADER_LEN]);
        assert_eq!(Header::split(&bytes), Ok((header, &b"abc"[..])));
    }
    assert_eq!(Header::split(&[0; 5]), Err(DecodeError::TooShort { length: 5, header: HEADER_LEN }));
    assert!(matches!(Header::split(&hex("00000001 0051")), Err(DecodeError::OutOfRange { value: 0x51, .. })));
}

#[test]
fn the_list_of_files_is_text_with_zeros() {
    let golden = b"2\0vt100.dat\x001024\0b\x000\0";
    let bytes = encoded(|out| {
        encode_count(2, out);
        ListingEntry { name: b"vt100.dat", size: 1_024 }.encode(out);
        ListingEntry { name: b"b", size: 0 }.encode(out);
    });
    assert_eq!(bytes, golden);
    assert_eq!(read_count(golden), Ok(Some((2, 2))));
    let entry = ListingEntry { name: b"vt100.dat", size: 1_024 };
    assert_eq!(ListingEntry::decode(&golden[2..]), Ok(Some((entry, 15))));
    assert_eq!(ListingEntry::decode(&golden[2..16]), Ok(None));
}

#[test]
fn the_list_of_names_begins_with_two_padded_numbers() {
    let golden = b"12\0\0\0\0\0\0\0\x002\0\0\0\0\0\0\0\0\0";
    let totals = Totals { bytes: 12, names: 2 };
    assert_eq!(encoded(|out| totals.encode(out)), golden);
    assert_eq!(Totals::decode(golden), Ok(Some(totals)));
    assert_eq!(Totals::decode(&golden[..19]), Ok(None));
}

#[test]
fn lists_beyond_every_limit_are_refused_before_they_are_read() {
    assert!(matches!(read_count(b"65537\0"), Err(MessageError::OutOfRange { value: 65_537, .. })));
    assert!(matches!(read_count(b"999999999999999999999"), Err(MessageError::TooLong { .. })));
    assert!(matches!(read_count(b"99999999999999999999\0"), Err(MessageError::NoNumber(_))));
    for text in [&b"\0"[..], b"+2\0", b"-2\0", b"2 \0"] {
        assert!(matches!(read_count(text), Err(MessageError::NoNumber(_))), "{text:?}");
    }
    assert!(matches!(ListingEntry::decode(&[b'a'; MAX_NAME + 1]), Err(MessageError::TooLong { .. })));
    assert!(matches!(Totals::decode(b"9999999999\x31\0\0\0\0\0\0\0\0\0"), Err(MessageError::OutOfRange { .. })));
    assert!(matches!(Totals::decode(b"1\0\0\0\0\0\0\0\0\x0099999\0\0\0\0\0"), Err(MessageError::OutOfRange { .. })));
}
