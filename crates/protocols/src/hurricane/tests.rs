//! Transfers over the test path, and peers that say what no peer says.

use std::collections::BTreeSet;

use farhaul_units::{Duration, Instant};
use proptest::prelude::*;

use super::*;
use crate::blast::engine::{Receiver as _, Sender as _, Transmission};
use crate::blast::tests::hostile::{any_path, assert_robust, assert_whole};
use crate::blast::tests::testing::{
    Outcome, Path, content, field_out_of_range, is_out_of_turn, megabits, setup, transfer_whole,
};
use farhaul_proto::config::Config;
use farhaul_proto::error::ControlFault;
use farhaul_proto::stats::Stats;

const LIMIT: Duration = Duration::from_secs(60);

fn fixed(target: u64) -> Options {
    Options { rate: RateChoice::Fixed(megabits(target)), ..Options::default() }
}

/// Transfers `bytes` and checks that they arrive whole.
fn transfer(options: &Options, path: Path, bytes: usize, seed: u64) -> Outcome {
    transfer_whole::<Hurricane>((options, &Config::default()), (path, seed), bytes, LIMIT)
}

// ---- the paper's figure 7 ----

#[test]
fn low_and_high_targets_of_the_paper_are_reached_within_its_loss() {
    let round_trip = Duration::from_millis(11);
    for (target, bytes) in [(50, 25_000_000), (950, 240_000_000)] {
        let outcome = transfer(&fixed(target), Path::new(round_trip, 4e-5), bytes, 5);
        let reached = outcome.goodput() / (target as f64 * 1e6);
        assert!((reached - 1.0).abs() < 0.015, "{reached} of {target} Mbit/s");
        assert!(outcome.lost > 0 || target == 50, "nothing was lost, so nothing was proved");
        assert!(outcome.resent() < 4e-4, "{} at {target} Mbit/s", outcome.resent());
    }
}

#[test]
fn each_loss_is_repeated_once() {
    let outcome = transfer(&fixed(500), Path::new(Duration::from_millis(11), 1e-3), 40_000_000, 6);
    assert!(outcome.lost > 10);
    assert_eq!(outcome.sender.totals.packets_retransmitted, outcome.lost);
    assert_eq!(outcome.receiver.totals.packets_duplicate, 0);
}

// ---- rates, RTTs, losses ----

#[test]
fn transfers_are_whole_over_many_paths() {
    for (seed, (target, millis, loss)) in
        [(10, 0, 0.0), (100, 0, 0.01), (900, 1, 0.001), (200, 100, 0.05), (20, 200, 0.3), (1_000, 50, 0.1)]
            .into_iter()
            .enumerate()
    {
        let outcome = transfer(&fixed(target), Path::new(Duration::from_millis(millis), loss), 3_000_000, seed as u64);
        let spent = outcome.resent();
        assert!(spent <= 2.0 * loss + 0.001, "{spent} resent at a loss of {loss}");
    }
}

#[test]
fn a_path_slower_than_the_target_is_filled_nevertheless() {
    let slow = Path { rate: Some(megabits(100)), queue: 100, ..Path::default() };
    let outcome = transfer(&fixed(150), slow, 10_000_000, 1);
    assert!(outcome.lost > 1_000);
    // The link carries 97 Mbit/s of payload, and some repetitions are lost with the rest.
    assert!(outcome.goodput() > 85e6, "{}", outcome.goodput());
}

#[test]
fn a_found_rate_comes_close_to_the_link() {
    let outcome = transfer(&Options::default(), Path::new(Duration::from_millis(11), 4e-5), 100_000_000, 2);
    assert!(outcome.goodput() > 700e6, "{}", outcome.goodput());
}

#[test]
fn bursts_and_even_spacing_reach_the_same_rate() {
    let round_trip = Duration::from_millis(11);
    let goodput = |options: Options| transfer(&options, Path::new(round_trip, 4e-5), 20_000_000, 3).goodput();
    for options in [
        fixed(200),
        Options { spaced: true, ..fixed(200) },
        Options { window: Some(150), ..fixed(200) },
        Options { window: Some(150), spaced: true, ..fixed(200) },
        Options { sleep: Some(Duration::from_millis(3)), ..fixed(200) },
    ] {
        let goodput = goodput(options.clone());
        assert!((195e6..205e6).contains(&goodput), "{options:?}: {goodput}");
    }
}

