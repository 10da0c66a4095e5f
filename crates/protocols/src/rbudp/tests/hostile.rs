//! Records and datagrams that no peer sends, and those that come at a bad time.

use proptest::prelude::*;

use super::*;
use crate::blast::tests::hostile::{any_path, assert_robust, assert_whole};
use crate::blast::tests::testing::content;
use farhaul_proto::stats::Stats;

const NOW: Instant = Instant::from_nanos(1_000_000_000);

/// A datagram between Farhaul ends, without its tag.
fn datagram(index: u32, payload: &[u8]) -> Vec<u8> {
    [&index.to_le_bytes()[..], payload].concat()
}

/// A receiver that expects a blast of this many bytes.
fn expecting(bytes: u64) -> receiver::Receiver {
    let mut receiver = receiver();
    receiver.handle_control(NOW, &bytes.to_be_bytes()).unwrap();
    receiver
}

fn answers(receiver: &mut receiver::Receiver, now: Instant) -> Vec<u8> {
    let mut out = Vec::new();
    receiver.poll_control(now, &mut out);
    out
}

/// A sender that awaits the bitmap of this many full packets.
fn awaiting(packets: usize) -> sender::Sender {
    let mut sender = sender(&at_rate(10_000));
    sender.write(NOW, &content(packets * PAYLOAD));
    sender.flush(NOW);
    sender.plan(NOW);
    control(&mut sender, NOW);
    assert_eq!(datagrams(&mut sender, NOW).len(), packets);
    control(&mut sender, NOW);
    sender
}

#[test]
fn a_bitmap_of_another_length_is_refused() {
    for packets in [1, 8, 15] {
        let mut bitmap = vec![0xFF; packets / 8 + 2];
        bitmap[0] = 1;
        let whole = awaiting(packets).handle_control(NOW, &bitmap);
        bitmap.push(0xFF);
        let long = awaiting(packets).handle_control(NOW, &bitmap);
        assert_eq!((whole, long), (Ok(()), Err(PeerMisbehaved::out_of_turn("a bitmap"))), "{packets} packets");
    }
    let mut short = awaiting(8);
    short.handle_control(NOW, &[1, 0xFF]).unwrap();
    assert!(!short.is_delivered(), "a byte is missing");
}

#[test]
fn a_bitmap_before_the_end_of_the_blast_is_refused() {
    let mut sender = sender(&at_rate(10));
    assert_eq!(sender.handle_control(NOW, &[1]), Err(PeerMisbehaved::out_of_turn("a bitmap")));
    sender.write(NOW, &[1; 100_000]);
    sender.flush(NOW);
    sender.plan(NOW);
    assert_eq!(
        sender.handle_control(NOW, &[1]),
        Err(PeerMisbehaved::out_of_turn("a bitmap")),
        "the length was not sent"
    );
    control(&mut sender, NOW);
    assert_eq!(sender.handle_control(NOW, &[1]), Err(PeerMisbehaved::out_of_turn("a bitmap")), "packets still leave");
}

#[test]
fn a_bitmap_that_contradicts_itself_is_refused() {
    for bitmap in [[1, 0xFE], [0, 0xFF], [2, 0xFF]] {
        assert!(awaiting(1).handle_control(NOW, &bitmap).is_err(), "{bitmap:?}");
    }
}

#[test]
fn a_length_beyond_every_limit_is_refused_and_takes_no_memory() {
    for length in [u64::MAX, i64::MAX as u64, 1 << 31, 10_000_000 + 65 * PAYLOAD as u64] {
        let mut receiver = receiver();
        assert!(receiver.handle_control(NOW, &length.to_be_bytes()).is_err(), "{length}");
        let mut stats = Stats::default();
        receiver.fill_stats(NOW, &mut stats);
        assert_eq!(stats.memory, 0);
    }
}

#[test]
fn an_end_that_is_none_comes_twice_or_has_another_round_is_refused() {
    assert!(expecting(100).handle_control(NOW, b"\0\0\0\0EEF\0").is_err());
    assert!(expecting(100).handle_control(NOW, b"\x01\0\0\0EEE\0").is_err());
    assert!(expecting(100).handle_control(NOW, b"\0\0\0\0EEE\0\0\0\0\0EEE\0").is_err());
}

#[test]
fn c3_bitmaps_do_not_pile_up_for_a_sender_that_reads_none() {
    let mut receiver = expecting(6_800 * PAYLOAD as u64);
    receiver.handle_datagram(NOW, &datagram(6_799, &[1; PAYLOAD]));
    receiver.handle_control(NOW, b"\0\0\0\0EEE\0").unwrap();
    receiver.handle_datagram(NOW, &datagram(6_798, &[1; PAYLOAD]));
    let piled = receiver.handle_control(NOW, b"\x01\0\0\0EEE\0");
    assert_eq!(piled, Err(PeerMisbehaved::out_of_turn("a record before its bitmap was read")));
    assert_eq!(answers(&mut receiver, NOW).len(), 852, "only the first");
}

#[test]
fn records_come_in_any_division() {
    let mut receiver = receiver();
    for byte in 100_u64.to_be_bytes() {
        receiver.handle_control(NOW, &[byte]).unwrap();
    }
    assert!(receiver.handle_datagram(NOW, &datagram(0, &[5; 100])));
    for &byte in b"\0\0\0\0EEE\0" {
        receiver.handle_control(NOW, &[byte]).unwrap();
    }
    assert_eq!(answers(&mut receiver, NOW), [1, 0xFF]);
}

