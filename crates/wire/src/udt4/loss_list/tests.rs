//! The loss list: invalid lists, full packets, and equal sets on both sides.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

fn body(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

fn range(first: u32, last: u32) -> SeqRange {
    SeqRange::new(SeqNo::new(first), SeqNo::new(last))
}

fn encoded(ranges: &[SeqRange], max_words: usize) -> (usize, Vec<u8>) {
    let mut out = Vec::new();
    let taken = encode_losses(ranges.iter().copied(), max_words, &mut out);
    (taken, out)
}

#[test]
fn two_adjacent_losses_are_a_range_too() {
    let (_, bytes) = encoded(&[range(3, 3), range(6, 7), range(9, 20)], 10);
    assert_eq!(bytes, body(&[3, 0x8000_0006, 7, 0x8000_0009, 20]));
}

#[test]
fn a_range_may_cross_the_wrap() {
    let bytes = body(&[0xFFFF_FFFE, 2]);
    let losses: Vec<SeqRange> = LossList::from_body(&bytes).unwrap().iter().collect();
    assert_eq!(losses, [range(0x7FFF_FFFE, 2)]);
    assert_eq!(losses[0].len(), 5);
}

#[test]
fn encoding_stops_where_the_packet_is_full() {
    let losses = [range(1, 1), range(5, 9), range(20, 21), range(30, 30)];
    assert_eq!(encoded(&losses, 4), (2, body(&[1, 0x8000_0005, 9])));
    assert_eq!(encoded(&losses, 5), (3, body(&[1, 0x8000_0005, 9, 0x8000_0014, 21])));
    assert_eq!(encoded(&losses, 0), (0, Vec::new()));
}

#[test]
fn reversed_ranges_are_taken_and_write_nothing() {
    assert_eq!(encoded(&[range(9, 3), range(4, 4)], 1), (2, body(&[4])));
}

/// Attacks B4 and B5: every kind of invalid list.
#[test]
fn malformed_lists_are_refused_as_a_whole() {
    let length = |length| DecodeError::BodyLength { packet: "NAK", length, legal: "a multiple of 4, and not 0" };
    let backwards = DecodeError::ReversedRange { packet: "NAK", first: SeqNo::new(9), last: SeqNo::new(8) };
    for (bytes, error) in [
        (vec![], length(0)),
        (vec![0; 7], length(7)),
        (body(&[1, 0xFFFF_FFFF]), DecodeError::OpenRange { word: 1 }),
        (body(&[1, 0x8000_0002, 0x8000_0003, 4]), DecodeError::RangeEndMarked { word: 2 }),
        (body(&[1, 0x8000_0009, 8]), backwards),
    ] {
        assert_eq!(LossList::from_body(&bytes), Err(error));
    }
}

/// The maximal runs of a set of offsets, as ranges from `base`.
fn runs(base: SeqNo, offsets: &BTreeSet<u32>) -> Vec<SeqRange> {
    let mut runs: Vec<SeqRange> = Vec::new();
    for &offset in offsets {
        let seq = base.plus(offset);
        match runs.last_mut() {
            Some(run) if run.last.next() == seq => run.last = seq,
            _ => runs.push(SeqRange::new(seq, seq)),
        }
    }
    runs
}

proptest! {
    #[test]
    fn the_list_names_the_same_set_on_both_sides(
        base in prop_oneof![any::<u32>(), 0x7FFF_FF00..=0x7FFF_FFFF_u32],
        offsets in proptest::collection::btree_set(0..300_u32, 1..150),
    ) {
        let base = SeqNo::new(base);
        let (_, bytes) = encoded(&runs(base, &offsets), usize::MAX);
        let list = LossList::from_body(&bytes).unwrap();
        let named: BTreeSet<u32> = list
            .iter()
            .flat_map(|range| (0..range.len()).map(move |step| range.first.plus(step)))
            .map(|seq| seq.distance_from(base).unsigned_abs())
            .collect();
        prop_assert_eq!(named, offsets);
        prop_assert!(bytes.len() <= list.iter().count() * 8);
    }

    #[test]
    fn a_full_packet_loses_nothing_that_it_took(
        offsets in proptest::collection::btree_set(0..300_u32, 1..150),
        max_words in 1..40_usize,
    ) {
        let losses = runs(SeqNo::MAX.minus(150), &offsets);
        let (taken, bytes) = encoded(&losses, max_words);
        prop_assert!(bytes.len() <= max_words * 4);
        let back: Vec<SeqRange> = match LossList::from_body(&bytes) {
            Ok(list) => list.iter().collect(),
            Err(_) => Vec::new(),
        };
        prop_assert_eq!(&back[..], &losses[..taken]);
    }

    #[test]
    fn an_accepted_list_has_only_forward_ranges_and_encodes_to_the_same_bytes(
        words in proptest::collection::vec(prop_oneof![any::<u32>(), 0..9_u32, 0x8000_0000..0x8000_0009_u32], 1..6),
    ) {
        let bytes = body(&words);
        if let Ok(list) = LossList::from_body(&bytes) {
            prop_assert!(list.iter().all(|range| !range.is_empty()));
            prop_assert_eq!(list.as_body(), &bytes[..]);
        }
    }
}
