//! A sender against a scripted receiver.

use super::*;

/// A sender of a file that was asked for, of packets with 100 bytes.
fn giving(content: &[u8]) -> SendingSession {
    let mut sender = SendingSession::files(NOW, hundred()).unwrap();
    sender.handle_channel(NOW, &dirty_block(b"data")).unwrap();
    assert_eq!(sender.asked(), Some(&b"data"[..]), "the garbage behind the name is ignored");
    sender.answer(NOW, content.len() as u64).unwrap();
    assert_eq!(sender.write(NOW, content), content.len());
    sender
}

#[test]
fn a_file_is_its_size_packets_and_an_end() {
    let content: Vec<u8> = (0..13_750_u32).map(|at| (at / 100) as u8).collect();
    let mut sender = giving(&content);
    assert_eq!(train(&mut sender, NOW), None, "the size goes first");
    assert_eq!(said(&mut sender, NOW), [0, 0, 0, 0, 0, 0, 0x35, 0xB6]);
    let (packets, now) = blast(&mut sender, NOW);
    let expected: Vec<_> = content.chunks(100).enumerate().map(|(at, part)| datagram(at as i32, part)).collect();
    assert_eq!(packets, expected);
    assert_eq!(said(&mut sender, now), *b"\0\0\0\0EEE\0");
    // Packets 7, 57 and 107 are missing.
    let mut bitmap = [0xFF; 19];
    (bitmap[0], bitmap[1], bitmap[8], bitmap[14]) = (0, 0x7F, 0xFD, 0xF7);
    for byte in bitmap {
        sender.handle_channel(now, &[byte]).unwrap();
    }
    let (packets, now) = blast(&mut sender, now);
    assert_eq!(packets, [&expected[7], &expected[57], &expected[107]].map(Clone::clone));
    assert_eq!(said(&mut sender, now), *b"\x01\0\0\0EEE\0");
    assert!(!sender.is_complete());
    sender.handle_channel(now, &[&[1][..], &[0xFF; 18]].concat()).unwrap();
    assert!(sender.is_complete() && sender.deadline().is_none());
    assert_eq!(sender.channel_ended(now, ChannelEnd::Finished), Ok(()));
}

#[test]
fn a_file_leaves_while_it_is_written() {
    let mut sender = SendingSession::files(NOW, hundred()).unwrap();
    sender.handle_channel(NOW, &dirty_block(b"data")).unwrap();
    sender.answer(NOW, 250).unwrap();
    said(&mut sender, NOW);
    assert_eq!((sender.room(), sender.write(NOW, &[1; 150])), (250, 150));
    assert_eq!(blast(&mut sender, NOW).0, [datagram(0, &[1; 100])]);
    assert_eq!(sender.write(NOW, &[2; 150]), 100, "no more than the size");
    let rest = [datagram(1, &[[1; 50], [2; 50]].concat()), datagram(2, &[2; 50])];
    assert_eq!(blast(&mut sender, NOW + Duration::from_millis(1)).0, rest);
}

/// The original receiver cannot map an empty file, and leaves without a bitmap: by a reset, since it has not read the end.
#[test]
fn an_empty_file_is_given_when_the_receiver_leaves_without_an_answer() {
    for end in [ChannelEnd::Finished, ChannelEnd::Failed] {
        let mut sender = giving(&[]);
        assert_eq!(said(&mut sender, NOW), [[0; 8], *b"\0\0\0\0EEE\0"].concat());
        assert!(!sender.is_complete());
        assert_eq!(sender.channel_ended(NOW, end), Ok(()), "nothing is missing");
        assert!(sender.is_complete());
    }
}

#[test]
fn an_empty_file_ends_at_once_and_a_bitmap_for_it_is_ignored() {
    let mut sender = giving(&[]);
    said(&mut sender, NOW);
    sender.handle_channel(NOW, &[1, 0xFF]).unwrap();
    assert!(sender.is_complete());
    let mut sender = giving(&[]);
    said(&mut sender, NOW);
    let later = sender.deadline().unwrap();
    assert_eq!((sender.handle_timeout(later), sender.is_complete()), (Ok(()), true), "nor does silence matter");
}

#[test]
fn a_list_ends_with_a_block_of_zeros() {
    let mut sender = giving(b"hello");
    said(&mut sender, NOW);
    blast(&mut sender, NOW);
    said(&mut sender, NOW);
    sender.handle_channel(NOW, &[&[1, 0xFF][..], &dirty_block(b"second\n")].concat()).unwrap();
    assert_eq!(sender.asked(), Some(&b"second\n"[..]), "the newline of a list is kept");
    sender.answer(NOW, 3).unwrap();
    sender.write(NOW, b"you");
    said(&mut sender, NOW);
    assert_eq!(blast(&mut sender, NOW).0, [datagram(0, b"you")], "indexes begin again");
    said(&mut sender, NOW);
    sender.handle_channel(NOW, &[&[1, 0xFF][..], &[0; 256]].concat()).unwrap();
    assert!(sender.is_complete() && sender.asked().is_none());
    assert!(sender.handle_channel(NOW, &[0]).is_err(), "nothing follows");
}