#[test]
fn jumbo_datagrams_travel_in_trains_of_their_own_size() {
    let jumbo = Path { datagram: 8_972, ..Path::new(Duration::from_millis(11), 4e-4) };
    let outcome = transfer(&fixed(900), jumbo, 60_000_000, 4);
    assert!(outcome.lost > 0 && outcome.goodput() > 870e6, "{}", outcome.goodput());
}

// ---- the end of a transfer ----

#[test]
fn a_transfer_ends_though_its_last_datagrams_are_lost() {
    let round_trip = Duration::from_millis(20);
    // 100 datagrams and a short one. All from the 91st on are lost, and the first repetitions with them.
    let lost: BTreeSet<u64> = (90..120).collect();
    let outcome = transfer(&fixed(100), Path { lost, ..Path::new(round_trip, 0.0) }, 100 * 1_460 + 7, 1);
    // The forward path, the request of the tail an RTT later, and that of the lost repetitions.
    assert!(outcome.time < round_trip * 8, "{:?}", outcome.time);
    assert_eq!(outcome.lost, 30);
}

#[test]
fn a_transfer_of_which_nothing_arrives_at_first_is_repeated() {
    let outcome = transfer(&fixed(100), Path { lost: (0..3).collect(), ..Path::default() }, 3_000, 1);
    assert_eq!(outcome.lost, 3);
}

#[test]
fn repetitions_that_a_short_queue_loses_are_soon_asked_for_again() {
    // Bursts of 75 datagrams into a queue of five, and a link of a hundredth of the rate.
    let options = Options { sleep: Some(Duration::from_micros(13_539)), ..fixed(66) };
    let narrow = Path { rate: Some(megabits(1)), queue: 5, ..Path::new(Duration::from_millis(60), 0.0) };
    let outcome = transfer(&options, narrow, 75_921, 1);
    // Each of eleven rounds brings five datagrams.
    assert!(outcome.time < Duration::from_secs(10), "{:?}", outcome.time);
}

#[test]
fn an_empty_transfer_is_delivered() {
    assert_eq!(transfer(&fixed(100), Path::default(), 0, 1).datagrams, 0);
}

// ---- the host's side ----

#[test]
fn a_slow_reader_with_a_small_buffer_gets_everything() {
    let config = Config { recv_buffer: 200_000, ..Config::default() };
    let slow = Path { reader: Some(1_000_000), ..Path::default() };
    let outcome = transfer_whole::<Hurricane>((&fixed(100), &config), (slow, 1), 2_000_000, LIMIT);
    assert!(outcome.time > Duration::from_millis(1_900), "{:?}", outcome.time);
}

#[test]
fn duplicates_and_late_datagrams_are_counted_and_cause_no_request() {
    let late = (0.01, Duration::from_millis(2));
    let disturbed = Path { twice: 0.02, late, ..Path::new(Duration::from_millis(20), 0.0) };
    let outcome = transfer(&fixed(100), disturbed, 5_000_000, 1);
    assert!(outcome.receiver.totals.packets_duplicate > 20);
    assert!(outcome.receiver.totals.packets_lost_receiving > 20, "late ones are missing at first");
    assert_eq!(outcome.sender.totals.packets_retransmitted, 0);
}

#[test]
fn a_burst_is_one_train_borrowed_from_the_store() {
    let config = Config::default();
    let mut sender = Hurricane::sender(&fixed(930), setup(&config));
    sender.write(Instant::ZERO, &content(100 * 1_460));
    let plan = sender.plan(Instant::ZERO).unwrap();
    let mut scratch = Vec::new();
    let (size, bytes) = sender.emit(Instant::ZERO, plan, &mut scratch).unwrap();
    assert_eq!((size, bytes.len()), (1_472, 19 * 1_472));
    assert!(scratch.is_empty());
    assert_eq!(sender.plan(Instant::ZERO), None, "asleep");
}

