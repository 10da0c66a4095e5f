//! Transfers over the test path, and peers that say what no peer says.

use std::collections::BTreeSet;

use farhaul_units::{Duration, Instant, Rate, Rng, SeqNo, SeqRange};
use farhaul_wire::blast::Tag;
use farhaul_wire::fobs::{Segment, encode_ack, encode_completed, encode_done, encode_feedback, encode_segment};
use proptest::prelude::*;

use super::*;
use crate::blast::engine::{Prefix, Receiver as _, Sender as _};
use crate::blast::hostile::{any_path, assert_robust, assert_whole};
use crate::blast::testing::{Outcome, Path, Wire, content};
use crate::config::Config;
use crate::error::ControlFault;
use crate::stats::Stats;

const LIMIT: Duration = Duration::from_secs(120);

fn megabits(megabits: u64) -> Rate {
    Rate::from_megabits_per_second(megabits)
}

fn fixed(rate: u64) -> Options {
    Options { rate: RateChoice::Fixed(megabits(rate)), ..Options::default() }
}

fn greedy(rate: u64) -> Options {
    Options { version: Version::Greedy, ..fixed(rate) }
}

/// A path with this RTT, and a loss probability.
fn path(round_trip: Duration, loss: f64) -> Path {
    Path { delay: round_trip / 2, loss, ..Path::default() }
}

/// Transfers `bytes` and checks that they arrive whole.
fn transfer(options: &Options, path: Path, bytes: usize, seed: u64) -> Outcome {
    transfer_with(options, &Config::default(), path, bytes, seed)
}

fn transfer_with(options: &Options, config: &Config, path: Path, bytes: usize, seed: u64) -> Outcome {
    let content = content(bytes);
    let outcome = Wire::<Fobs>::new(options, config, path, seed).transfer(&content, LIMIT);
    assert!(outcome.received == content, "the bytes differ");
    outcome
}

fn resent(outcome: &Outcome) -> f64 {
    outcome.sender.retransmission_ratio()
}

// ---- the study's channel ----

#[test]
fn the_dedicated_channel_carries_more_than_the_708_megabits_of_the_paper() {
    let outcome = transfer(&fixed(1_000), path(Duration::from_millis(11), 4e-5), 250_000_000, 5);
    assert!(outcome.goodput() > 900e6, "{}", outcome.goodput());
    assert!(outcome.lost > 0 && resent(&outcome) < 4e-4, "{}", resent(&outcome));
}

#[test]
fn each_loss_is_repeated_once() {
    for pick in [Pick::Circular, Pick::MissingFirst] {
        let options = Options { pick, ..fixed(500) };
        let outcome = transfer(&options, path(Duration::from_millis(11), 5e-3), 40_000_000, 6);
        assert!(outcome.lost > 50);
        assert_eq!(outcome.sender.totals.packets_retransmitted, outcome.lost, "{pick:?}");
        assert_eq!(outcome.receiver.totals.packets_duplicate, 0, "{pick:?}");
    }
}

#[test]
fn objects_one_after_another_leave_the_path_idle_between_them() {
    let time = |overlap| {
        let options = Options { overlap, object: 5_000_000, ..fixed(500) };
        transfer(&options, path(Duration::from_millis(50), 0.0), 40_000_000, 6).time
    };
    let (together, apart) = (time(true), time(false));
    // Eight objects, and an RTT between two of them.
    assert!(apart - together > Duration::from_millis(7 * 50), "{apart:?} and {together:?}");
}

// ---- rates, RTTs, losses ----

#[test]
fn transfers_are_whole_over_many_paths() {
    for (seed, (rate, millis, loss)) in
        [(10, 0, 0.0), (100, 0, 0.01), (900, 1, 0.001), (200, 100, 0.005), (20, 200, 0.3), (1_000, 50, 0.1)]
            .into_iter()
            .enumerate()
    {
        for options in [fixed(rate), greedy(rate), Options { overlap: false, object: 500_000, ..fixed(rate) }] {
            let outcome = transfer(&options, path(Duration::from_millis(millis), loss), 3_000_000, seed as u64);
            assert!(outcome.sender.totals.packets_sent >= 2_055, "{options:?}");
        }
    }
}