#[test]
fn a_stream_is_lengths_and_transfers_and_ends_with_zero() {
    let mut sender = SendingSession::stream(NOW, hundred()).unwrap();
    assert_eq!(sender.room(), 0, "nobody has asked");
    sender.handle_channel(NOW, &[0]).unwrap();
    for _ in 0..2 {
        sender.write(NOW, &[1; 150]);
        sender.flush(NOW);
        train(&mut sender, NOW);
        assert_eq!(said(&mut sender, NOW), 150_u64.to_be_bytes());
        assert_eq!(blast(&mut sender, NOW).0, [datagram(0, &[1; 100]), datagram(1, &[1; 50])]);
        assert_eq!(said(&mut sender, NOW), *b"\0\0\0\0EEE\0");
        sender.handle_channel(NOW, &[1, 0xFF]).unwrap();
    }
    sender.finish(NOW);
    assert!(!sender.is_complete(), "the zero was not sent");
    assert_eq!((said(&mut sender, NOW), sender.is_complete()), (vec![0; 8], true));
}

#[test]
fn a_bitmap_of_wrong_length_is_refused() {
    let mut sender = giving(&[1; 150]);
    said(&mut sender, NOW);
    blast(&mut sender, NOW);
    said(&mut sender, NOW);
    // The bitmap of 8 packets, not of 2. Its last byte begins what may be the name of another file.
    sender.handle_channel(NOW, &[1, 0xFF, 0xFF]).unwrap();
    assert_eq!(sender.channel_ended(NOW, ChannelEnd::Finished), Err(Fault::ChannelBroke));
    assert!(giving(&[1; 150]).handle_channel(NOW, &[1]).is_err(), "before the end of the blast");
}

/// A sender of 100 packets with 100 bytes, after a blast and these bytes of the receiver. Then a second passes.
fn after_report(report: &[u8]) -> Result<(), Fault> {
    let mut sender = giving(&[1; 10_000]);
    said(&mut sender, NOW);
    let (_, now) = blast(&mut sender, NOW);
    let (one, two) = report.split_at(report.len() / 2);
    sender.handle_channel(now, one)?;
    sender.handle_channel(now, two)?;
    let later = now + Duration::from_secs(1);
    if sender.deadline().is_some_and(|deadline| deadline <= later) { sender.handle_timeout(later) } else { Ok(()) }
}

/// A receiver with smaller packets cuts off their ends, and misses the packets that its own size makes.
#[test]
fn a_receiver_that_expects_more_packets_is_told_both_payload_sizes() {
    // 50 bytes make 200 packets and a bitmap of 27 bytes. The first 100 have arrived.
    let report = [&[0][..], &[0xFF; 12], &[0x0F], &[0; 12], &[0xFF]].concat();
    assert_eq!(report.len(), 27);
    let fault = after_report(&report).unwrap_err();
    assert_eq!(fault, Fault::PayloadsDiffer { own: 100, least: 49, most: 50 });
    assert!(fault.to_string().contains("sends 100 bytes") && fault.to_string().contains("49 to 50"), "{fault}");
    // 98 bytes make 103 packets, and a bitmap of the same length as that of 100.
    let report = [&[0][..], &[0xFF; 12], &[0x8F]].concat();
    assert_eq!(after_report(&report), Err(Fault::PayloadsDiffer { own: 100, least: 98, most: 99 }));
}

#[test]
fn a_receiver_that_expects_fewer_packets_is_told_both_payload_sizes_when_it_leaves_or_is_silent() {
    let short = |end: fn(&mut SendingSession, Instant) -> Result<(), Fault>| {
        let mut sender = giving(&[1; 10_000]);
        said(&mut sender, NOW);
        let (_, now) = blast(&mut sender, NOW);
        // 200 bytes make 50 packets and a bitmap of 8 bytes, where 14 are due.
        sender.handle_channel(now, &[1, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]).unwrap();
        end(&mut sender, now)
    };
    let differ = Err(Fault::PayloadsDiffer { own: 100, least: 182, most: 212 });
    assert_eq!(short(|sender, now| sender.channel_ended(now, ChannelEnd::Finished)), differ);
    assert_eq!(short(|sender, now| sender.handle_timeout(now + Duration::from_secs(30))), differ);
}

#[test]
fn a_bitmap_that_contradicts_itself_is_not_taken_for_another_payload_size() {
    // Complete, but packet 0 is missing.
    let report = [&[1, 0xFE][..], &[0xFF; 12]].concat();
    assert!(matches!(after_report(&report), Err(Fault::PeerMisbehaved(_))));
    assert!(matches!(after_report(&[7]), Err(Fault::PeerMisbehaved(_))), "no first byte of a bitmap");
}

