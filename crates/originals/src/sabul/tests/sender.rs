//! Scripted receivers.

use farhaul_units::Rng;

use super::*;
use crate::sabul::SabulError;
use farhaul_proto::channel::ChannelEnd;
use farhaul_proto::error::{ControlFault, PeerMisbehaved};
use farhaul_protocols::sabul::Generation;

fn acked(sender: &Sender) -> u64 {
    sender.stats(at(0)).totals.bytes_acked
}

#[test]
fn garbage_in_the_unset_words_is_returned_byte_for_byte() {
    let mut sender = new_sender(&fast());
    let block = words(&GARBAGE);
    for byte in &block[..39] {
        sender.handle_channel(at(0), &[*byte]);
        assert_eq!((said(&mut sender, 0), sender.peer_port()), (vec![], None));
    }
    sender.handle_channel(at(0), &block[39..]);
    assert_eq!(said(&mut sender, 0), block);
    assert_eq!((sender.peer_port(), said(&mut sender, 0)), (Some(7_001), vec![]));
}

#[test]
fn golden_bytes_of_the_first_datagrams() {
    let mut sender = open_sender(&fast());
    sender.write(at(0), &[[1; 1_468].as_slice(), b"ab"].concat());
    sender.finish(at(0));
    let sent = datagrams(&mut sender, 0, 5);
    assert_eq!(sent, [[&[0, 0, 0, 0], [1; 1_468].as_slice()].concat(), vec![0, 0, 0, 1, b'a', b'b']]);
    sender.handle_channel(at(6), &words(&[1, 2]));
    assert!(sender.ends_sending() && !sender.is_over(), "the ACK of both is the end of this direction");
    sender.channel_ended(at(7), ChannelEnd::Finished);
    assert!(sender.is_over() && sender.fault.is_none(), "the receiver has written everything");
}

/// A sender whose receiver has acknowledged the whole stream at 10 ms.
fn all_acknowledged() -> Sender {
    let mut sender = open_sender(&fast());
    sender.write(at(0), b"all");
    sender.finish(at(0));
    datagrams(&mut sender, 0, 5);
    sender.handle_channel(at(10), &words(&[1, 1]));
    assert!(sender.ends_sending());
    sender
}

/// The original receiver acknowledges into a buffer of 40 MB, and a SYN record to a closed sender kills it.
#[test]
fn a_receiver_that_still_writes_is_waited_for_as_long_as_it_speaks() {
    let mut sender = all_acknowledged();
    for millis in (20..60_000).step_by(10) {
        sender.handle_channel(at(millis), &words(&[4, 0]));
        sender.handle_timeout(at(millis));
    }
    assert!(!sender.is_over(), "a minute passed");
    assert_eq!(sender.deadline(), Some(at(59_990 + 30_000)));
    sender.channel_ended(at(60_000), ChannelEnd::Finished);
    assert!(sender.is_over() && sender.fault.is_none() && sender.deadline().is_none());
}

#[test]
fn a_receiver_that_falls_silent_or_breaks_off_after_its_last_acknowledgement_may_have_a_short_file() {
    let mut silent = all_acknowledged();
    silent.handle_timeout(at(30_010));
    assert_eq!(silent.fault, Some(SabulError::ReceiverStays(Duration::from_secs(30))));
    let mut broken = all_acknowledged();
    broken.channel_ended(at(11), ChannelEnd::Failed);
    assert_eq!(broken.fault, Some(SabulError::ReceiverBroke));
    for error in [silent.fault, broken.fault] {
        let words = error.map(|error| error.to_string()).unwrap_or_default();
        assert!(words.contains("may not have written the end"), "{words}");
    }
}

/// The original receiver moves bytes when a short packet arrives late, and writes some of them wrongly. So a reader thread
/// that is a time slice late must not make one.
#[test]
fn a_source_that_is_less_than_100_ms_late_makes_no_short_packet() {
    let mut sender = open_sender(&fast());
    for (millis, bytes) in [(0, 700), (99, 700), (198, 67)] {
        sender.write(at(millis), &vec![7; bytes]);
        sender.flush(at(millis));
        assert_eq!(datagrams(&mut sender, millis, millis + 98).len(), 0, "at {millis} ms");
    }
    sender.write(at(297), &[7; 1_469]);
    let sent = datagrams(&mut sender, 297, 300);
    assert_eq!(sent.iter().map(Vec::len).collect::<Vec<_>>(), [1_472, 1_472]);
}

