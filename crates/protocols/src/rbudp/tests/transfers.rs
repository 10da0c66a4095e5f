//! Transfers over a path, and their time beside the model's.

use super::*;
use crate::blast::tests::testing::{Outcome, Path, Wire, content};

const LIMIT: Duration = Duration::from_secs(2_000);

fn path(rate: u64, round_trip: u64) -> Path {
    Path { rate: Some(megabits(rate)), delay: Duration::from_millis(round_trip) / 2, ..Path::default() }
}

fn run(options: &Options, config: &Config, path: Path, bytes: usize) -> Outcome {
    let content = content(bytes);
    let outcome = Wire::<Rbudp>::new(options, config, path, 7).transfer(&content, LIMIT);
    assert!(outcome.received == content, "the content differs");
    outcome
}

#[test]
fn everything_arrives_in_one_round_without_loss() {
    for bytes in [1, PAYLOAD - 1, PAYLOAD, PAYLOAD + 1, 8 * PAYLOAD, 3_000_000] {
        let outcome = run(&at_rate(900), &Config::default(), path(1_000, 20), bytes);
        let packets = bytes.div_ceil(PAYLOAD) as u64;
        assert_eq!((outcome.datagrams, outcome.sender.totals.packets_retransmitted), (packets, 0), "{bytes} bytes");
        assert_eq!(outcome.control, [16, 2 + packets / 8], "a length, an end and a bitmap for {bytes} bytes");
    }
}

#[test]
fn everything_arrives_over_paths_that_lose_duplicate_and_delay() {
    for (megabits, round_trip, loss) in [(20, 1, 0.01), (100, 30, 0.2), (900, 10, 0.001), (1_500, 100, 0.01)] {
        let late = (0.01, Duration::from_millis(round_trip) * 3);
        let path = Path { loss, twice: 0.01, late, ..path(1_000, round_trip) };
        let outcome = run(&at_rate(megabits), &buffers(2_000_000), path, 6_000_000);
        let totals = outcome.sender.totals;
        assert!(outcome.lost > 0 && totals.packets_retransmitted >= outcome.lost, "{megabits} Mbit/s: {totals:?}");
        assert_eq!((totals.bytes_acked, totals.bytes_written), (6_000_000, 6_000_000));
        assert_eq!(outcome.receiver.totals.bytes_read, 6_000_000);
    }
}

#[test]
fn a_late_packet_of_one_blast_is_not_data_of_the_next() {
    // Each packet comes twice, the second time during the next blast.
    let path = Path { loss: 0.05, twice: 0.5, late: (0.5, Duration::from_millis(25)), ..path(1_000, 20) };
    let options = Options { blast: BlastSize::RoundTrip, ..at_rate(400) };
    let outcome = run(&options, &Config::default(), path, 20_000_000);
    assert!(outcome.receiver.totals.packets_duplicate > 100);
}

#[test]
fn packet_numbers_wrap_in_the_middle_of_a_blast() {
    for before in [1, 300, 1_000] {
        let config = Config { initial_seq: Some(SeqNo::MAX.minus(before)), ..buffers(2_000_000) };
        let path = Path { loss: 0.05, twice: 0.05, late: (0.05, Duration::from_millis(30)), ..path(1_000, 10) };
        run(&at_rate(900), &config, path, 4_000_000);
    }
}

#[test]
fn a_transfer_larger_than_memory_keeps_memory_bounded() {
    let outcome = run(&at_rate(900), &buffers(2_000_000), Path { loss: 0.01, ..path(1_000, 10) }, 20_000_000);
    // Chunks that wait for reuse count as well.
    assert!(outcome.sender.memory < 6_000_000, "{} bytes at the sender", outcome.sender.memory);
    assert!(outcome.receiver.memory < 6_000_000, "{} bytes at the receiver", outcome.receiver.memory);
    assert!(outcome.sender.totals.acks_received >= 20, "blasts of at most half of the buffer");
}

