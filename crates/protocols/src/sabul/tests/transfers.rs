//! One transfer over one path: every byte arrives, at the rate that the rules permit.

use farhaul_units::{Duration, Rate};

use super::super::{Generation, Options, Repairs, Sabul, Start};
use crate::blast::tests::testing::{Outcome, Path, Wire, content};
use farhaul_proto::config::Config;

const LIMIT: Duration = Duration::from_secs(60);

fn megabits(rate: u64) -> Option<Rate> {
    Some(Rate::from_bits_per_second(rate * 1_000_000))
}

/// A link with this rate in Mbit/s and this RTT in milliseconds. Its queue holds 50 ms, and at least 20 packets.
fn path(rate: u64, millis: u64) -> Path {
    let queue = usize::try_from(rate * 4).unwrap_or(0).max(20);
    Path { rate: megabits(rate), delay: Duration::from_millis(millis) / 2, queue, ..Path::default() }
}

fn run_with(options: &Options, config: &Config, path: Path, bytes: usize) -> Outcome {
    let content = content(bytes);
    let outcome = Wire::<Sabul>::new(options, config, path, 1).transfer(&content, LIMIT);
    assert!(outcome.received == content, "the bytes differ");
    assert_eq!(outcome.receiver.totals.packets_invalid, 0);
    outcome
}

fn run(options: &Options, path: Path, bytes: usize) -> Outcome {
    run_with(options, &Config::default(), path, bytes)
}

/// The start takes one to three seconds of each transfer.
#[test]
fn a_transfer_fills_most_of_a_path_without_knowing_it() {
    for (rate, millis, bytes, least) in
        [(1_000, 1, 40, 0.55), (1_000, 100, 100, 0.25), (100, 10, 50, 0.75), (10, 50, 8, 0.65), (2, 200, 2, 0.5)]
    {
        let outcome = run(&Options::default(), path(rate, millis), bytes << 20);
        let share = outcome.goodput() / (rate as f64 * 1e6);
        assert!(share > least, "{share} of {rate} Mbit/s at {millis} ms");
        assert!(outcome.lost * 8 < outcome.datagrams, "{} of {} lost", outcome.lost, outcome.datagrams);
    }
}

#[test]
fn a_bounded_start_loses_little_where_the_original_one_loses_most() {
    let lost = |start| {
        let outcome = run(&Options { start, ..Options::default() }, path(100, 50), 10 << 20);
        outcome.lost as f64 / outcome.datagrams as f64
    };
    let (bounded, original) = (lost(Start::Bounded), lost(Start::Original));
    assert!(bounded < 0.1 && original > 0.4, "{bounded} and {original}");
}

#[test]
fn every_generation_delivers_over_a_path_with_loss() {
    for (name, generation) in Generation::ALL {
        for start in [Start::Bounded, Start::Original] {
            for repairs in [Repairs::Unlimited, Repairs::Original] {
                let options = Options { generation, start, repairs, ..Options::default() };
                let outcome = run(&options, Path { loss: 0.001, ..path(200, 20) }, 10 << 20);
                assert!(outcome.goodput() > 20e6, "{name} {start:?} {repairs:?}: {}", outcome.goodput());
            }
        }
    }
}

/// A receiver that stops for a fifth of a second loses 17 500 packets. The original needs 48 reports and 960 ms.
#[test]
fn repairs_are_limited_to_215_megabits_by_the_original_rule_alone() {
    let options = |repairs| Options { repairs, first_rate: megabits(1_000), ..Options::default() };
    let gap = || Path { rate: None, lost: (20_000..37_500).collect(), ..path(1_000, 10) };
    let outcomes = [Repairs::Original, Repairs::Unlimited].map(|repairs| run(&options(repairs), gap(), 60 << 20));
    let [original, unlimited] = &outcomes;
    let saved = original.time.saturating_sub(unlimited.time);
    assert!(saved > Duration::from_millis(400), "{:?} and {:?}", original.time, unlimited.time);
    let reports = original.sender.totals.naks_received;
    assert!((48..100).contains(&reports), "{reports} reports");
    let repeats = unlimited.sender.totals.packets_retransmitted;
    assert!(repeats < 18_000, "{repeats} repeats");
}

#[test]
fn a_slow_reader_slows_the_sender_and_nothing_expires() {
    let slow = Path { reader: Some(4 << 20), feedback: false, ..path(1_000, 10) };
    let config = Config { recv_buffer: 1 << 20, ..Config::default() };
    let options = Options { window: 2_000, ..Options::default() };
    let outcome = run_with(&options, &config, slow, 30 << 20);
    let totals = outcome.sender.totals;
    assert_eq!((totals.timeouts, totals.packets_retransmitted), (0, 0));
    assert!(totals.limited_by_flow_window > Duration::from_secs(5), "{totals:?}");
    assert!(outcome.receiver.memory < 8 << 20, "{} bytes", outcome.receiver.memory);
}

#[test]
fn a_reader_that_stops_for_seconds_is_not_taken_for_a_dead_one() {
    let stopped = Path { reader: Some(100 << 10), feedback: false, ..path(1_000, 10) };
    let config = Config { recv_buffer: 64 << 10, ..Config::default() };
    let outcome = run_with(&Options { window: 100, ..Options::default() }, &config, stopped, 1 << 20);
    assert_eq!(outcome.sender.totals.timeouts, 0);
}

/// Nobody reports a loss at the end of the stream. The sender's expiration repeats it.
#[test]
fn the_last_packets_are_repeated_after_a_second_of_silence() {
    let outcome = run(&Options::default(), Path { lost: (65..72).collect(), ..path(100, 10) }, 100 << 10);
    assert_eq!(outcome.sender.totals.timeouts, 1);
    assert!((1..3).contains(&outcome.time.as_secs()), "{:?}", outcome.time);
}

#[test]
fn new_packets_leave_in_trains_of_a_quarter_of_a_millisecond() {
    use crate::blast::engine::{Prefix, Protocol, Sender, Setup};
    use farhaul_units::Instant;
    use farhaul_wire::blast::Tag;

    let (config, now) = (Config::default(), Instant::from_nanos(1_000_000_000));
    let options = Options { first_rate: megabits(1_000), ..Options::default() };
    let prefix = Prefix::Tag(Tag(7));
    let round_trip = Duration::from_millis(10);
    let mut sender = Sabul::sender(&options, Setup { config: &config, datagram: 1_472, prefix, round_trip, now });
    sender.write(now, &content(1 << 20));
    let mut scratch = Vec::new();
    let (mut now, mut packets, mut trains) = (now, 0, 0);
    while now < Instant::from_nanos(1_005_000_000) {
        while let Some(plan) = sender.plan(now) {
            let (size, bytes) = sender.emit(now, plan, &mut scratch).expect("planned");
            assert_eq!((size, bytes.len()), (1_472, 1_472 * plan.packets as usize));
            assert!(plan.packets <= 44);
            packets += plan.packets;
            trains += 1;
        }
        now = sender.deadline().expect("more waits");
    }
    assert!(scratch.is_empty(), "the bytes were borrowed from the store");
    assert!(packets > 400 && trains * 15 <= packets, "{packets} packets in {trains} trains");
}