#[test]
fn after_100_ms_without_data_a_short_packet_leaves_and_nothing_follows_before_its_acknowledgement() {
    let mut sender = open_sender(&fast());
    sender.write(at(0), &[[1; 1_468].as_slice(), b"short"].concat());
    sender.flush(at(0));
    assert_eq!(numbers(&datagrams(&mut sender, 0, 99)), [0]);
    assert_eq!(datagrams(&mut sender, 100, 110), [b"\0\0\0\x01short"]);
    sender.write(at(110), &[2; 3_000]);
    sender.flush(at(110));
    assert_eq!(numbers(&datagrams(&mut sender, 110, 500)), [] as [u32; 0], "the short one is not acknowledged");
    sender.handle_channel(at(500), &words(&[1, 1, 2, 1, 1]));
    assert_eq!(datagrams(&mut sender, 500, 600), [b"\0\0\0\x01short"], "it may be repeated");
    sender.handle_channel(at(600), &words(&[1, 2]));
    let sent = datagrams(&mut sender, 600, 620);
    assert_eq!(sent.iter().map(Vec::len).collect::<Vec<_>>(), [1_472, 1_472, 68], "the source is idle since long");
    sender.write(at(620), b"end");
    sender.finish(at(620));
    assert_eq!(numbers(&datagrams(&mut sender, 620, 700)), [] as [u32; 0]);
    sender.handle_channel(at(700), &words(&[1, 5]));
    assert_eq!(datagrams(&mut sender, 700, 720), [b"\0\0\0\x05end"]);
    sender.handle_channel(at(730), &words(&[1, 6]));
    assert!(sender.ends_sending());
}

/// Whatever the source does, and whenever acknowledgements come.
#[test]
fn no_packet_follows_a_short_one_that_is_not_acknowledged() {
    let mut rng = Rng::new(7);
    let mut sender = open_sender(&fast());
    let (mut millis, mut sent, mut acknowledged, mut shorts) = (0, Vec::<usize>::new(), 0, 0);
    for step in 0..3_000 {
        let until = millis + rng.below(60);
        for datagram in datagrams(&mut sender, millis, until) {
            let number = numbers(std::slice::from_ref(&datagram))[0] as usize;
            let is_alone = (acknowledged..sent.len()).all(|before| before == number || sent[before] == 1_472);
            assert!(is_alone, "packet {number} follows a short one");
            if number == sent.len() {
                shorts += usize::from(datagram.len() < 1_472);
                sent.push(datagram.len());
            }
        }
        millis = until + 1;
        if rng.chance(0.5) {
            sender.write(at(millis), &vec![7; 1 + rng.below(4_000) as usize]);
        } else {
            sender.flush(at(millis));
        }
        if rng.chance(0.3) {
            acknowledged = sent.len();
            sender.handle_channel(at(millis), &words(&[1, acknowledged as u32]));
        }
        assert_eq!(sender.fault, None, "step {step}");
    }
    assert!(shorts > 20 && sent.len() > 1_000, "{shorts} short of {}", sent.len());
}

#[test]
fn a_report_of_more_than_366_losses_ends_the_session_before_they_arrive() {
    let mut sender = after_a_thousand();
    sender.handle_channel(at(15), &words(&[2, 367]));
    let fault = ControlFault::OutOfRange { field: "number of losses", value: 367, valid: "1 to 366" };
    assert_eq!(sender.fault, Some(SabulError::Misbehaved(PeerMisbehaved::ControlRecord(fault))));
}

#[test]
fn losses_out_of_range_are_ignored() {
    let mut sender = after_a_thousand();
    sender.handle_channel(at(15), &words(&[1, 500]));
    sender.handle_channel(at(15), &words(&[2, 5, 0, 499, 1_000, 50_000_000, 99_999_999]));
    assert_eq!(datagrams(&mut sender, 16, 60).len(), 0);
    assert_eq!((sender.fault, acked(&sender)), (None, 500 * 1_468));
    sender.handle_channel(at(60), &words(&[2, 3, 499, 500, 1_000]));
    assert_eq!(numbers(&datagrams(&mut sender, 61, 90)), [500, 999], "the one that is in flight, and its follower");
}

/// Attacks B2, B3.
#[test]
fn an_acknowledgement_of_packets_that_never_left_ends_the_session() {
    let mut sender = after_a_thousand();
    sender.handle_channel(at(15), &words(&[1, 1_000]));
    assert_eq!(sender.fault, None);
    sender.handle_channel(at(15), &words(&[1, 1_001]));
    assert!(matches!(sender.fault, Some(SabulError::Misbehaved(_))));
}

#[test]
fn an_exp_record_that_no_program_sends_changes_nothing() {
    let mut sender = after_a_thousand();
    sender.handle_channel(at(15), &words(&[3, 12_345, 1, 10]));
    assert_eq!((sender.fault, acked(&sender)), (None, 10 * 1_468), "the record behind it counts");
    assert_eq!(datagrams(&mut sender, 16, 60).len(), 0);
}

