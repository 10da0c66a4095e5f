//! Golden bytes by the table of the formats, refusals, and properties of all packets.

use proptest::prelude::*;

use super::*;

fn seq(value: u32) -> DecimalSeq {
    DecimalSeq::new(value).expect("a valid number")
}

fn err(losses: &[u32], continues: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    assert_eq!(
        encode_losses(losses.iter().map(|&loss| seq(loss)), continues, &mut bytes),
        losses.len().min(MAX_LOSSES)
    );
    bytes
}

/// The words of a block, as 40 bytes.
fn block(words: [u32; 10]) -> [u8; OPTIONS_LEN] {
    let mut block = [0; OPTIONS_LEN];
    for (to, word) in block.chunks_mut(4).zip(words) {
        to.copy_from_slice(&word.to_be_bytes());
    }
    block
}

#[test]
fn golden_bytes_of_every_record() {
    let losses = [0, 0, 0, 5, 0, 0, 0, 6, 0x05, 0xF5, 0xE0, 0xFF];
    let golden: [(&[u8], &[u8]); 4] = [
        (&[0, 0, 0, 1, 0, 0, 0, 250], &[]),
        (&[0, 0, 0, 2, 0, 0, 0, 3], &losses),
        (&[0, 0, 0, 3, 0, 0, 0, 0], &[]),
        (&[0, 0, 0, 4, 0, 0, 0x03, 0x40], &[]),
    ];
    for (head, losses) in golden {
        let bytes = [head, losses].concat();
        let (record, length) = Record::decode(&bytes).expect("valid").expect("whole");
        match (head[3], record) {
            (1, Record::Ack(ack)) => assert_eq!(ack, seq(250)),
            (2, Record::Err(list)) => {
                assert_eq!(list.iter().collect::<Vec<_>>(), [seq(5), seq(6), DecimalSeq::MAX]);
                assert_eq!((list.count(), list.first()), (3, seq(5)));
            }
            (3, Record::Exp(0)) => {}
            (4, Record::Syn(packets)) => assert_eq!(packets, 832),
            other => panic!("{other:?}"),
        }
        let mut again = Vec::new();
        record.encode(&mut again);
        assert_eq!((length, again), (bytes.len(), bytes));
    }
    assert_eq!(err(&[5, 6, 99_999_999], false), [&[0, 0, 0, 2, 0, 0, 0, 3], &losses[..]].concat());
    assert_eq!(err(&[7], true), [0, 0, 0, 5, 0, 0, 0, 1, 0, 0, 0, 7]);
}

#[test]
fn golden_bytes_of_data() {
    let datagram = [0x05, 0xF5, 0xE0, 0xFF, b'a', b'b', b'c'];
    assert_eq!(split_data(&datagram), Ok((DecimalSeq::MAX, &b"abc"[..])));
    assert_eq!(encode_data_header(DecimalSeq::MAX), datagram[..4]);
    for length in 0..=HEADER_LEN {
        assert!(split_data(&datagram[..length]).is_err(), "{length} bytes");
    }
    assert!(split_data(&[0x05, 0xF5, 0xE1, 0x00, b'a']).is_err(), "10^8 is no number");
}

#[test]
fn golden_bytes_of_options() {
    let options = Options::new(7_000);
    let expected = block([7_000, 7_000, 1_472, 1_468, 366, 1, 40_960_000, 40_960_000, 25_600, 0]);
    assert_eq!(options.encode(), expected);
    assert_eq!(expected[..4], [0, 0, 0x1B, 0x58]);
    assert_eq!(expected[32..36], [0, 0, 0x64, 0]);
    assert_eq!(Options::decode(&expected), Ok(options));
}

#[test]
fn garbage_in_the_unset_words_means_nothing() {
    let garbage = 0xDEAD_BEEF;
    let words = [7_001, garbage, 0, garbage, 0x0804_9A30, garbage, 1, 0xFFFF_FFFF, 25_600, garbage];
    assert_eq!(Options::decode(&block(words)), Ok(Options { udp_port: 7_001, window: 25_600 }));
}

#[test]
fn ports_and_windows_out_of_range_are_refused() {
    let judge = |port, window| Options::decode(&block([port, 1, 1, 1, 1, 1, 1, 1, window, 1]));
    assert_eq!(judge(0, 25_600), Err(OptionsError::Port(0)));
    assert_eq!(judge(65_536, 25_600), Err(OptionsError::Port(65_536)));
    assert_eq!(judge(7_000, 0), Err(OptionsError::Window(0)));
    assert_eq!(judge(7_000, u32::MAX), Err(OptionsError::Window(u32::MAX)));
    assert_eq!(judge(65_535, 49_999_999), Ok(Options { udp_port: 65_535, window: 49_999_999 }));
}

