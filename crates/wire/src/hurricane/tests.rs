use proptest::prelude::*;

use super::*;

fn range(first: u32, last: u32) -> SeqRange {
    SeqRange::new(SeqNo::new(first), SeqNo::new(last))
}

#[test]
fn the_format_is_fixed_by_these_bytes() {
    assert_eq!(split(&[1, 2, 3, 4, 9]), Ok((SeqNo::new(0x0102_0304), &[9][..])));
    let mut bytes = Vec::new();
    encode_sent(SeqNo::new(300), &mut bytes);
    assert_eq!(bytes, [1, 0, 0, 1, 44]);
    bytes.clear();
    assert_eq!(encode_missing([range(7, 7), range(0x7FFF_FFFF, 1)].into_iter(), &mut bytes), 2);
    let expected = [2, 0, 2, 0, 0, 0, 7, 0, 0, 0, 1, 0x7F, 0xFF, 0xFF, 0xFF, 0, 0, 0, 3];
    assert_eq!(bytes, expected);
}

#[test]
fn a_datagram_is_a_number_and_a_payload() {
    assert_eq!(split(&[0, 0, 1, 0, 9, 8]), Ok((SeqNo::new(256), &[9, 8][..])));
    assert_eq!(split(&[0, 0, 1, 0]), Err(DecodeError::TooShort { length: 4, header: 5 }));
    let top = DecodeError::TopBit { field: "number", value: 0x8000_0000 };
    assert_eq!(split(&[0x80, 0, 0, 0, 1]), Err(top));
}

#[test]
fn a_record_that_no_program_sends_is_refused_and_named() {
    assert_eq!(Record::decode(&[9]), Err(RecordError::UnknownType(9)));
    for (bytes, field) in [
        (&[1, 0x80, 0, 0, 0][..], "end of the datagrams sent"),
        (&[2, 0, 0], "number of groups of missing datagrams"),
        (&[2, 4, 1], "number of groups of missing datagrams"),
        (&[2, 0, 1, 0x80, 0, 0, 0, 0, 0, 0, 1], "first datagram of a group"),
        (&[2, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0], "number of datagrams of a group"),
        (&[2, 0, 1, 0, 0, 0, 0, 0x20, 0, 0, 1], "number of datagrams of a group"),
    ] {
        match Record::decode(bytes) {
            Err(RecordError::OutOfRange { field: named, .. }) => assert_eq!(named, field),
            other => panic!("{bytes:?}: {other:?}"),
        }
    }
}

#[test]
fn terms_have_eight_bytes_or_none() {
    let terms = Terms { trigger: 18, window: 2_500 };
    assert_eq!(terms.encode(), [0, 0, 0, 18, 0, 0, 9, 196]);
    assert_eq!(Terms::decode(&terms.encode()), Ok(terms));
    assert_eq!(Terms::decode(&[]), Ok(Terms::default()));
    for length in [1, 7, 9] {
        assert!(Terms::decode(&vec![0; length]).is_err(), "{length} bytes");
    }
}

#[test]
fn a_list_without_groups_is_not_written() {
    let mut bytes = vec![5];
    assert_eq!(encode_missing([range(3, 2)].into_iter(), &mut bytes), 0);
    assert_eq!(bytes, [5]);
}

#[test]
fn more_groups_than_a_list_holds_wait_for_the_next() {
    let mut bytes = Vec::new();
    let ranges = (0..2_000).map(|n| range(10 * n, 10 * n));
    assert_eq!(encode_missing(ranges, &mut bytes), MAX_GROUPS);
    assert_eq!(bytes.len(), 3 + MAX_GROUPS * GROUP_LEN);
}

proptest! {
    #[test]
    fn lists_are_read_back_however_they_are_divided(
        groups in proptest::collection::vec((0u32..=0x7FFF_FFFF, 1u32..=MAX_COUNT), 1..20),
        cut in 0usize..200,
    ) {
        let ranges: Vec<_> =
            groups.iter().map(|&(first, count)| SeqRange::new(SeqNo::new(first), SeqNo::new(first).plus(count - 1))).collect();
        let mut bytes = Vec::new();
        encode_missing(ranges.iter().copied(), &mut bytes);
        let cut = cut.min(bytes.len() - 1);
        prop_assert_eq!(Record::decode(&bytes[..cut]), Ok(None));
        let whole = bytes.len();
        bytes.push(1);
        match Record::decode(&bytes) {
            Ok(Some((Record::Missing(groups), length))) => {
                prop_assert_eq!(length, whole);
                prop_assert_eq!(groups.iter().collect::<Vec<_>>(), ranges);
            }
            other => prop_assert!(false, "{:?}", other),
        }
    }

    #[test]
    fn no_bytes_make_the_decoder_panic_or_read_too_far(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
        if let Ok(Some((_, length))) = Record::decode(&bytes) {
            prop_assert!(length <= bytes.len());
        }
    }
}