#[test]
fn a_request_is_held_back_until_enough_datagrams_are_missing() {
    let lists = |trigger| {
        let options = Options { trigger: Some(trigger), trigger_window: Some(50.0), ..fixed(500) };
        transfer(&options, Path::new(Duration::from_millis(11), 2e-3), 20_000_000, 8).sender.totals.naks_received
    };
    let (one, ten) = (lists(1), lists(10));
    assert!(one >= 20 && ten <= one / 5, "{one} lists and {ten}");
}

#[test]
fn a_sender_asks_its_receiver_for_a_trigger() {
    let options = Options { trigger: Some(9), trigger_window: Some(2.5), ..Options::default() };
    let terms = Terms::decode(&Hurricane::hello(&options)).unwrap();
    assert_eq!(terms, Terms { trigger: 9, window: 2_500 });
}

// ---- peers that say what no peer says ----

/// A sender that has sent ten datagrams, 0 to 9.
fn sender_of_ten() -> (Sender, Instant) {
    let config = Config::default();
    let mut sender = Hurricane::sender(&fixed(1_000), setup(&config));
    let (mut now, mut scratch) = (Instant::ZERO, Vec::new());
    sender.write(now, &content(10 * 1_460));
    for _ in 0..1_000 {
        now += Duration::from_millis(1);
        while let Some(plan) = sender.plan(now) {
            sender.emit(now, plan, &mut scratch).unwrap();
        }
    }
    (sender, now)
}

fn stats(sender: &Sender) -> Stats {
    let mut stats = Stats::default();
    sender.fill_stats(Instant::ZERO, &mut stats);
    stats
}

fn missing(first: u32, count: u32) -> Vec<u8> {
    [&[2, 0, 1][..], &first.to_be_bytes(), &count.to_be_bytes()].concat()
}

#[test]
fn a_request_beyond_what_was_sent_changes_nothing() {
    for (first, count) in [(10, 1), (5, 6), (0, 1 << 29), (1 << 29, 1)] {
        let (mut sender, now) = sender_of_ten();
        let both = [missing(0, 1), missing(first, count)].concat();
        // The good list before it counts.
        assert_eq!(field_out_of_range(sender.handle_control(now, &both).unwrap_err()), "last datagram of a group");
        assert_eq!(stats(&sender).totals.packets_lost_sending, 1);
    }
}

#[test]
fn a_request_of_what_was_delivered_is_ignored() {
    let (mut sender, now) = sender_of_ten();
    sender.on_delivered(now, 4 * 1_460 + 3);
    sender.handle_control(now, &missing(0x7FFF_FFF0, 16)).unwrap();
    sender.handle_control(now, &missing(2, 3)).unwrap();
    assert_eq!(sender.plan(now), Some(Transmission { first: 4, packets: 1, again: true }));
}

#[test]
fn repeated_requests_repeat_nothing_within_an_rtt() {
    let (mut sender, now) = sender_of_ten();
    let mut scratch = Vec::new();
    let mut repeated = |now| {
        for _ in 0..50 {
            sender.handle_control(now, &missing(3, 2)).unwrap();
        }
        let mut packets = 0;
        for millis in 0..5 {
            while let Some(plan) = sender.plan(now + Duration::from_millis(millis)) {
                assert!(plan.again);
                sender.emit(now, plan, &mut scratch).unwrap();
                packets += plan.packets;
            }
        }
        packets
    };
    assert_eq!(repeated(now), 2);
    assert_eq!(repeated(now + Duration::from_millis(19)), 0, "attack B6");
    assert_eq!(repeated(now + Duration::from_millis(21)), 2);
}

#[test]
fn a_delivery_beyond_what_was_sent_releases_only_that() {
    let (mut sender, now) = sender_of_ten();
    sender.write(now, &content(5 * 1_460));
    sender.on_delivered(now, u64::MAX);
    let stats = stats(&sender);
    assert_eq!((stats.in_flight, stats.send_buffer_packets, sender.is_delivered()), (0, 5, false));
}