/// The first 40 bytes of a block of ten 64-bit words, of which the ninth is the window.
#[test]
fn words_of_64_bits_are_named() {
    let little = block([7_000, 0, 0xBEEF, 0, 0, 0, 0xBEEF, 0, 0, 0]);
    assert_eq!(Options::decode(&little), Err(OptionsError::WordsOf64Bits), "a window of zero shows it");
    let big = block([0, 7_000, 0, 1, 0, 1, 0, 1, 0, 1]);
    assert_eq!(Options::decode(&big), Err(OptionsError::WordsOf64Bits));
    let plausible = block([7_000, 0, 0xBEEF, 0, 0, 0, 0xBEEF, 0, 77, 0]);
    assert!(Options::decode(&plausible).is_ok() && Options::may_have_64_bits(&plausible));
    assert!(!Options::may_have_64_bits(&Options::new(7_000).encode()));
}

#[test]
fn hostile_counts_are_refused_before_their_losses_arrive() {
    for kind in [2u8, 5] {
        for count in [0, 367, 1 << 16, u32::MAX] {
            let bytes = [[0, 0, 0, kind], count.to_be_bytes()].concat();
            assert_eq!(Record::decode(&bytes), Err(RecordError::Count(count)));
        }
        let most = [[0, 0, 0, kind], 366u32.to_be_bytes()].concat();
        assert_eq!(Record::decode(&most), Ok(None), "366 losses are awaited");
    }
}

#[test]
fn a_record_holds_at_most_366_losses() {
    let losses: Vec<u32> = (0..1_000).collect();
    let bytes = err(&losses, false);
    assert_eq!(bytes.len(), MAX_RECORD);
    let (record, length) = Record::decode(&bytes).expect("valid").expect("whole");
    let Record::Err(list) = record else { panic!("{record:?}") };
    assert_eq!((list.count(), length), (366, 1_472));
}

#[test]
fn unknown_types_and_numbers_of_nine_digits_are_refused() {
    let judge =
        |words: &[u32]| Record::decode(&words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<_>>()).err();
    assert_eq!(judge(&[0, 0]), Some(RecordError::Kind(0)));
    assert_eq!(judge(&[6, 0]), Some(RecordError::Kind(6)));
    assert_eq!(judge(&[1, 100_000_000]), Some(RecordError::Number(100_000_000)));
    assert_eq!(judge(&[2, 2, 1, u32::MAX]), Some(RecordError::Number(u32::MAX)));
}

#[test]
fn no_losses_make_no_record() {
    let mut bytes = vec![1];
    assert_eq!(encode_losses(core::iter::empty(), false, &mut bytes), 0);
    assert_eq!(bytes, [1]);
}

proptest! {
    #[test]
    fn no_bytes_panic_and_decoded_records_encode_to_the_same_bytes(
        kind in 0u32..7,
        attribute in prop_oneof![0u32..10, any::<u32>()],
        rest in proptest::collection::vec(prop_oneof![Just(0u8), any::<u8>()], 0..100),
    ) {
        let mut bytes = [kind.to_be_bytes(), attribute.to_be_bytes()].concat();
        bytes.extend(rest);
        if let Ok(Some((record, length))) = Record::decode(&bytes) {
            let mut again = Vec::new();
            record.encode(&mut again);
            prop_assert_eq!(&again[..], &bytes[..length]);
        }
    }

    #[test]
    fn a_record_is_read_in_any_division(losses in proptest::collection::vec(0u32..100_000_000, 1..400), cut in 0usize..1_472) {
        let bytes = err(&losses, false);
        let cut = cut % bytes.len();
        prop_assert_eq!(Record::decode(&bytes[..cut]), Ok(None));
        let (record, length) = Record::decode(&bytes).expect("valid").expect("whole");
        prop_assert_eq!(length, bytes.len());
        let Record::Err(list) = record else { panic!("{record:?}") };
        let expected: Vec<_> = losses.iter().take(MAX_LOSSES).map(|&loss| seq(loss)).collect();
        prop_assert_eq!(list.iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn any_block_is_judged_and_a_valid_one_keeps_its_meaning(words in any::<[u32; 10]>(), port in 1u32..65_536, window in 1u32..50_000_000) {
        let _ = Options::decode(&block(words));
        let mut words = words;
        (words[0], words[8]) = (port, window);
        let options = Options::decode(&block(words)).expect("garbage elsewhere means nothing");
        prop_assert_eq!((u32::from(options.udp_port), options.window), (port, window));
        prop_assert_eq!(Options::decode(&options.encode()), Ok(options));
    }

    #[test]
    fn data_returns_what_was_sent(number in 0u32..100_000_000, payload in proptest::collection::vec(any::<u8>(), 1..100)) {
        let datagram = [&encode_data_header(seq(number))[..], &payload].concat();
        prop_assert_eq!(split_data(&datagram), Ok((seq(number), &payload[..])));
    }
}
