//! Bytes of the QUANTA programs, and properties of every decoder.

use proptest::prelude::*;

use super::*;

fn bitmap(packets: u32, missing: &[(u32, u32)]) -> Vec<u8> {
    let mut out = Vec::new();
    encode_bitmap(packets, missing.iter().map(|&(first, end)| first..end), &mut out);
    out
}

/// The missing packets of a bitmap that arrives in pieces.
fn missing(packets: u32, bytes: &[u8], piece: usize) -> Result<Vec<u32>, BitmapError> {
    let mut reader = BitmapReader::new(packets);
    let mut found = Vec::new();
    for piece in bytes.chunks(piece) {
        assert_eq!(reader.read(piece, |range| found.extend(range))?, piece.len());
    }
    assert!(reader.is_done());
    Ok(found)
}

#[test]
fn bitmaps_have_the_lengths_of_the_original_program() {
    for (packets, length) in [(138, 19), (686, 87), (1, 2), (8, 3), (16, 4), (0, 2)] {
        assert_eq!((bitmap_len(packets), bitmap(packets, &[]).len()), (length, length), "{packets} packets");
    }
}

#[test]
fn a_complete_bitmap_is_all_ones_after_the_flag() {
    assert_eq!(bitmap(1, &[]), [1, 0xFF]);
    assert_eq!(bitmap(8, &[]), [1, 0xFF, 0xFF], "one more byte of ones after a multiple of eight");
}

#[test]
fn bits_count_from_the_lowest_and_those_beyond_the_last_packet_are_ones() {
    assert_eq!(bitmap(12, &[(0, 1), (9, 12)]), [0, 0b1111_1110, 0b1111_0001]);
    assert_eq!(bitmap(138, &[(0, 138)])[1..], [[0; 17].as_slice(), &[0b1111_1100]].concat());
    assert_eq!(missing(12, &[0, 0b1111_1110, 0b0000_0001], 1), Ok(vec![0, 9, 10, 11]), "bits without a packet");
}

#[test]
fn a_flag_that_contradicts_the_bits_is_refused() {
    assert_eq!(missing(8, &[1, 0xFE, 0xFF], 1), Err(BitmapError::Contradiction { missing: 1 }));
    assert_eq!(missing(8, &[0, 0xFF, 0xFF], 2), Err(BitmapError::Contradiction { missing: 0 }));
    assert_eq!(missing(8, &[2, 0xFF, 0xFF], 3), Err(BitmapError::Flag(2)));
}

#[test]
fn a_reader_leaves_what_follows_the_bitmap() {
    let mut reader = BitmapReader::new(1);
    assert_eq!(reader.read(&[1, 0xFF, 7, 7], |_| panic!("nothing is missing")), Ok(2));
    assert_eq!(reader.read(&[7], |_| panic!("nothing is missing")), Ok(0));
}

#[test]
fn the_end_of_a_blast_is_its_round_and_three_letters() {
    assert_eq!(EndOfBlast { round: 0 }.encode(), *b"\0\0\0\0EEE\0");
    assert_eq!(EndOfBlast { round: 258 }.encode(), *b"\x02\x01\0\0EEE\0");
    assert_eq!(EndOfBlast::decode(*b"\x01\0\0\0EEE\x7F", ByteOrder::Little), Ok(EndOfBlast { round: 1 }));
    assert_eq!(EndOfBlast::decode(*b"\0\0\0\x01EEE\0", ByteOrder::Big), Ok(EndOfBlast { round: 1 }));
    assert_eq!(EndOfBlast::decode(*b"\0\0\0\0EEF\0", ByteOrder::Little), Err(RecordError::NoEndMark(*b"EEF")));
}

#[test]
fn a_size_is_big_endian_and_not_negative() {
    assert_eq!(encode_length(200_000_000), [0, 0, 0, 0, 0x0B, 0xEB, 0xC2, 0]);
    assert_eq!(decode_length([0, 0, 0, 0, 0x0B, 0xEB, 0xC2, 0]), Ok(200_000_000));
    assert_eq!(decode_length([0xFF; 8]), Err(RecordError::Negative(-1)));
}