#[test]
fn a_syn_is_ignored_by_release_2_1_and_used_by_release_2_0() {
    let period_after = |generation, received| {
        let mut sender = open_sender(&Options { generation, ..fast() });
        sender.write(at(0), &vec![7; 146_800]);
        assert_eq!(datagrams(&mut sender, 0, 5).len(), 100);
        sender.handle_channel(at(5), &words(&[4, received]));
        sender.stats(at(5)).send_period.as_micros()
    };
    assert_eq!(period_after(Generation::March2003, 100), 10.0);
    assert_eq!(period_after(Generation::March2003, 0), 10.0);
    assert_eq!(period_after(Generation::May2002, 100), 5.0, "nothing was lost");
    assert_eq!(period_after(Generation::May2002, 0), 20.0, "all was lost");
}

#[test]
fn a_64_bit_receiver_is_named_incompatible() {
    let block = long_words(&[7_000, 1, 2, 3, 366, 5, 6, 7, 25_600, 0]);
    let judge = |pieces: &[&[u8]]| {
        let mut sender = new_sender(&fast());
        for piece in pieces {
            sender.handle_channel(at(0), piece);
            said(&mut sender, 0);
        }
        sender.fault
    };
    assert_eq!(judge(&[&block]), Some(SabulError::WordsOf64Bits), "80 bytes where 40 are the block");
    assert_eq!(judge(&[&block[..40]]), None);
    assert_eq!(judge(&[&block[..40], &block[40..]]), Some(SabulError::WordsOf64Bits), "the second half comes later");
    let big_endian: Vec<u8> = (0..10u64).flat_map(|word| (7_000 + word).to_be_bytes()).collect();
    assert_eq!(judge(&[&big_endian[..40]]), Some(SabulError::WordsOf64Bits));
}

#[test]
fn an_opening_without_options_ends_after_five_seconds() {
    let mut sender = new_sender(&fast());
    sender.handle_channel(at(0), &[0; 39]);
    assert_eq!(sender.deadline(), Some(at(5_000)));
    sender.handle_timeout(at(5_000));
    assert_eq!(sender.fault, Some(SabulError::NoOptions { bytes: 39, time: Duration::from_secs(5) }));
    assert!(sender.is_over() && sender.deadline().is_none());
}

#[test]
fn a_receiver_that_leaves_early_is_named_with_the_bytes_it_has_not_acknowledged() {
    let mut sender = after_a_thousand();
    sender.handle_channel(at(15), &words(&[1, 999]));
    sender.channel_ended(at(16), ChannelEnd::Finished);
    assert_eq!(sender.fault, Some(SabulError::ReceiverLeft(1_468)));
    assert_eq!(datagrams(&mut sender, 17, 2_000).len(), 0);
}

#[test]
fn udp_that_is_blocked_while_tcp_works_is_named_after_three_seconds() {
    let mut sender = open_sender(&fast());
    sender.write(at(0), &vec![7; 146_800]);
    for tick in 0..299 {
        datagrams(&mut sender, 10 * tick, 10 * tick + 10);
        sender.handle_channel(at(10 * tick + 10), &words(&[4, 0]));
        assert_eq!(sender.fault, None);
    }
    datagrams(&mut sender, 2_990, 3_010);
    assert_eq!(sender.fault, Some(SabulError::DatagramsBlocked));
}

/// Attack C2: nobody is flooded who says nothing.
#[test]
fn after_three_seconds_without_a_record_one_packet_leaves_a_second() {
    let mut sender = open_sender(&Options { window: 50_000, ..fast() });
    sender.write(at(0), &vec![7; 2_000_000]);
    datagrams(&mut sender, 0, 10);
    sender.handle_channel(at(10), &words(&[1, 10]));
    let flood = datagrams(&mut sender, 10, 3_000);
    assert!(flood.len() > 500);
    let probes = datagrams(&mut sender, 3_020, 10_000);
    assert!((5..=9).contains(&probes.len()), "{} packets in 7 s", probes.len());
    sender.handle_channel(at(10_000), &words(&[4, 1]));
    assert!(datagrams(&mut sender, 10_000, 10_200).len() > 200, "a record sets it free");
}

#[test]
fn a_receiver_that_says_nothing_for_thirty_seconds_is_given_up() {
    let mut sender = after_a_thousand();
    sender.handle_channel(at(15), &words(&[1, 1]));
    datagrams(&mut sender, 15, 31_000);
    assert_eq!(sender.fault, Some(SabulError::PeerSilent(Duration::from_secs(30))));
}

#[test]
fn no_more_than_the_receivers_window_is_unacknowledged() {
    let mut sender = new_sender(&fast());
    let mut block = GARBAGE;
    block[8] = 64;
    sender.handle_channel(at(0), &words(&block));
    said(&mut sender, 0);
    sender.write(at(0), &vec![7; 1_468_000]);
    assert_eq!(datagrams(&mut sender, 0, 50).len(), 64);
    sender.handle_channel(at(50), &words(&[1, 10]));
    assert_eq!(datagrams(&mut sender, 50, 90).len(), 10);
}
