//! Scripted senders.

use super::*;
use crate::sabul::{SabulError, StreamEnd};
use farhaul_proto::channel::ChannelEnd;

/// The words of a receiver's records.
fn as_words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks(4).map(|word| u32::from_be_bytes(word.try_into().expect("whole words"))).collect()
}

/// The records of one type, as attribute and losses.
fn records(bytes: &[u8], kind: u32) -> Vec<Vec<u32>> {
    let mut words = as_words(bytes).into_iter();
    let mut found = Vec::new();
    while let Some(own) = words.next() {
        let attribute = words.next().expect("an attribute");
        let losses = words.by_ref().take(if own == 2 { attribute as usize } else { 0 });
        let record: Vec<u32> = std::iter::once(attribute).chain(losses).collect();
        if own == kind {
            found.push(record);
        }
    }
    found
}

fn read(receiver: &mut Receiver) -> Vec<u8> {
    let mut out = vec![0; 100_000];
    let length = receiver.read(&mut out);
    out.truncate(length);
    out
}

#[test]
fn golden_bytes_of_the_options() {
    let mut receiver = new_receiver();
    let block = heard(&mut receiver, 0);
    assert_eq!(as_words(&block), [7_000, 7_000, 1_472, 1_468, 366, 1, 40_960_000, 40_960_000, 25_600, 0]);
    assert_eq!(heard(&mut receiver, 1), [0; 0], "they leave once");
}

#[test]
fn an_echo_that_differs_ends_the_session() {
    let mut receiver = new_receiver();
    let mut block = heard(&mut receiver, 0);
    block[20] ^= 1;
    receiver.handle_channel(at(9), &block[..20]);
    assert_eq!(receiver.fault, None);
    receiver.handle_channel(at(9), &block[20..]);
    assert_eq!(receiver.fault, Some(SabulError::EchoDiffers));
}

/// A sender with words of 64 bits reads 80 bytes before it answers.
#[test]
fn a_64_bit_sender_is_named_when_no_echo_comes() {
    let mut receiver = new_receiver();
    heard(&mut receiver, 0);
    assert_eq!(receiver.deadline(), Some(at(5_000)));
    receiver.handle_timeout(at(5_000));
    let error = receiver.fault.expect("it is over");
    assert!(matches!(error, SabulError::NoEcho(_)) && error.to_string().contains("64-bit"), "{error}");
}

#[test]
fn data_before_the_echo_counts() {
    let mut receiver = new_receiver();
    let block = heard(&mut receiver, 0);
    arrive(&mut receiver, 9, 0, b"early");
    receiver.handle_channel(at(10), &block);
    arrive(&mut receiver, 11, 1, b" and late");
    assert_eq!(read(&mut receiver), b"early and late");
}

#[test]
fn short_packets_in_mid_stream_are_placed_by_running_length() {
    let mut receiver = open_receiver();
    for (number, payload) in [(0, &b"one "[..]), (2, &[b'x'; 1_468]), (1, b"two "), (3, b"end")] {
        arrive(&mut receiver, 40, number, payload);
    }
    assert_eq!(read(&mut receiver), [b"one two ", &[b'x'; 1_468][..], b"end"].concat());
}

#[test]
fn an_acknowledgement_leaves_after_100_ms_or_250_packets_and_only_if_it_moved() {
    let mut receiver = open_receiver();
    arrive(&mut receiver, 40, 0, b"a");
    assert_eq!(records(&heard(&mut receiver, 139), 1), [] as [Vec<u32>; 0]);
    assert_eq!(records(&heard(&mut receiver, 140), 1), [[1]]);
    assert_eq!(records(&heard(&mut receiver, 400), 1), [] as [Vec<u32>; 0]);
    (1..251).for_each(|number| arrive(&mut receiver, 401, number, b"a"));
    assert_eq!(records(&heard(&mut receiver, 401), 1), [[251]]);
}

