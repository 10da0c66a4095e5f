use proptest::prelude::*;

use super::*;

fn range(first: u32, last: u32) -> SeqRange {
    SeqRange::new(SeqNo::new(first), SeqNo::new(last))
}

fn segment(number: u32, first: u32, last: u32) -> Segment {
    Segment { number, range: range(first, last) }
}

#[test]
fn the_format_is_fixed_by_these_bytes() {
    let mut bytes = Vec::new();
    encode_done(SeqNo::new(300), 70_000, &mut bytes);
    encode_segment(segment(9, 0x7FFF_FFFF, 1), &mut bytes);
    encode_feedback(segment(9, 10, 20), [range(10, 10), range(12, 13), range(20, 20)].into_iter(), &mut bytes);
    encode_ack(range(0, 7), [range(1, 1)].into_iter(), &mut bytes);
    encode_completed(SeqNo::new(300), &mut bytes);
    let expected = [
        &[1, 0, 0, 1, 44, 0, 1, 17, 112][..],
        &[2, 0, 0, 0, 9, 0x7F, 0xFF, 0xFF, 0xFF, 0, 0, 0, 3],
        &[3, 0, 0, 0, 9, 0, 0, 0, 10, 0, 0, 0, 11, 0b1111_0010, 0b011],
        &[4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0b1111_1101],
        &[5, 0, 0, 1, 44],
    ]
    .concat();
    assert_eq!(bytes, expected);
}

#[test]
fn records_are_read_back_however_they_are_divided() {
    let mut bytes = Vec::new();
    encode_feedback(segment(1, 5, 30), [range(6, 9)].into_iter(), &mut bytes);
    let whole = bytes.len();
    encode_done(SeqNo::new(8), 5, &mut bytes);
    for part in 0..whole {
        assert_eq!(Record::decode(&bytes[..part]), Ok(None), "{part} bytes");
    }
    let Ok(Some((Record::Feedback(read, bitmap), length))) = Record::decode(&bytes) else { panic!("no feedback") };
    assert_eq!((read, length), (segment(1, 5, 30), whole));
    assert_eq!(bitmap.missing(read.range).collect::<Vec<_>>(), [range(6, 9)]);
    assert_eq!(Record::decode(&bytes[whole..]), Ok(Some((Record::Done { end: SeqNo::new(8), bytes: 5 }, 9))));
}

#[test]
fn a_datagram_is_a_number_and_a_payload() {
    assert_eq!(split(&[0, 0, 1, 0, 9, 8]), Ok((SeqNo::new(256), &[9, 8][..])));
    assert!(split(&[0, 0, 1, 0]).is_err());
    assert!(split(&[0x80, 0, 0, 0, 1]).is_err());
}

#[test]
fn a_record_that_no_program_sends_is_refused_and_named() {
    assert_eq!(Record::decode(&[0]), Err(RecordError::UnknownType(0)));
    for (bytes, field) in [
        (&[1, 0x80, 0, 0, 0, 0, 0, 0, 1][..], "end of an object"),
        (&[1, 0, 0, 0, 1, 0, 0, 0, 0], "bytes of an object"),
        (&[1, 0, 0, 0, 1, 0x40, 0, 0, 1], "bytes of an object"),
        (&[2, 0, 0, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 1], "first packet of a segment"),
        (&[3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], "packets of a segment"),
        (&[4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1], "packets of a segment"),
        (&[3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0b1000], "the bits behind the last packet of a bitmap"),
        (&[5, 0xFF, 0, 0, 0], "end of the completed objects"),
    ] {
        match Record::decode(bytes) {
            Err(RecordError::OutOfRange { field: named, .. }) => assert_eq!(named, field),
            other => panic!("{bytes:?}: {other:?}"),
        }
    }
}

#[test]
fn terms_have_six_bytes_or_none() {
    let terms = Terms { version: Version::Greedy, ordered: true, packets: 258 };
    assert_eq!(terms.encode(), [1, 1, 0, 0, 1, 2]);
    assert_eq!(Terms::decode(&terms.encode()), Ok(terms));
    assert_eq!(Terms::decode(&[]), Ok(Terms::default()));
    for wrong in [&[0][..], &[0; 5], &[0; 7], &[2, 0, 0, 0, 0, 0], &[0, 2, 0, 0, 0, 0]] {
        assert!(Terms::decode(wrong).is_err(), "{wrong:?}");
    }
}

proptest! {
    #[test]
    fn a_bitmap_holds_exactly_the_missing_packets(
        first in prop_oneof![Just(0x7FFF_FFF0u32), 0u32..0x7FFF_FFFF],
        arrived in proptest::collection::vec(any::<bool>(), 1..200),
    ) {
        let first = SeqNo::new(first);
        let whole = SeqRange::new(first, first.plus(u32::try_from(arrived.len()).unwrap() - 1));
        let single = |at: u32| SeqRange::new(first.plus(at), first.plus(at));
        let missing = || (0u32..).zip(&arrived).filter(|(_, arrived)| !**arrived).map(|(at, _)| single(at));
        let mut bytes = Vec::new();
        encode_ack(whole, missing(), &mut bytes);
        let Ok(Some((Record::Ack(segment, bitmap), length))) = Record::decode(&bytes) else { panic!("no record") };
        prop_assert_eq!((segment.range, length), (whole, bytes.len()));
        let read: Vec<SeqRange> = bitmap.missing(whole)
            .flat_map(|range| (0..range.len()).map(move |at| SeqRange::new(range.first.plus(at), range.first.plus(at))))
            .collect();
        prop_assert_eq!(read, missing().collect::<Vec<_>>());
        // Ranges instead of single packets make the same bitmap.
        let mut again = Vec::new();
        encode_ack(whole, bitmap.missing(whole), &mut again);
        prop_assert_eq!(again, bytes);
    }

    #[test]
    fn no_bytes_make_the_decoder_panic_or_read_too_far(
        kind in 0u8..7,
        bytes in proptest::collection::vec(any::<u8>(), 0..60),
    ) {
        let bytes = [&[kind][..], &bytes].concat();
        if let Ok(Some((record, length))) = Record::decode(&bytes) {
            prop_assert!(length <= bytes.len());
            if let Record::Feedback(segment, bitmap) | Record::Ack(segment, bitmap) = record {
                let missing: u32 = bitmap.missing(segment.range).map(|range| range.len()).sum();
                prop_assert!(missing <= segment.range.len());
            }
        }
    }
}
