//! Peers that say what no peer says.

use farhaul_wire::fobs::{encode_ack, encode_completed, encode_feedback};

use super::*;
use crate::blast::tests::testing::{field_out_of_range, is_out_of_turn};
use farhaul_proto::error::ControlFault;

fn record(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(&mut bytes);
    bytes
}

fn feedback(segment: Segment, missing: SeqRange) -> Vec<u8> {
    record(|out| encode_feedback(segment, [missing].into_iter(), out))
}

#[test]
fn a_bitmap_of_another_segment_or_length_is_refused() {
    for wrong in [segment(1, 0, 9), segment(0, 0, 8), segment(0, 0, 10), segment(0, 1, 9)] {
        let (mut sender, now) = sender_of_ten(&fixed(1_000));
        let fault = sender.handle_control(now, &feedback(wrong, range(3, 3))).unwrap_err();
        assert_eq!(field_out_of_range(fault), "segment of a bitmap");
        assert_eq!(planned(&mut sender, now), [0; 0]);
    }
}

#[test]
fn a_bitmap_repeats_its_missing_packets_and_no_others() {
    let (mut sender, now) = sender_of_ten(&fixed(1_000));
    sender.handle_control(now, &feedback(segment(0, 0, 9), range(3, 4))).unwrap();
    let later = now + Duration::from_millis(1);
    assert_eq!(planned(&mut sender, later), [3]);
    assert_eq!((stats(&sender).totals.packets_lost_sending, stats(&sender).totals.packets_retransmitted), (2, 2));
}

#[test]
fn the_completion_of_no_object_is_refused() {
    for end in [0, 9, 11, 0x3000_0000] {
        let (mut sender, now) = sender_of_ten(&fixed(1_000));
        let fault = sender.handle_control(now, &record(|out| encode_completed(SeqNo::new(end), out))).unwrap_err();
        assert_eq!(field_out_of_range(fault), "end of the completed objects");
        assert!(!sender.is_delivered());
    }
    // An object whose packets have not left, though its end was told.
    let config = Config::default();
    let mut sender = Fobs::sender(&fixed(1_000), setup(&config));
    sender.write(Instant::ZERO, &content(3_000));
    sender.flush(Instant::ZERO);
    sender.poll_control(Instant::ZERO, &mut Vec::new());
    assert!(sender.handle_control(Instant::ZERO, &record(|out| encode_completed(SeqNo::new(3), out))).is_err());

    let (mut sender, now) = sender_of_ten(&fixed(1_000));
    sender.handle_control(now, &record(|out| encode_completed(SeqNo::new(10), out))).unwrap();
    assert!(sender.is_delivered());
}

#[test]
fn an_acknowledgement_beyond_what_was_sent_is_refused() {
    for wrong in [range(0, 10), range(10, 10), range(0, 99_999)] {
        let (mut sender, now) = sender_of_ten(&greedy(1_000));
        let fault = sender.handle_control(now, &record(|out| encode_ack(wrong, [].into_iter(), out))).unwrap_err();
        assert_eq!(field_out_of_range(fault), "last packet of an acknowledgement");
    }
}

#[test]
fn a_greedy_sender_without_acknowledgements_makes_one_round_per_rtt() {
    let (mut sender, now) = sender_of_ten(&greedy(1_000));
    let before = stats(&sender).totals.packets_sent;
    for millis in 0..200 {
        planned(&mut sender, now + Duration::from_millis(millis));
    }
    let sent = stats(&sender).totals.packets_sent - before;
    assert!((90..=110).contains(&sent), "{sent} packets in ten RTTs");
}