/// The echo took 30 ms, so R is 45 ms.
#[test]
fn a_gap_is_reported_at_once_and_again_after_one_and_a_half_echo_times() {
    let mut receiver = open_receiver();
    arrive(&mut receiver, 40, 0, b"a");
    arrive(&mut receiver, 41, 3, b"a");
    assert_eq!(records(&heard(&mut receiver, 41), 2), [[2, 1, 2]]);
    assert_eq!(records(&heard(&mut receiver, 61), 2), [] as [Vec<u32>; 0]);
    arrive(&mut receiver, 70, 1, b"a");
    assert_eq!(records(&heard(&mut receiver, 85), 2), [] as [Vec<u32>; 0]);
    assert_eq!(records(&heard(&mut receiver, 86), 2), [[1, 2]]);
    arrive(&mut receiver, 90, 2, b"a");
    assert_eq!(records(&heard(&mut receiver, 500), 2), [] as [Vec<u32>; 0]);
}

#[test]
fn a_gap_of_a_thousand_is_reported_in_366_every_20_ms() {
    let mut receiver = open_receiver();
    arrive(&mut receiver, 40, 1_000, b"a");
    let mut reported = Vec::new();
    for millis in 40..=80 {
        for report in records(&heard(&mut receiver, millis), 2) {
            reported.push((millis, report[0]));
            assert_eq!(report.len(), 1 + report[0] as usize);
        }
    }
    assert_eq!(reported, [(40, 366), (60, 366), (80, 268)]);
}

#[test]
fn a_syn_counts_the_arrivals_of_10_ms() {
    let mut receiver = open_receiver();
    for number in [0, 1, 1, 5] {
        arrive(&mut receiver, 40, number, b"a");
    }
    assert_eq!(records(&heard(&mut receiver, 50), 4), [[4]]);
    assert_eq!(records(&heard(&mut receiver, 60), 4), [[0]]);
}

#[test]
fn a_packet_beyond_the_window_asks_for_an_acknowledgement_and_is_dropped() {
    let mut receiver = open_receiver();
    arrive(&mut receiver, 40, 0, b"a");
    arrive(&mut receiver, 41, 25_600, b"a");
    assert_eq!(as_words(&heard(&mut receiver, 41)), [1, 1], "no gap is reported");
    arrive(&mut receiver, 42, 25_600, b"a");
    assert_eq!(records(&heard(&mut receiver, 42), 2)[0][0], 366, "the acknowledgement moved the window");
    assert_eq!(receiver.stats(at(42)).totals.packets_invalid, 1);
}

#[test]
fn datagrams_that_no_sender_sends_change_nothing() {
    let mut receiver = open_receiver();
    for datagram in [&[][..], &[0; 4], &[0x05, 0xF5, 0xE1, 0x00, 1], &[0; 1_473]] {
        arrive_from(&mut receiver, 40, PEER_PORT, datagram);
        receiver.end_batch(at(40));
    }
    assert_eq!((receiver.available(), receiver.stats(at(40)).totals.packets_invalid), (0, 4));
}

/// Attack C2: another host, and another program on the sender's host.
#[test]
fn data_of_strangers_is_not_taken() {
    let mut receiver = open_receiver();
    let other: SocketAddr = "192.0.2.8:7000".parse().expect("an address");
    assert_eq!(arrive_from(&mut receiver, 40, other, b"\0\0\0\0evil"), DatagramOutcome::Foreign);
    arrive(&mut receiver, 41, 0, b"good");
    let from_9 = arrive_from(&mut receiver, 42, SocketAddr::new(PEER, 9), b"\0\0\0\x01evil");
    assert_eq!(from_9, DatagramOutcome::Foreign);
    let mapped: SocketAddr = "[::ffff:192.0.2.7]:7000".parse().expect("an address");
    assert_eq!(arrive_from(&mut receiver, 43, mapped, b"\0\0\0\x01 too"), DatagramOutcome::Taken);
    assert_eq!(read(&mut receiver), b"good too");
    assert_eq!(receiver.stats(at(43)).totals.packets_invalid, 0);
}