#[test]
fn a_datagram_is_its_index_in_little_endian_and_payload() {
    assert_eq!(encode_index(0x0102_0304), [4, 3, 2, 1]);
    assert_eq!(split_data(&[4, 3, 2, 1, 9]), Ok(([4, 3, 2, 1], &[9][..])));
    for length in 0..=4 {
        assert!(split_data(&[0; 4][..length]).is_err(), "{length} bytes");
    }
}

#[test]
fn an_index_out_of_range_shows_the_other_byte_order_for_good() {
    let mut order = ByteOrder::default();
    assert_eq!(order.index([0, 0, 0, 0], 1_000), Some(0));
    assert_eq!(order, ByteOrder::Little, "zero looks the same in both");
    assert_eq!(order.index([0, 0, 0, 5], 1_000), Some(5));
    assert_eq!((order, order.index([0, 0, 1, 0], 1_000)), (ByteOrder::Big, Some(256)));
}

#[test]
fn an_index_out_of_range_in_both_orders_is_none() {
    let mut order = ByteOrder::default();
    assert_eq!((order.index([1, 0, 0, 1], 1_000), order.index([0xFF; 4], u32::MAX)), (None, None));
    assert_eq!(order, ByteOrder::Little);
}

#[test]
fn a_blast_has_at_most_as_many_packets_as_an_index_counts() {
    assert_eq!(packets_of(0, 1_460), Some(0));
    assert_eq!(packets_of(1_461, 1_460), Some(2));
    assert_eq!(packets_of(u64::from(MAX_PACKETS), 1), Some(MAX_PACKETS));
    for (length, payload) in [(1 << 31, 1), (u64::MAX, 1_460), (10, 0)] {
        assert_eq!(packets_of(length, payload), None, "{length} bytes in packets of {payload}");
    }
}

#[test]
fn a_name_block_is_zeroed_behind_the_name() {
    let block = encode_name(b"data.bin").unwrap();
    assert_eq!((&block[..8], block[8..].iter().all(|&byte| byte == 0)), (&b"data.bin"[..], true));
    assert_eq!(encode_name(b"").unwrap(), [0; NAME_BLOCK_LEN], "the end of a list");
}

#[test]
fn garbage_behind_a_name_is_ignored() {
    let mut block = [0xAA; NAME_BLOCK_LEN];
    block[..9].copy_from_slice(b"data.bin\0");
    assert_eq!(decode_name(&block), Ok(&b"data.bin"[..]));
}

#[test]
fn a_name_that_does_not_fit_or_does_not_end_is_refused() {
    assert_eq!(encode_name(&[b'a'; 255]).map(|block| block[255]), Ok(0));
    assert_eq!(encode_name(&[b'a'; 256]), Err(NameError::TooLong(256)));
    assert_eq!(encode_name(b"a\0b"), Err(NameError::Nul));
    assert_eq!(decode_name(&[b'a'; 256]), Err(NameError::Unterminated));
}

proptest! {
    #[test]
    fn bitmaps_are_read_back_however_they_are_divided(
        received in proptest::collection::vec(proptest::bool::weighted(0.8), 0..300),
        piece in 1usize..50,
    ) {
        let packets = u32::try_from(received.len()).unwrap();
        let expected: Vec<u32> = (0..packets).filter(|&packet| !received[packet as usize]).collect();
        let ranges: Vec<_> = expected.iter().map(|&packet| (packet, packet + 1)).collect();
        prop_assert_eq!(missing(packets, &bitmap(packets, &ranges), piece), Ok(expected));
    }

    #[test]
    fn names_are_read_back(name in proptest::collection::vec(1u8.., 0..256)) {
        let block = encode_name(&name).unwrap();
        prop_assert_eq!(decode_name(&block).unwrap(), &name[..]);
    }

    #[test]
    fn records_are_read_back(round in any::<u32>(), length in 0..1u64 << 63) {
        let end = EndOfBlast { round };
        prop_assert_eq!(EndOfBlast::decode(end.encode(), ByteOrder::Little), Ok(end));
        prop_assert_eq!(decode_length(encode_length(length)), Ok(length));
    }
}
