//! A receiver against a scripted sender.

use super::*;

/// A receiver that was told this size, of packets with 100 bytes.
fn told(size: i64) -> ReceivingSession {
    let mut receiver = ReceivingSession::file(NOW, hundred(), b"data").unwrap();
    said(&mut receiver, NOW);
    receiver.handle_channel(NOW, &size.to_be_bytes()).unwrap();
    receiver
}

fn read(receiver: &mut ReceivingSession) -> Vec<u8> {
    let mut out = vec![0; receiver.available()];
    let read = receiver.read(&mut out);
    assert_eq!(read, out.len());
    out
}

#[test]
fn a_file_is_asked_for_by_a_block_that_leaks_no_memory() {
    let mut receiver = ReceivingSession::file(NOW, terms(), b"/data/a.bin").unwrap();
    let block = said(&mut receiver, NOW);
    assert_eq!((&block[..11], block.len()), (&b"/data/a.bin"[..], 256));
    assert!(block[11..].iter().all(|&byte| byte == 0));
}

#[test]
fn a_file_of_138_packets_is_answered_by_19_bytes_until_it_is_complete() {
    let mut receiver = told(13_750);
    for index in (0..138).filter(|index| index % 50 != 7) {
        let length = if index == 137 { 50 } else { 100 };
        assert!(takes(&mut receiver, &datagram(index, &vec![index as u8; length])));
    }
    receiver.end_batch(NOW);
    receiver.handle_channel(NOW, &end(0)).unwrap();
    let bitmap = said(&mut receiver, NOW);
    assert_eq!((bitmap.len(), bitmap[0], bitmap[1], bitmap[8], bitmap[18]), (19, 0, 0x7F, 0xFD, 0xFF));
    for index in [7, 57, 107] {
        assert!(!receiver.is_complete());
        takes(&mut receiver, &datagram(index, &[index as u8; 100]));
    }
    receiver.handle_channel(NOW, &end(1)).unwrap();
    assert_eq!(said(&mut receiver, NOW), [&[1][..], &[0xFF; 18]].concat());
    assert!(receiver.is_complete() && receiver.channel_ended(NOW, ChannelEnd::Finished) == Ok(()));
    let file = read(&mut receiver);
    assert!(file.len() == 13_750 && file.iter().enumerate().all(|(at, &byte)| byte == (at / 100) as u8));
}

#[test]
fn a_file_of_one_packet_is_answered_by_two_bytes() {
    let mut receiver = told(5);
    takes(&mut receiver, &datagram(0, b"hello"));
    receiver.handle_channel(NOW, &end(0)).unwrap();
    assert_eq!((said(&mut receiver, NOW), read(&mut receiver)), (vec![1, 0xFF], b"hello".to_vec()));
}

#[test]
fn a_sender_of_the_other_byte_order_is_understood() {
    let mut receiver = told(300);
    for index in [2_i32, 0, 1] {
        assert!(takes(&mut receiver, &[&index.to_be_bytes()[..], &[index as u8; 100]].concat()));
    }
    receiver.handle_channel(NOW, b"\0\0\0\0EEE\0").unwrap();
    assert_eq!(said(&mut receiver, NOW), [1, 0xFF]);
    assert_eq!(read(&mut receiver), [[0; 100], [1; 100], [2; 100]].concat());
}

#[test]
fn an_index_out_of_range_never_overwrites_packet_0() {
    let mut receiver = told(300);
    takes(&mut receiver, &datagram(0, &[1; 100]));
    for index in [3, -1, i32::MAX, i32::MIN, 0x0101_0101] {
        assert!(!takes(&mut receiver, &datagram(index, &[9; 100])), "{index}");
    }
    assert_eq!(read(&mut receiver), [1; 100]);
}

#[test]
fn an_empty_file_is_complete_whether_or_not_its_blast_ends() {
    let mut receiver = told(0);
    assert!(receiver.is_complete() && receiver.deadline().is_none());
    assert_eq!(receiver.channel_ended(NOW, ChannelEnd::Finished), Ok(()));
    let mut receiver = told(0);
    receiver.handle_channel(NOW, &end(0)).unwrap();
    assert_eq!((said(&mut receiver, NOW), receiver.is_complete()), (vec![1, 0xFF], true));
}