#[test]
fn a_slow_reader_slows_the_sender_and_costs_few_repetitions() {
    // 8 Mbit/s are read of 900 that leave. The buffer of the receiver is smaller than a blast and what waits.
    let config = Config { send_buffer: 2_000_000, recv_buffer: 1_000_000, ..Config::default() };
    let path = Path { reader: Some(1_000_000), ..path(1_000, 10) };
    let outcome = run(&at_rate(900), &config, path, 5_000_000);
    let packets = 5_000_000_u64.div_ceil(PAYLOAD as u64);
    assert!(outcome.datagrams < 2 * packets, "{} datagrams for {packets} packets", outcome.datagrams);
    assert!(outcome.time < Duration::from_millis(5_500), "{:?}", outcome.time);
}

/// B5: the goodput over RTT at a fixed rate, beside (1) of the model.
#[test]
fn the_goodput_is_the_models_within_a_twentieth() {
    for round_trip in [1, 3, 10, 30, 100] {
        for bytes in [10_000_000, 60_000_000] {
            let outcome = run(&at_rate(900), &Config::default(), path(1_000, round_trip), bytes);
            let rate = megabits(900);
            let model = Model::new(rate, Duration::from_millis(round_trip), PAYLOAD as u16);
            let expected = model.goodput(bytes as u64).bits_per_second() as f64;
            let ratio = outcome.goodput() / expected;
            assert!((0.95..1.05).contains(&ratio), "{ratio} of the model's at {round_trip} ms, {bytes} bytes");
        }
    }
}

#[test]
fn the_goodput_with_loss_is_the_models_within_a_tenth() {
    for (loss, round_trip) in [(0.001, 10), (0.01, 30), (0.1, 30)] {
        let path = Path { loss, ..path(1_000, round_trip) };
        let outcome = run(&at_rate(900), &Config::default(), path, 40_000_000);
        let rate = megabits(900);
        let model = Model { loss, ..Model::new(rate, Duration::from_millis(round_trip), PAYLOAD as u16) };
        let ratio = outcome.time.as_secs_f64() / model.seconds(40_000_000);
        assert!((0.9..1.1).contains(&ratio), "{ratio} of the model's time at a loss of {loss}, {round_trip} ms");
    }
}

#[test]
fn a_blast_of_rtt_times_rate_achieves_half_of_the_rate() {
    let options = Options { blast: BlastSize::RoundTrip, ..at_rate(900) };
    let outcome = run(&options, &Config::default(), path(1_000, 40), 40_000_000);
    let share = outcome.goodput() / 900e6 * 1_500.0 / PAYLOAD as f64;
    assert!((0.45..0.55).contains(&share), "{share}");
}

#[test]
fn the_cap_of_the_send_rate_holds_for_every_choice() {
    for options in [at_rate(900), Options::default()] {
        let config = Config { max_rate: Some(megabits(50)), ..Config::default() };
        let outcome = run(&options, &config, path(1_000, 10), 10_000_000);
        assert!(outcome.goodput() < 50e6, "{} bit/s with {options:?}", outcome.goodput());
    }
}

#[test]
fn a_rate_beyond_the_paths_loses_and_still_ends() {
    let outcome = run(&at_rate(2_000), &buffers(8_000_000), path(1_000, 10), 20_000_000);
    assert!(outcome.lost > 1_000, "{}", outcome.lost);
}

#[test]
fn the_rate_is_found() {
    for (megabits, round_trip, bytes) in [(100, 20, 30_000_000), (1_000, 50, 150_000_000)] {
        for blast in [BlastSize::Payload, BlastSize::RoundTrip] {
            let options = Options { blast, ..Options::default() };
            let outcome = run(&options, &Config::default(), path(megabits, round_trip), bytes);
            let rate = 1_500.0 * 8.0 / outcome.sender.send_period.as_micros();
            let share = rate / megabits as f64;
            assert!((0.85..1.05).contains(&share), "{share} of {megabits} Mbit/s in {blast:?}");
        }
    }
}