#[test]
fn records_of_the_wrong_side_version_or_type_are_refused() {
    let config = Config::default();
    let (mut sender, now) = sender_of_ten(&fixed(1_000));
    let ack = record(|out| encode_ack(range(0, 1), [].into_iter(), out));
    for bytes in [
        record(|out| encode_done(SeqNo::new(1), 1, out)),
        record(|out| encode_segment(segment(0, 0, 1), out)),
        ack.clone(),
    ] {
        assert!(is_out_of_turn(sender.handle_control(now, &bytes).unwrap_err()));
    }
    let (mut sender, now) = sender_of_ten(&greedy(1_000));
    assert!(is_out_of_turn(sender.handle_control(now, &feedback(segment(0, 0, 9), range(3, 3))).unwrap_err()));
    let mut receiver = Fobs::receiver(&fixed(100), &Fobs::hello(&greedy(100)), setup(&config)).unwrap();
    for bytes in
        [record(|out| encode_segment(segment(0, 0, 1), out)), ack, record(|out| encode_completed(SeqNo::new(1), out))]
    {
        assert!(is_out_of_turn(receiver.handle_control(now, &bytes).unwrap_err()));
    }
    let unknown = PeerMisbehaved::ControlRecord(ControlFault::UnknownType(77));
    assert_eq!(receiver.handle_control(now, &[77]), Err(unknown));
}

#[test]
fn an_object_whose_bytes_do_not_fit_its_packets_is_refused() {
    let config = Config::default();
    for (end, bytes, field) in [
        (2, 1_460, "bytes of an object"),
        (2, 2_921, "bytes of an object"),
        (0, 5, "end of an object"),
        (0x3000_0000, 5, "end of an object"),
    ] {
        let mut receiver = Fobs::receiver(&fixed(100), &[], setup(&config)).unwrap();
        let fault = receiver.handle_control(Instant::ZERO, &record(|out| encode_done(SeqNo::new(end), bytes, out)));
        assert_eq!(field_out_of_range(fault.unwrap_err()), field, "{end}, {bytes}");
    }
}

#[test]
fn an_object_of_short_packets_gives_no_more_than_arrived() {
    let config = Config::default();
    let mut receiver = Fobs::receiver(&fixed(100), &[], setup(&config)).unwrap();
    receiver.handle_control(Instant::ZERO, &record(|out| encode_done(SeqNo::new(2), 2_000, out))).unwrap();
    receive(&mut receiver, 0, 5);
    receive(&mut receiver, 1, 6);
    assert_eq!((receiver.available(), receiver.read(&mut [0; 100]), receiver.available()), (11, 11, 0));
}

#[test]
fn a_sender_that_asks_for_too_much_is_refused_or_answered_piece_by_piece() {
    let config = Config::default();
    let mut receiver = Fobs::receiver(&fixed(100), &[], setup(&config)).unwrap();
    let far = record(|out| encode_segment(segment(0, 0x3000_0000, 0x3000_0000), out));
    assert_eq!(
        field_out_of_range(receiver.handle_control(Instant::ZERO, &far).unwrap_err()),
        "last packet of a segment"
    );

    let mut receiver = Fobs::receiver(&fixed(100), &[], setup(&config)).unwrap();
    let long = record(|out| encode_segment(segment(0, 0, (1 << 17) - 1), out));
    for _ in 0..1 << 16 {
        receiver.handle_control(Instant::ZERO, &long).unwrap();
    }
    assert_eq!(
        field_out_of_range(receiver.handle_control(Instant::ZERO, &long).unwrap_err()),
        "last packet of a segment"
    );
    let now = Instant::ZERO + Duration::from_secs(1);
    receiver.handle_timeout(now);
    let mut out = Vec::new();
    receiver.poll_control(now, &mut out);
    assert!((200_000..300_000).contains(&out.len()), "{} bytes", out.len());
    assert_eq!(receiver.deadline(), None, "nothing to wait for but the channel");
}

#[test]
fn datagrams_that_no_sender_sends_are_refused() {
    let config = Config::default();
    let mut receiver = Fobs::receiver(&fixed(100), &[], setup(&config)).unwrap();
    for datagram in [&[][..], &[0, 0, 0, 0], &[0x80, 0, 0, 0, 1], &[0; 1_465]] {
        assert!(!receiver.handle_datagram(Instant::ZERO, datagram), "{} bytes", datagram.len());
    }
    let mut stats = Stats::default();
    receiver.fill_stats(Instant::ZERO, &mut stats);
    assert_eq!(stats.totals.packets_received, 0);
}

#[test]
fn a_hello_of_another_length_is_refused() {
    let config = Config::default();
    assert!(Fobs::receiver(&fixed(100), &[0; 5], setup(&config)).is_err());
}