#[test]
fn a_size_beyond_every_limit_is_refused() {
    for (large_files, largest, size, refused) in [
        (LargeFiles::Whole, u64::MAX, 1 << 31, true),
        (LargeFiles::Whole, u64::MAX, (1 << 31) - 1, false),
        (LargeFiles::Irods, 1 << 40, 1 << 33, false),
        (LargeFiles::Irods, 1 << 40, (1 << 40) + 1, true),
        (LargeFiles::Whole, 1_000, 1_001, true),
        (LargeFiles::Irods, u64::MAX, -1, true),
        (LargeFiles::Whole, u64::MAX, i64::MIN, true),
    ] {
        let mut receiver = ReceivingSession::file(NOW, Terms { large_files, largest, ..terms() }, b"x").unwrap();
        let told = receiver.handle_channel(NOW, &i64::to_be_bytes(size));
        assert_eq!(told.is_err(), refused, "{size}: {told:?}");
        assert_eq!(receiver.stats(NOW).memory, 0);
    }
}

#[test]
fn a_stream_ends_where_the_sender_just_closes() {
    let mut receiver = ReceivingSession::stream(NOW, hundred()).unwrap();
    assert_eq!(said(&mut receiver, NOW), [0]);
    for round in 0..2 {
        receiver.handle_channel(NOW, &150_u64.to_be_bytes()).unwrap();
        takes(&mut receiver, &datagram(1, &[round; 50]));
        takes(&mut receiver, &datagram(0, &[round; 100]));
        receiver.handle_channel(NOW, &end(0)).unwrap();
        assert_eq!(said(&mut receiver, NOW), [1, 0xFF]);
    }
    assert!(!receiver.is_complete());
    assert_eq!((receiver.channel_ended(NOW, ChannelEnd::Finished), receiver.is_complete()), (Ok(()), true));
    assert_eq!(read(&mut receiver), [[0; 150], [1; 150]].concat());
}

#[test]
fn a_stream_ends_with_a_length_of_zero() {
    let mut receiver = ReceivingSession::stream(NOW, hundred()).unwrap();
    receiver.handle_channel(NOW, &[0; 8]).unwrap();
    assert!(receiver.is_complete());
    assert!(receiver.handle_channel(NOW, &100_u64.to_be_bytes()).is_err(), "nothing follows");
}

#[test]
fn a_channel_that_breaks_in_the_middle_is_named() {
    let broke = Err(Fault::ChannelBroke);
    for end in [ChannelEnd::Finished, ChannelEnd::Failed] {
        assert_eq!(told(300).channel_ended(NOW, end), broke);
        let mut receiver = ReceivingSession::stream(NOW, hundred()).unwrap();
        receiver.handle_channel(NOW, &[0, 0, 0]).unwrap();
        assert_eq!(receiver.channel_ended(NOW, end), broke, "in the middle of a length");
        receiver.handle_channel(NOW, &[0, 0, 0, 0, 9]).unwrap();
        assert_eq!(receiver.channel_ended(NOW, end), broke, "in the middle of a blast");
    }
    let mut receiver = ReceivingSession::stream(NOW, hundred()).unwrap();
    assert_eq!(receiver.channel_ended(NOW, ChannelEnd::Failed), broke, "a reset is no end");
    let mut receiver = ReceivingSession::file(NOW, terms(), b"x").unwrap();
    assert_eq!(receiver.channel_ended(NOW, ChannelEnd::Finished), Err(Fault::NoAnswer));
}

#[test]
fn late_datagrams_of_an_earlier_transfer_are_dropped_between_two() {
    let mut receiver = ReceivingSession::stream(NOW, hundred()).unwrap();
    receiver.handle_channel(NOW, &200_u64.to_be_bytes()).unwrap();
    for index in 0..2 {
        takes(&mut receiver, &datagram(index, &[1; 100]));
    }
    receiver.handle_channel(NOW, &end(0)).unwrap();
    said(&mut receiver, NOW);
    assert!(takes(&mut receiver, &datagram(0, &[9; 100])), "a copy in flight when the blast was complete");
    receiver.handle_channel(NOW, &250_u64.to_be_bytes()).unwrap();
    assert!(!takes(&mut receiver, &datagram(2, &[9; 100])), "the last of this blast has 50 bytes");
    for (index, length) in [(0, 100), (1, 100), (2, 50)] {
        assert!(takes(&mut receiver, &datagram(index, &vec![2; length])));
    }
    assert_eq!(read(&mut receiver), [&[1; 200][..], &[2; 250]].concat());
}