#[test]
fn the_end_of_the_channel_is_the_end_of_the_stream() {
    let mut receiver = open_receiver();
    arrive(&mut receiver, 40, 0, b"all");
    heard(&mut receiver, 140);
    receiver.channel_ended(at(150), ChannelEnd::Finished);
    assert_eq!((receiver.end(), receiver.fault, read(&mut receiver)), (Some(StreamEnd::Closed), None, b"all".to_vec()));
    assert!(receiver.is_over());
}

/// The sender waits for the receiver's end, and gives up a silent one.
#[test]
fn a_receiver_whose_host_still_writes_gives_a_sign_of_life_every_second() {
    let mut receiver = open_receiver();
    arrive(&mut receiver, 40, 0, b"all");
    heard(&mut receiver, 140);
    receiver.channel_ended(at(150), ChannelEnd::Finished);
    for millis in [1_150, 2_150, 3_150] {
        assert_eq!(receiver.deadline(), Some(at(millis)));
        assert_eq!(as_words(&heard(&mut receiver, millis - 1)), [0; 0]);
        assert_eq!(as_words(&heard(&mut receiver, millis)), [4, 0]);
    }
    assert_eq!(read(&mut receiver), b"all");
}

/// A closed socket with records that nobody has read resets the channel.
#[test]
fn a_channel_that_breaks_after_the_last_acknowledgement_is_the_end_but_a_doubtful_one() {
    let mut receiver = open_receiver();
    arrive(&mut receiver, 40, 0, b"all");
    heard(&mut receiver, 140);
    receiver.channel_ended(at(150), ChannelEnd::Failed);
    assert_eq!((receiver.end(), receiver.fault), (Some(StreamEnd::Broken), None));
}

#[test]
fn a_sender_that_just_closes_is_told_from_one_that_knew_of_the_end() {
    let mut receiver = open_receiver();
    arrive(&mut receiver, 40, 0, b"some");
    receiver.channel_ended(at(41), ChannelEnd::Finished);
    assert_eq!((receiver.end(), receiver.fault), (Some(StreamEnd::ClosedEarly), None));
    let mut receiver = open_receiver();
    arrive(&mut receiver, 40, 0, b"some");
    receiver.channel_ended(at(41), ChannelEnd::Failed);
    assert_eq!((receiver.end(), receiver.fault), (None, Some(SabulError::ChannelBroke)));
}

#[test]
fn a_sender_that_leaves_a_gap_has_failed() {
    let mut receiver = open_receiver();
    arrive(&mut receiver, 40, 0, b"some");
    arrive(&mut receiver, 40, 9, b"more");
    receiver.channel_ended(at(41), ChannelEnd::Finished);
    assert_eq!((receiver.end(), receiver.fault), (None, Some(SabulError::SenderLeft(8))));
    assert_eq!(read(&mut receiver), b"some");
}

#[test]
fn a_sender_that_speaks_after_the_echo_is_none() {
    let mut receiver = open_receiver();
    receiver.handle_channel(at(40), b"hello");
    assert_eq!(receiver.fault, Some(SabulError::SenderSpeaks(5)));
}

#[test]
fn a_channel_that_ends_in_the_opening_is_named() {
    let mut receiver = new_receiver();
    heard(&mut receiver, 0);
    receiver.channel_ended(at(5), ChannelEnd::Refused);
    assert_eq!(receiver.fault, Some(SabulError::Opening(ChannelEnd::Refused)));
}

/// Attacks A4, C3: packets far ahead.
#[test]
fn memory_follows_the_data_and_not_the_numbers() {
    let mut receiver = open_receiver();
    for number in (0..25_600).step_by(500) {
        arrive(&mut receiver, 40, number + 1, b"a");
        heard(&mut receiver, 40);
    }
    let memory = receiver.stats(at(40)).memory;
    assert!(memory < 3 << 20, "{memory} bytes for 52 packets");
}
