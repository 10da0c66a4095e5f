use farhaul_wire::udt4::Timestamp;

use super::*;

const STAMP: Timestamp = Timestamp::ZERO;
const ROUND_TRIP: Duration = Duration::from_millis(10);
const PAYLOAD: usize = 100;

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

/// A sender with three messages of two packets each, with a time to live of five milliseconds. The first is in flight.
fn with_short_lived_messages() -> Sender {
    let mut sender = Sender::new(SeqNo::new(100), PAYLOAD, SocketId::new(1), 2, 1 << 20, Rng::new(1));
    for _ in 0..3 {
        assert!(sender.write_message(&[7; 2 * PAYLOAD], false, Some(at(5))));
    }
    let transmission = sender.plan(at(1), STAMP, ROUND_TRIP).unwrap();
    assert_eq!(sender.emit(transmission, (at(1), STAMP), ROUND_TRIP, (&mut Vec::new(), None)).unwrap().packets, 2);
    // The window opens for the others after they have expired.
    sender.on_confirmed(SeqNo::new(100), 100, at(1));
    sender
}

/// The first packets of the messages that the receiver is told to skip.
fn skipped(sender: &mut Sender, now: Instant) -> Vec<u32> {
    while let Some(transmission) = sender.plan(now, STAMP, ROUND_TRIP) {
        sender.emit(transmission, (now, STAMP), ROUND_TRIP, (&mut Vec::new(), None)).unwrap();
    }
    std::iter::from_fn(|| sender.poll_drop()).map(|request| request.range.first.value()).collect()
}

#[test]
fn messages_are_given_up_oldest_first() {
    let mut sender = with_short_lived_messages();
    assert_eq!(skipped(&mut sender, at(20)), [102, 104]);
}

#[test]
fn as_in_libudt_a_message_leaves_once_after_its_life_and_is_dropped_if_it_is_lost() {
    let mut sender = with_short_lived_messages();
    sender.imitate_libudt();
    assert!(skipped(&mut sender, at(20)).is_empty());
    assert_eq!(sender.in_flight(), 6);
    sender.on_loss(SeqRange::new(SeqNo::new(103), SeqNo::new(103)), Timestamp::new(30_000), ROUND_TRIP);
    assert_eq!(skipped(&mut sender, at(30)), [102]);
}

#[test]
fn without_progress_all_drop_requests_are_repeated() {
    let mut sender = with_short_lived_messages();
    skipped(&mut sender, at(20));
    sender.handle_timeout(at(500), ROUND_TRIP, at(0));
    assert_eq!(skipped(&mut sender, at(500)), [100, 102, 104]);
    sender.on_ack(SeqNo::new(104), false, at(510), ROUND_TRIP);
    sender.handle_timeout(at(1_000), ROUND_TRIP, at(0));
    assert_eq!(skipped(&mut sender, at(1_000)), [104]);
}

#[test]
fn a_frozen_sender_neither_retransmits_nor_sends_until_the_freeze_ends() {
    let mut sender = Sender::new(SeqNo::new(100), PAYLOAD, SocketId::new(1), 50, 1 << 20, Rng::new(1));
    sender.write(&[7; 10 * PAYLOAD]);
    let mut control = Control { cwnd: Some(4.0), ..Control::initial() };
    sender.apply(&control, control.send_period, None, ROUND_TRIP);
    let transmission = sender.plan(at(1), STAMP, ROUND_TRIP).unwrap();
    assert_eq!(sender.emit(transmission, (at(1), STAMP), ROUND_TRIP, (&mut Vec::new(), None)).unwrap().packets, 4);
    let lost = SeqRange::new(SeqNo::new(101), SeqNo::new(101));
    assert_eq!(sender.on_loss(lost, Timestamp::new(11_000), ROUND_TRIP), Some(1));
    control.cwnd = Some(10.0);
    control.freeze_until = Some(at(21));
    sender.apply(&control, control.send_period, None, ROUND_TRIP);
    assert!(sender.plan(at(20), Timestamp::new(20_000), ROUND_TRIP).is_none());
    assert_eq!(sender.deadline(), Some(at(21)));
    let transmission = sender.plan(at(21), Timestamp::new(21_000), ROUND_TRIP).unwrap();
    assert!(transmission.again, "the repair comes first");
}