#[test]
fn another_payload_size_is_named_at_the_end_of_the_blast_with_both_sizes() {
    let mut receiver = told(1_000);
    for index in 0..2 {
        assert!(!takes(&mut receiver, &datagram(index, &[1; 500])));
    }
    receiver.end_batch(NOW);
    let differ = Fault::OtherPayload { own: 100, peers: 500 };
    assert_eq!(receiver.handle_channel(NOW, &end(0)), Err(differ));
    assert!(differ.to_string().contains("500") && differ.to_string().contains("100"), "{differ}");
}

#[test]
fn another_payload_size_is_named_although_the_last_packet_fits_by_chance() {
    let mut receiver = told(900);
    for index in 0..4 {
        assert!(!takes(&mut receiver, &datagram(index, &[1; 200])));
    }
    assert!(takes(&mut receiver, &datagram(4, &[1; 100])));
    receiver.end_batch(NOW);
    assert_eq!(receiver.handle_channel(NOW, &end(0)), Err(Fault::OtherPayload { own: 100, peers: 200 }));
}

#[test]
fn another_payload_size_is_not_told_as_blocked_udp_when_the_blast_is_long() {
    let mut receiver = told(1_000_000);
    assert!(!takes(&mut receiver, &datagram(0, &[1; 500])));
    let result = receiver.handle_timeout(NOW + Duration::from_secs(3));
    assert_eq!(result, Err(Fault::OtherPayload { own: 100, peers: 500 }));
}

#[test]
fn blocked_udp_is_named_after_three_seconds_and_silence_after_thirty() {
    let mut receiver = told(1_000);
    let blocked = NOW + Duration::from_secs(3);
    assert_eq!(receiver.deadline(), Some(blocked));
    assert_eq!(receiver.handle_timeout(blocked), Err(Fault::UdpBlocked(Duration::from_secs(3))));
    let mut receiver = told(1_000);
    takes(&mut receiver, &datagram(0, &[1; 100]));
    let silent = NOW + Duration::from_secs(30);
    assert_eq!((receiver.handle_timeout(blocked), receiver.deadline()), (Ok(()), Some(silent)));
    assert_eq!(receiver.handle_timeout(silent), Err(Fault::Silent(Duration::from_secs(30))));
}

#[test]
fn a_list_is_asked_for_name_by_name() {
    let mut receiver = told(5);
    assert_eq!(receiver.ask(NOW, b"second"), Err(Fault::OutOfTurn("another name")));
    takes(&mut receiver, &datagram(0, b"hello"));
    receiver.handle_channel(NOW, &end(0)).unwrap();
    said(&mut receiver, NOW);
    receiver.ask(NOW, b"second").unwrap();
    assert_eq!(said(&mut receiver, NOW)[..7], *b"second\0");
    receiver.handle_channel(NOW, &3_u64.to_be_bytes()).unwrap();
    takes(&mut receiver, &datagram(0, b"you"));
    receiver.handle_channel(NOW, &end(0)).unwrap();
    assert_eq!((said(&mut receiver, NOW), read(&mut receiver)), (vec![1, 0xFF], b"helloyou".to_vec()));
    receiver.ask(NOW, b"").unwrap();
    assert_eq!(said(&mut receiver, NOW), [0; 256]);
}

#[test]
fn a_large_file_of_irods_comes_in_several_transfers() {
    let large_files = LargeFiles::Irods;
    let terms = Terms { large_files, largest: 1 << 40, payload: 65_000, buffer: 1 << 20, ..terms() };
    let mut receiver = ReceivingSession::file(NOW, terms, b"x").unwrap();
    said(&mut receiver, NOW);
    let size = LARGEST_OF_IRODS + 10;
    receiver.handle_channel(NOW, &size.to_be_bytes()).unwrap();
    let packets = LARGEST_OF_IRODS.div_ceil(65_000) as i32;
    let mut sink = vec![0; 65_000];
    for index in 0..packets {
        let length = (LARGEST_OF_IRODS - index as u64 * 65_000).min(65_000) as usize;
        assert!(takes(&mut receiver, &datagram(index, &sink[..length])));
        assert_eq!(receiver.read(&mut sink), length);
    }
    receiver.handle_channel(NOW, &end(0)).unwrap();
    assert_eq!(said(&mut receiver, NOW).len(), packets as usize / 8 + 2);
    assert!(!receiver.is_complete());
    takes(&mut receiver, &datagram(0, &[7; 10]));
    receiver.handle_channel(NOW, &end(0)).unwrap();
    assert_eq!((said(&mut receiver, NOW), receiver.is_complete()), (vec![1, 0xFF], true));
}