#[test]
fn an_index_out_of_range_overwrites_nothing() {
    let mut receiver = expecting(2 * PAYLOAD as u64);
    assert!(receiver.handle_datagram(NOW, &datagram(0, &[1; PAYLOAD])));
    for index in [2, 3, 0x0100_0000, u32::MAX, 1 << 30] {
        assert!(!receiver.handle_datagram(NOW, &datagram(index, &[9; PAYLOAD])), "{index}");
    }
    let mut read = vec![0; 2 * PAYLOAD];
    assert_eq!((receiver.read(&mut read), &read[..PAYLOAD]), (PAYLOAD, &[1; PAYLOAD][..]));
}

#[test]
fn a_payload_of_another_length_is_refused() {
    let mut receiver = expecting(PAYLOAD as u64 + 10);
    for (index, length) in [(0, PAYLOAD - 1), (0, PAYLOAD + 1), (0, 0), (1, 9), (1, 11), (1, PAYLOAD)] {
        assert!(!receiver.handle_datagram(NOW, &datagram(index, &vec![1; length])), "{index}, {length} bytes");
    }
    assert!(receiver.handle_datagram(NOW, &datagram(1, &[1; 10])));
}

#[test]
fn a_packet_may_overtake_the_length_of_its_blast() {
    let mut receiver = receiver();
    assert!(receiver.handle_datagram(NOW, &datagram(0, &[1; PAYLOAD])));
    receiver.handle_control(NOW, &(PAYLOAD as u64).to_be_bytes()).unwrap();
    receiver.handle_control(NOW, b"\0\0\0\0EEE\0").unwrap();
    assert_eq!(answers(&mut receiver, NOW), [1, 0xFF]);
}

#[test]
fn a_full_packet_where_a_short_one_ends_the_blast_is_refused() {
    let mut receiver = receiver();
    receiver.handle_datagram(NOW, &datagram(0, &[1; PAYLOAD]));
    assert!(receiver.handle_control(NOW, &100_u64.to_be_bytes()).is_err());
}

#[test]
fn a_bitmap_waits_for_packets_that_the_end_has_overtaken() {
    let mut receiver = expecting(3 * PAYLOAD as u64);
    receiver.handle_datagram(NOW, &datagram(0, &[1; PAYLOAD]));
    receiver.handle_control(NOW, b"\0\0\0\0EEE\0").unwrap();
    let pause = Duration::from_millis(5);
    assert_eq!((answers(&mut receiver, NOW), receiver.deadline()), (vec![], Some(NOW + pause)));
    let later = NOW + Duration::from_millis(4);
    receiver.handle_datagram(later, &datagram(1, &[1; PAYLOAD]));
    receiver.end_batch(later);
    assert_eq!((answers(&mut receiver, later), receiver.deadline()), (vec![], Some(later + pause)));
    receiver.handle_timeout(later + pause);
    assert_eq!(answers(&mut receiver, later + pause), [0, 0b1111_1011]);
    assert_eq!(receiver.deadline(), None);
}

#[test]
fn the_last_packet_of_a_round_ends_the_wait() {
    let mut receiver = expecting(3 * PAYLOAD as u64);
    receiver.handle_control(NOW, b"\0\0\0\0EEE\0").unwrap();
    receiver.handle_datagram(NOW, &datagram(2, &[1; PAYLOAD]));
    receiver.end_batch(NOW);
    assert_eq!(answers(&mut receiver, NOW), [0, 0b1111_1100]);
    receiver.handle_control(NOW, b"\x01\0\0\0EEE\0").unwrap();
    assert_eq!(answers(&mut receiver, NOW), []);
    receiver.handle_datagram(NOW, &datagram(1, &[1; PAYLOAD]));
    assert_eq!(answers(&mut receiver, NOW), [0, 0b1111_1110], "packet 1 was the last of the second round");
}

#[test]
fn a_bitmap_waits_for_a_reader_that_makes_room() {
    // Room for 50 packets and 64 more.
    let config = buffers(50 * PAYLOAD as u64);
    let mut receiver = Rbudp::receiver(&Options::default(), &[0, 0], setup(&config)).unwrap();
    let mut all = Vec::new();
    for blast in 0..2_u32 {
        let first = blast * 60;
        receiver.handle_control(NOW, &(60 * PAYLOAD as u64).to_be_bytes()).unwrap();
        for index in first..first + 60 {
            assert!(receiver.handle_datagram(NOW, &datagram(index, &[1; PAYLOAD])));
        }
        receiver.handle_control(NOW, b"\0\0\0\0EEE\0").unwrap();
        all.extend(answers(&mut receiver, NOW + Duration::from_secs(9)));
    }
    assert_eq!((all, receiver.deadline()), ([&[1][..], &[0xFF; 8]].concat(), None), "only the first blast");
    let mut read = vec![0; 200 * PAYLOAD];
    assert_eq!(receiver.read(&mut read), 114 * PAYLOAD);
    let second = answers(&mut receiver, NOW + Duration::from_secs(9));
    assert_eq!(second, [0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x3F, 0xF0], "54 packets of the second had room");
}

fn any_options() -> impl Strategy<Value = Options> {
    let rate = prop_oneof![Just(RateChoice::Auto), (1u64..500).prop_map(|rate| at_rate(rate).rate)];
    let blast = prop_oneof![Just(BlastSize::Payload), Just(BlastSize::RoundTrip)];
    (rate, blast).prop_map(|(rate, blast)| Options { rate, blast, ..Options::default() })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn any_path_delivers_the_bytes(options in any_options(), path in any_path(), bytes in 0usize..200_000, seed: u64) {
        assert_whole::<Rbudp>(&options, path, bytes, seed);
    }
}

proptest! {
    #[test]
    fn no_peer_makes_an_engine_panic_or_grow(options in any_options(), seed: u64) {
        assert_robust::<Rbudp>(&options, seed, 3);
    }
}