#[test]
fn a_receiver_that_hangs_up_in_the_middle_is_named() {
    let mut sender = giving(&[1; 150]);
    let fault = sender.channel_ended(NOW, ChannelEnd::Failed).unwrap_err();
    assert_eq!(fault, Fault::LeftUnanswered(100));
    assert!(fault.to_string().contains("another payload size"), "a receiver with larger packets crashes: {fault}");
    let mut sender = SendingSession::files(NOW, hundred()).unwrap();
    assert_eq!(sender.channel_ended(NOW, ChannelEnd::Finished), Err(Fault::NothingAsked));
    let mut sender = SendingSession::files(NOW, hundred()).unwrap();
    sender.handle_channel(NOW, b"half a na").unwrap();
    assert_eq!(sender.channel_ended(NOW, ChannelEnd::Finished), Err(Fault::ChannelBroke));
}

#[test]
fn a_receiver_that_never_answers_is_given_up_and_nothing_repeats_meanwhile() {
    let mut sender = giving(&[1; 150]);
    said(&mut sender, NOW);
    let (packets, last) = blast(&mut sender, NOW);
    assert_eq!((packets.len(), sender.deadline()), (2, Some(last + Duration::from_secs(30))));
    let silent = Err(Fault::Silent(Duration::from_secs(30)));
    assert_eq!(sender.handle_timeout(last + Duration::from_secs(30)), silent);
    let mut quiet = SendingSession::files(NOW, hundred()).unwrap();
    assert_eq!(quiet.handle_timeout(NOW + Duration::from_secs(30)), silent, "nobody names a file");
}

#[test]
fn a_receiver_without_datagrams_is_named_after_one_round() {
    let mut sender = giving(&[1; 3_200]);
    said(&mut sender, NOW);
    blast(&mut sender, NOW);
    assert_eq!(sender.handle_channel(NOW, &[&[0; 5][..], &[0xFF]].concat()), Err(Fault::NothingArrived(32)));
}

/// A few packets may be lost by chance, so a small file is repeated first.
#[test]
fn a_receiver_without_datagrams_of_a_small_file_is_named_after_ten_more_rounds() {
    let mut sender = giving(&[1; 150]);
    said(&mut sender, NOW);
    for round in 0..12 {
        blast(&mut sender, NOW);
        match sender.handle_channel(NOW, &[0, 0xFC]) {
            Ok(()) => assert!(round < 10, "round {round}"),
            Err(fault) => return assert_eq!((round, fault), (9, Fault::NothingArrived(2))),
        }
    }
    panic!("never given up");
}

#[test]
fn a_packet_that_never_arrives_ends_after_ten_fruitless_rounds() {
    let mut sender = giving(&[1; 150]);
    said(&mut sender, NOW);
    for round in 0..12 {
        blast(&mut sender, NOW);
        match sender.handle_channel(NOW, &[0, 0xFE]) {
            Ok(()) => assert!(round < 10, "round {round}"),
            Err(fault) => return assert_eq!((round, fault), (10, Fault::NoProgress(10))),
        }
    }
    panic!("never given up");
}

#[test]
fn a_file_above_two_gibibytes_needs_the_mode_of_irods() {
    let irods = Terms { large_files: LargeFiles::Irods, largest: 1 << 40, ..terms() };
    for (terms, taken) in [(Terms { largest: 1 << 40, ..terms() }, false), (irods, true)] {
        let mut sender = SendingSession::files(NOW, terms).unwrap();
        sender.handle_channel(NOW, &dirty_block(b"data")).unwrap();
        assert_eq!(sender.answer(NOW, 1 << 31).is_ok(), taken);
        assert_eq!(sender.room() as u64, if taken { LARGEST_OF_IRODS } else { 0 });
    }
}

#[test]
fn a_receiver_of_a_file_at_a_stream_is_named() {
    let mut sender = SendingSession::stream(NOW, terms()).unwrap();
    assert_eq!(sender.handle_channel(NOW, &dirty_block(b"data")), Err(Fault::WantsFile));
    let mut sender = SendingSession::files(NOW, terms()).unwrap();
    assert!(matches!(sender.handle_channel(NOW, &[b'a'; 256]), Err(Fault::Name(_))), "a name without end");
}

#[test]
fn a_tiny_payload_is_refused() {
    let terms = Terms { payload: 63, ..terms() };
    assert_eq!(SendingSession::files(NOW, terms.clone()).err(), Some(Fault::SmallPayload(63)));
    assert_eq!(ReceivingSession::stream(NOW, terms).err(), Some(Fault::SmallPayload(63)));
}