#[test]
fn a_loss_beyond_the_tolerance_slows_the_sender_and_the_tolerated_does_not() {
    let slow = Path { rate: Some(megabits(100)), queue: 100, ..Path::default() };
    let options = Options { segment: Some(1_000), ..fixed(150) };
    let outcome = transfer(&options, slow.clone(), 40_000_000, 1);
    let rate = 12_000.0 / outcome.sender.send_period.as_micros();
    assert!((80.0..110.0).contains(&rate), "{rate} Mbit/s at the end");
    let tolerant = Options { tolerance: 0.5, ..options };
    let outcome = transfer(&tolerant, slow, 40_000_000, 1);
    let rate = 12_000.0 / outcome.sender.send_period.as_micros();
    assert!((149.0..151.0).contains(&rate), "{rate} Mbit/s at the end");
}

#[test]
fn a_found_rate_comes_close_to_the_link() {
    let outcome = transfer(&Options::default(), path(Duration::from_millis(11), 4e-5), 150_000_000, 2);
    assert!(outcome.goodput() > 708e6, "{}", outcome.goodput());
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
        sender.handle_control(Instant::ZERO, &feedback(segment(0, 0, 199), range(0, 99))).unwrap();
        assert_eq!(stats(&sender).totals.packets_lost_sending, 100);
        assert_eq!(stats(&sender).send_period != before, slows, "{rate:?}");
    }
}

#[test]
fn the_greedy_version_repeats_what_is_under_way() {
    let outcome = transfer(&greedy(500), path(Duration::from_millis(11), 1e-3), 60_000_000, 3);
    let share = resent(&outcome);
    // An RTT of 5.5 ms each way and one acknowledgement in 60 MB.
    assert!((0.002..0.05).contains(&share), "{share}");
    assert!(outcome.goodput() > 440e6, "{}", outcome.goodput());
}

// ---- objects ----