#[test]
fn even_spacing_sends_one_packet_at_a_time() {
    let now = Instant::from_nanos(1_000_000_000);
    for (spacing, most) in [(Spacing::Even, 1), (Spacing::Bursts, 20)] {
        let mut sender = sender(&Options { spacing, ..at_rate(1_000) });
        sender.write(now, &vec![7; 1_000_000]);
        sender.flush(now);
        let (mut at, mut scratch, mut largest, mut last) = (now, Vec::new(), 0, now);
        sender.plan(at);
        control(&mut sender, at);
        while let Some(deadline) = sender.deadline() {
            at = at.max(deadline);
            while let Some(plan) = sender.plan(at) {
                largest = largest.max(plan.packets);
                assert!(sender.emit(at, plan, &mut scratch).is_some());
                last = at;
            }
        }
        assert_eq!(largest, most, "{spacing:?}");
        // 685 packets of 12 µs.
        let time = (last - now).as_micros();
        assert!((7_900..8_300).contains(&time), "{time} µs for {spacing:?}");
    }
}

#[test]
fn a_first_transmission_is_borrowed_and_a_repetition_is_gathered() {
    let now = Instant::from_nanos(1_000_000_000);
    let mut sender = sender(&at_rate(10_000));
    sender.write(now, &content(44 * PAYLOAD));
    sender.flush(now);
    assert_eq!(sender.plan(now), None, "the length goes first");
    control(&mut sender, now);
    let mut scratch = Vec::new();
    let plan = sender.plan(now).unwrap();
    sender.emit(now, plan, &mut scratch).unwrap();
    assert!(scratch.is_empty());
    datagrams(&mut sender, now);
    let later = now + Duration::from_millis(20);
    sender.handle_control(later, &[0, 0b1111_0110, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]).unwrap();
    let plan = sender.plan(later).unwrap();
    assert_eq!((plan.first, plan.packets, plan.again), (0, 2, true));
    let (size, bytes) = sender.emit(later, plan, &mut scratch).unwrap();
    assert_eq!(
        (size, bytes.len(), &bytes[8..12], &bytes[size + 8..size + 12]),
        (1_472, 2_944, &[0, 0, 0, 0][..], &[3, 0, 0, 0][..])
    );
}

#[test]
fn a_small_write_waits_for_more_but_not_once_it_is_flushed() {
    let now = Instant::from_nanos(1_000_000_000);
    let mut sender = sender(&at_rate(900));
    sender.write(now, &[1; 100]);
    assert_eq!((sender.plan(now), control(&mut sender, now)), (None, vec![]));
    assert_eq!(sender.deadline(), Some(now + Duration::from_micros(2_500)), "an eighth of the RTT");
    sender.flush(now);
    sender.plan(now);
    assert_eq!(control(&mut sender, now), [0, 0, 0, 0, 0, 0, 0, 100]);
    assert_eq!(datagrams(&mut sender, now).len(), 1);
    assert_eq!(control(&mut sender, now), *b"\0\0\0\0EEE\0");
}

#[test]
fn a_write_during_a_blast_belongs_to_the_next() {
    let now = Instant::from_nanos(1_000_000_000);
    let mut sender = sender(&at_rate(900));
    for _ in 0..2 {
        sender.write(now, &[1; 100]);
        sender.flush(now);
        sender.plan(now);
    }
    assert_eq!(control(&mut sender, now), [0, 0, 0, 0, 0, 0, 0, 100]);
    assert_eq!(datagrams(&mut sender, now).concat().len(), 112);
    control(&mut sender, now);
    assert!(!sender.is_delivered());
    sender.handle_control(now, &[1, 0xFF]).unwrap();
    assert_eq!(control(&mut sender, now), [0, 0, 0, 0, 0, 0, 0, 100]);
}