#[test]
fn records_of_the_wrong_side_and_unknown_ones_are_refused() {
    let (mut sender, now) = sender_of_ten();
    let config = Config::default();
    let mut receiver = Hurricane::receiver(&fixed(100), &[], setup(&config)).unwrap();
    assert!(is_out_of_turn(sender.handle_control(now, &[1, 0, 0, 0, 0]).unwrap_err()));
    assert!(is_out_of_turn(receiver.handle_control(now, &missing(0, 1)).unwrap_err()));
    let unknown = PeerMisbehaved::ControlRecord(ControlFault::UnknownType(77));
    assert_eq!(receiver.handle_control(now, &[77]), Err(unknown));
}

#[test]
fn an_end_that_goes_back_or_far_ahead_is_refused() {
    let config = Config::default();
    for ends in [[5u32, 4], [5, 0x3000_0000]] {
        let mut receiver = Hurricane::receiver(&fixed(100), &[], setup(&config)).unwrap();
        let record = |end: u32| [&[1][..], &end.to_be_bytes()].concat();
        receiver.handle_control(Instant::ZERO, &record(ends[0])).unwrap();
        let fault = receiver.handle_control(Instant::ZERO, &record(ends[1])).unwrap_err();
        assert_eq!(field_out_of_range(fault), "end of the datagrams sent");
    }
}

#[test]
fn an_end_far_ahead_costs_neither_memory_nor_long_lists() {
    let config = Config { recv_buffer: 1_000_000, ..Config::default() };
    let mut receiver = Hurricane::receiver(&fixed(100), &[], setup(&config)).unwrap();
    receiver.handle_control(Instant::ZERO, &[1, 0x1F, 0, 0, 0]).unwrap();
    let mut out = Vec::new();
    for second in 1..100 {
        let now = Instant::ZERO + Duration::from_secs(second);
        receiver.handle_timeout(now);
        receiver.poll_control(now, &mut out);
    }
    assert!(out.len() <= 100 * 11, "{} bytes of requests", out.len());
    let mut stats = Stats::default();
    receiver.fill_stats(Instant::ZERO, &mut stats);
    assert!(stats.memory < 10_000, "{} bytes", stats.memory);
}

#[test]
fn datagrams_that_no_sender_sends_are_refused() {
    let config = Config::default();
    let mut receiver = Hurricane::receiver(&fixed(100), &[], setup(&config)).unwrap();
    let now = Instant::ZERO;
    for datagram in [&[][..], &[0, 0, 0, 0], &[0x80, 0, 0, 0, 1], &[0; 1_465]] {
        assert!(!receiver.handle_datagram(now, datagram), "{} bytes", datagram.len());
    }
    assert!(receiver.handle_datagram(now, &[0; 1_464]));
    let mut stats = Stats::default();
    receiver.fill_stats(now, &mut stats);
    assert_eq!(stats.totals.packets_received, 1);
}

#[test]
fn a_hello_of_another_length_is_refused() {
    let config = Config::default();
    assert!(Hurricane::receiver(&fixed(100), &[0; 5], setup(&config)).is_err());
}

// ---- at random ----

fn any_options() -> impl Strategy<Value = Options> {
    let rate = prop_oneof![Just(RateChoice::Auto), (1u64..1_000).prop_map(|rate| RateChoice::Fixed(megabits(rate)))];
    let burst = (proptest::option::of(1u32..200), proptest::option::of((0u64..20_000).prop_map(Duration::from_micros)));
    let trigger = (proptest::option::of(1u32..100), proptest::option::of(0.0..20.0f64));
    (rate, burst, trigger, any::<bool>()).prop_map(|(rate, (window, sleep), (trigger, trigger_window), spaced)| {
        Options { rate, window, sleep, interface: None, spaced, trigger, trigger_window }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn any_path_delivers_the_bytes(options in any_options(), path in any_path(), bytes in 0usize..400_000, seed: u64) {
        assert_whole::<Hurricane>(&options, path, bytes, seed);
    }
}

proptest! {
    #[test]
    fn no_peer_makes_an_engine_panic_or_grow(options in any_options(), seed: u64) {
        assert_robust::<Hurricane>(&options, seed, 3);
    }
}