#[test]
fn nothing_of_an_object_is_readable_before_all_of_it_unless_ordered() {
    let config = Config::default();
    for (ordered, readable) in [(false, 0), (true, 1_460)] {
        let options = Options { ordered, ..fixed(100) };
        let mut receiver = Fobs::receiver(&fixed(100), &Fobs::greeting(&options), setup(&config)).unwrap();
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
        let mut wire = Wire::<Fobs>::new(&options, &config, path(Duration::from_millis(10), 0.005), 3);
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
    let mut sender = Fobs::sender(&fixed(960), setup(&config));
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

// ---- the end of a transfer ----

#[test]
fn a_transfer_ends_though_its_last_datagrams_are_lost() {
    for options in [fixed(100), greedy(100)] {
        let round_trip = Duration::from_millis(20);
        // 100 packets and a short one. All from the 91st on are lost, and the first repetitions with them.
        let lost: BTreeSet<u64> = (90..120).collect();
        let outcome = transfer(&options, Path { lost, ..path(round_trip, 0.0) }, 100 * 1_460 + 7, 1);
        assert!(outcome.time < round_trip * 9, "{options:?}: {:?}", outcome.time);
    }
}

#[test]
fn a_transfer_of_which_nothing_arrives_at_first_is_repeated() {
    for options in [fixed(100), greedy(100)] {
        transfer(&options, Path { lost: (0..3).collect(), ..Path::default() }, 3_000, 1);
    }
}

#[test]
fn an_empty_transfer_is_delivered() {
    assert_eq!(transfer(&fixed(100), Path::default(), 0, 1).datagrams, 0);
}

// ---- the host's side ----

#[test]
fn an_object_larger_than_the_buffer_is_read_as_it_comes() {
    let config = Config { recv_buffer: 200_000, ..Config::default() };
    let slow = Path { reader: Some(1_000_000), ..Path::default() };
    transfer_with(&fixed(20), &config, slow, 2_000_000, 1);
}

#[test]
fn duplicates_are_counted_and_late_datagrams_are_no_loss() {
    let late = (0.01, Duration::from_millis(2));
    let disturbed = Path { twice: 0.02, late, ..path(Duration::from_millis(20), 0.0) };
    let outcome = transfer(&fixed(100), disturbed, 5_000_000, 1);
    assert!(outcome.receiver.totals.packets_duplicate > 20);
    assert_eq!(outcome.sender.totals.packets_retransmitted, 0);
}

// ---- peers that say what no peer says ----

fn setup(config: &Config) -> Setup<'_> {
    Setup {
        config,
        datagram: 1_472,
        prefix: Prefix::Tag(Tag(7)),
        round_trip: Duration::from_millis(20),
        now: Instant::ZERO,
        rng: Rng::new(1),
    }
}

fn range(first: u32, last: u32) -> SeqRange {
    SeqRange::new(SeqNo::new(first), SeqNo::new(last))
}

fn segment(number: u32, first: u32, last: u32) -> Segment {
    Segment { number, range: range(first, last) }
}

/// Sends everything that may leave now, and returns the first numbers of its trains.
fn planned(sender: &mut Sender, now: Instant) -> Vec<u64> {
    let (mut numbers, mut scratch) = (Vec::new(), Vec::new());
    while let Some(plan) = sender.plan(now) {
        sender.emit(now, plan, &mut scratch).unwrap();
        numbers.push(plan.first);
    }
    numbers
}

/// A datagram of this number and payload arrives.
fn receive(receiver: &mut Receiver, number: u32, payload: usize) {
    let datagram = [&number.to_be_bytes()[..], &vec![1; payload]].concat();
    assert!(receiver.handle_datagram(Instant::ZERO, &datagram));
    receiver.end_batch(Instant::ZERO);
}

/// A sender that has sent an object of ten packets, and told of it.
fn sender_of_ten(options: &Options) -> (Sender, Instant) {
    let config = Config::default();
    let mut sender = Fobs::sender(options, setup(&config));
    sender.write(Instant::ZERO, &content(10 * 1_460));
    sender.flush(Instant::ZERO);
    let mut now = Instant::ZERO;
    for _ in 0..5 {
        now += Duration::from_millis(1);
        planned(&mut sender, now);
    }
    sender.poll_control(now, &mut Vec::new());
    (sender, now)
}

fn stats(sender: &Sender) -> Stats {
    let mut stats = Stats::default();
    sender.fill_stats(Instant::ZERO, &mut stats);
    stats
}

fn record(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(&mut bytes);
    bytes
}

fn feedback(segment: Segment, missing: SeqRange) -> Vec<u8> {
    record(|out| encode_feedback(segment, [missing].into_iter(), out))
}

fn out_of_range(fault: PeerMisbehaved) -> &'static str {
    match fault {
        PeerMisbehaved::ControlRecord(ControlFault::OutOfRange { field, .. }) => field,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_bitmap_of_another_segment_or_length_is_refused() {
    for wrong in [segment(1, 0, 9), segment(0, 0, 8), segment(0, 0, 10), segment(0, 1, 9)] {
        let (mut sender, now) = sender_of_ten(&fixed(1_000));
        let fault = sender.handle_control(now, &feedback(wrong, range(3, 3))).unwrap_err();
        assert_eq!(out_of_range(fault), "segment of a bitmap");
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
        assert_eq!(out_of_range(fault), "end of the completed objects");
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
        assert_eq!(out_of_range(fault), "last packet of an acknowledgement");
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
    let turn = |fault| matches!(fault, PeerMisbehaved::ControlRecord(ControlFault::OutOfTurn(_)));
    let (mut sender, now) = sender_of_ten(&fixed(1_000));
    let ack = record(|out| encode_ack(range(0, 1), [].into_iter(), out));
    for bytes in [
        record(|out| encode_done(SeqNo::new(1), 1, out)),
        record(|out| encode_segment(segment(0, 0, 1), out)),
        ack.clone(),
    ] {
        assert!(turn(sender.handle_control(now, &bytes).unwrap_err()));
    }
    let (mut sender, now) = sender_of_ten(&greedy(1_000));
    assert!(turn(sender.handle_control(now, &feedback(segment(0, 0, 9), range(3, 3))).unwrap_err()));
    let mut receiver = Fobs::receiver(&fixed(100), &Fobs::greeting(&greedy(100)), setup(&config)).unwrap();
    for bytes in
        [record(|out| encode_segment(segment(0, 0, 1), out)), ack, record(|out| encode_completed(SeqNo::new(1), out))]
    {
        assert!(turn(receiver.handle_control(now, &bytes).unwrap_err()));
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
        assert_eq!(out_of_range(fault.unwrap_err()), field, "{end}, {bytes}");
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
    assert_eq!(out_of_range(receiver.handle_control(Instant::ZERO, &far).unwrap_err()), "last packet of a segment");

    let mut receiver = Fobs::receiver(&fixed(100), &[], setup(&config)).unwrap();
    let long = record(|out| encode_segment(segment(0, 0, (1 << 17) - 1), out));
    for _ in 0..1 << 16 {
        receiver.handle_control(Instant::ZERO, &long).unwrap();
    }
    assert_eq!(out_of_range(receiver.handle_control(Instant::ZERO, &long).unwrap_err()), "last packet of a segment");
    let now = Instant::ZERO + Duration::from_secs(1);
    receiver.handle_timeout(now);
    let mut out = Vec::new();
    receiver.poll_control(now, &mut out);
    assert!((200_000..300_000).contains(&out.len()), "{} bytes", out.len());
    assert_eq!(receiver.deadline(), None, "nothing to wait for but the channel");
}

#[test]
fn datagrams_that_no_sender_sends_are_refused_and_counted() {
    let config = Config::default();
    let mut receiver = Fobs::receiver(&fixed(100), &[], setup(&config)).unwrap();
    for datagram in [&[][..], &[0, 0, 0, 0], &[0x80, 0, 0, 0, 1], &[0; 1_465]] {
        assert!(!receiver.handle_datagram(Instant::ZERO, datagram), "{} bytes", datagram.len());
    }
    let mut stats = Stats::default();
    receiver.fill_stats(Instant::ZERO, &mut stats);
    assert_eq!((stats.totals.packets_invalid, stats.totals.packets_received), (4, 0));
}

#[test]
fn a_greeting_of_another_length_is_refused() {
    let config = Config::default();
    assert!(Fobs::receiver(&fixed(100), &[0; 5], setup(&config)).is_err());
}

// ---- at random ----

fn any_options() -> impl Strategy<Value = Options> {
    let rate = prop_oneof![Just(RateChoice::Auto), (1u64..1_000).prop_map(|rate| RateChoice::Fixed(megabits(rate)))];
    // No rate mends the loss of a batch that exceeds the shortest queue.
    let sizes = (1u32..1_000_000, proptest::option::of(1u32..2_000), proptest::option::of(1u32..=5));
    let switches = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    (rate, sizes, 0.0..0.3f64, switches).prop_map(
        |(rate, (object, segment, batch), tolerance, (greedy, first, ordered, overlap))| Options {
            version: if greedy { Version::Greedy } else { Version::Segments },
            pick: if first { Pick::MissingFirst } else { Pick::Circular },
            rate,
            object,
            segment,
            batch,
            tolerance,
            ordered,
            overlap,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn any_path_delivers_the_bytes(options in any_options(), path in any_path(), bytes in 0usize..400_000, seed: u64) {
        assert_whole::<Fobs>(&options, path, bytes, seed);
    }
}

proptest! {
    #[test]
    fn no_peer_makes_an_engine_panic_or_grow(options in any_options(), seed: u64) {
        assert_robust::<Fobs>(&options, seed, 6);
    }
}
