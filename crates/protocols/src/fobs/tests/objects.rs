//! Engines without a path: objects, and what leaves of them.

use farhaul_wire::fobs::encode_feedback;

use super::*;
use crate::blast::tests::testing::{Path, Wire};

#[test]
fn nothing_of_an_object_is_readable_before_all_of_it_if_neither_side_wants_order() {
    let config = Config::default();
    for (orders, readable) in [([false, false], 0), ([true, false], 1_460), ([false, true], 1_460)] {
        let [sender, receiver] = orders.map(|ordered| Options { ordered, ..fixed(100) });
        let mut receiver = Fobs::receiver(&receiver, &Fobs::hello(&sender), setup(&config)).unwrap();
        receive(&mut receiver, 0, 1_460);
        assert_eq!(receiver.available(), readable);
        let mut done = Vec::new();
        encode_done(SeqNo::new(2), 1_500, &mut done);
        receiver.handle_control(Instant::ZERO, &done).unwrap();
        assert_eq!(receiver.available(), readable);
        receive(&mut receiver, 1, 40);
        assert_eq!(receiver.available(), 1_500);
    }
}

#[test]
fn ordered_objects_with_missing_packets_first_are_read_as_they_come() {
    let config = Config::default();
    let content = content(2_000_000);
    // Half of the object has left after 0.1 s.
    let read = |ordered| {
        let options = Options { ordered, pick: Pick::MissingFirst, segment: Some(50), ..fixed(80) };
        let mut wire = Wire::<Fobs>::new(&options, &config, Path::new(Duration::from_millis(10), 0.005), 3);
        let (end, mut written, mut received) = (wire.now + Duration::from_millis(100), 0, Vec::new());
        while wire.now < end {
            written += wire.sender.write(wire.now, &content[written..]);
            wire.step(&mut received).unwrap();
        }
        assert!(content.starts_with(&received));
        received.len()
    };
    assert_eq!(read(false), 0);
    assert!((600_000..1_000_000).contains(&read(true)), "{}", read(true));
}

#[test]
fn a_delivery_beyond_what_was_sent_releases_only_that() {
    let (mut sender, now) = sender_of_ten(&fixed(1_000));
    sender.write(now, &content(5 * 1_460));
    sender.on_delivered(now, u64::MAX);
    let stats = stats(&sender);
    assert_eq!((stats.in_flight, stats.send_buffer_packets, sender.is_delivered()), (0, 5, false));
}

#[test]
fn a_burst_is_one_train_borrowed_from_the_store() {
    let config = Config::default();
    let mut sender = Fobs::sender(&fixed(2_000), setup(&config));
    sender.write(Instant::ZERO, &content(100 * 1_460));
    let now = Instant::ZERO + Duration::from_secs(1);
    let plan = sender.plan(now).unwrap();
    let mut scratch = Vec::new();
    let (size, bytes) = sender.emit(now, plan, &mut scratch).unwrap();
    assert_eq!((size, bytes.len()), (1_472, 44 * 1_472));
    assert!(scratch.is_empty());
}

#[test]
fn an_object_ends_when_nothing_is_written_for_an_rtt() {
    let config = Config::default();
    let mut sender = Fobs::sender(&fixed(1_000), setup(&config));
    sender.write(Instant::ZERO, &content(2_000));
    let mut numbers = Vec::new();
    let mut now = Instant::ZERO;
    for _ in 0..40 {
        now += Duration::from_millis(1);
        sender.handle_timeout(now);
        numbers.extend(planned(&mut sender, now).into_iter().map(|number| (now - Instant::ZERO, number)));
    }
    assert_eq!(numbers.iter().map(|(_, number)| *number).collect::<Vec<_>>(), [0, 1]);
    assert!(numbers[1].0 >= Duration::from_millis(20), "{numbers:?}");
    let mut control = Vec::new();
    sender.poll_control(now, &mut control);
    let mut expected = Vec::new();
    encode_done(SeqNo::new(2), 2_000, &mut expected);
    encode_segment(segment(0, 0, 1), &mut expected);
    assert_eq!(control, expected);
}

#[test]
fn the_loss_of_a_segment_slows_a_set_rate_and_not_one_that_is_found() {
    for (rate, slows) in [(RateChoice::Fixed(megabits(100)), true), (RateChoice::Auto, false)] {
        let (config, options) = (Config::default(), Options { rate, segment: Some(200), ..Options::default() });
        let mut sender = Fobs::sender(&options, setup(&config));
        sender.write(Instant::ZERO, &content(200 * 1_460));
        sender.flush(Instant::ZERO);
        let times = (1..200).map(|millis| Instant::ZERO + Duration::from_millis(millis));
        let sent: usize = times.map(|now| planned(&mut sender, now).len()).sum();
        assert!(sent > 0);
        sender.poll_control(Instant::ZERO, &mut Vec::new());
        let before = stats(&sender).send_period;
        let mut record = Vec::new();
        encode_feedback(segment(0, 0, 199), [range(0, 99)].into_iter(), &mut record);
        sender.handle_control(Instant::ZERO, &record).unwrap();
        assert_eq!(stats(&sender).totals.packets_lost_sending, 100);
        assert_eq!(stats(&sender).send_period != before, slows, "{rate:?}");
    }
}
