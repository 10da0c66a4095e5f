//! Both engines over a path in virtual time.

use farhaul_units::{Duration, Instant, Rate, Rng, SeqNo};
use farhaul_wire::blast::Tag;
use farhaul_wire::tsunami::Request;
use proptest::prelude::*;

use super::receiver::Receiver;
use super::sender::Sender;
use super::{Options, Tsunami};
use crate::blast::engine::{Prefix, Protocol, Receiver as _, Sender as _, Setup};
use crate::blast::rate::RateChoice;
use crate::blast::tests::testing::{Outcome, Path, Wire, content};
use farhaul_proto::config::Config;
use farhaul_proto::error::{ControlFault, PeerMisbehaved};
use farhaul_proto::stats::Stats;

const LIMIT: Duration = Duration::from_secs(120);

fn megabits(megabits: u64) -> Rate {
    Rate::from_megabits_per_second(megabits)
}

fn fixed(rate: u64) -> Options {
    Options { rate: RateChoice::Fixed(megabits(rate)), ..Options::default() }
}

fn path(rate: u64, delay: u64) -> Path {
    Path { rate: Some(megabits(rate)), delay: Duration::from_millis(delay), ..Path::default() }
}

/// Transfers `bytes` and checks every byte.
fn transfer(options: &Options, config: &Config, path: Path, bytes: usize, seed: u64) -> Outcome {
    let content = content(bytes);
    let outcome = Wire::<Tsunami>::new(options, config, path, seed).transfer(&content, LIMIT);
    assert!(outcome.received == content, "the content changed");
    outcome
}

fn run(options: &Options, path: Path, bytes: usize, seed: u64) -> Outcome {
    transfer(options, &Config::default(), path, bytes, seed)
}

#[test]
fn streams_arrive_over_paths_of_all_kinds() {
    for (seed, (rate, delay, loss)) in [
        (10, 0, 0.0),
        (10, 50, 0.02),
        (100, 5, 0.001),
        (100, 100, 0.01),
        (1_000, 5, 0.0001),
        (1_000, 50, 0.1),
        (5_000, 1, 0.3),
    ]
    .into_iter()
    .enumerate()
    {
        let path = Path { loss, ..path(rate, delay) };
        for options in [fixed(rate * 9 / 10), Options::original(RateChoice::Fixed(megabits(rate * 9 / 10)))] {
            let outcome = run(&options, path.clone(), 3_000_000, seed as u64);
            assert!(loss < 0.01 || outcome.sender.totals.packets_retransmitted > 0, "{rate} {delay} {loss}");
        }
    }
}

#[test]
fn duplicates_and_late_blocks_do_no_harm() {
    for late in [1, 15, 60] {
        let path = Path { twice: 0.1, late: (0.05, Duration::from_millis(late)), loss: 0.01, ..path(1_000, 5) };
        for options in [fixed(200), Options::original(RateChoice::Fixed(megabits(200)))] {
            run(&options, path.clone(), 5_000_000, 6);
        }
    }
}

/// Tsunami whose stream begins shortly before its numbers wrap.
#[derive(Debug)]
struct Wrapping;

impl Protocol for Wrapping {
    type Options = Options;
    type Sender = Sender;
    type Receiver = Receiver;

    const NAME: &'static str = "tsunami";

    fn sender(options: &Options, setup: Setup<'_>) -> Sender {
        Sender::new(SeqNo::MAX.minus(700), options, &setup)
    }

    fn receiver(options: &Options, _: &[u8], setup: Setup<'_>) -> Result<Receiver, PeerMisbehaved> {
        Ok(Receiver::new(SeqNo::MAX.minus(700), options, &setup))
    }
}

#[test]
fn block_numbers_wrap_in_the_midst_of_losses() {
    let content = content(3_000_000);
    for options in [fixed(500), Options::original(RateChoice::Fixed(megabits(500)))] {
        for (seed, loss) in [0.001, 0.05, 0.6].into_iter().enumerate() {
            let path = Path { loss, ..path(1_000, 5) };
            let wire = Wire::<Wrapping>::new(&options, &Config::default(), path, seed as u64);
            assert!(wire.transfer(&content, LIMIT).received == content, "{loss}");
        }
    }
}

#[test]
fn new_blocks_leave_without_a_copy_and_requested_ones_are_gathered_into_a_train() {
    let config = Config::default();
    let now = Instant::from_nanos(1_000_000_000);
    let prefix = Prefix::Tag(Tag(0x0102_0304_0506_0708));
    let round_trip = Duration::from_millis(10);
    let setup = Setup { config: &config, datagram: 1_472, prefix, round_trip, now };
    let mut sender = Tsunami::sender(&fixed(10_000), setup);
    sender.write(now, &content(1_458 * 100));
    let (mut now, mut scratch, mut sent) = (now, Vec::new(), 0);
    while sent < 100 {
        let Some(plan) = sender.plan(now) else {
            now = sender.deadline().expect("blocks wait");
            continue;
        };
        let (segment, bytes) = sender.emit(now, plan, &mut scratch).unwrap();
        assert_eq!((segment, bytes.len()), (1_472, 1_472 * plan.packets as usize));
        assert_eq!(bytes[..14], [1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, sent as u8 + 1, 0, b'O']);
        sent += plan.packets;
    }
    assert_eq!(scratch.capacity(), 0, "nothing was copied");
    for block in [3, 4, 9, 90] {
        sender.handle_control(now, &Request::Retransmit(block).bytes()).unwrap();
    }
    now += Duration::from_millis(5);
    let plan = sender.plan(now).unwrap();
    let (_, bytes) = sender.emit(now, plan, &mut scratch).unwrap();
    let headers: Vec<(u8, u8)> = bytes.chunks(1_472).map(|datagram| (datagram[11], datagram[13])).collect();
    assert_eq!((plan.packets, headers), (4, vec![(3, b'R'), (4, b'R'), (9, b'R'), (90, b'R')]));
}

#[test]
fn streams_of_any_length_end() {
    for bytes in [1, 1_457, 1_458, 1_459, 72_900, 72_901] {
        for options in [fixed(100), Options::original(RateChoice::Fixed(megabits(100)))] {
            let outcome = run(&options, path(1_000, 5), bytes, 1);
            assert!(outcome.sender.totals.packets_retransmitted <= 1, "{bytes}");
        }
    }
}

#[test]
fn a_lost_end_is_repaired_by_the_repetition_of_the_last_block() {
    let bytes = 1_458 * 10;
    for lost in [vec![9], vec![9, 10], vec![0, 4, 5, 9], (0..11).collect()] {
        let path = Path { lost: lost.iter().copied().collect(), ..path(1_000, 5) };
        let prompt = run(&fixed(100), path.clone(), bytes, 1);
        // A repetition comes RTT · 5/4 + 20 ms after the last block.
        assert!(prompt.time < Duration::from_millis(150), "{lost:?}: {:?}", prompt.time);
        let original = run(&Options::original(RateChoice::Fixed(megabits(100))), path, bytes, 1);
        assert!(original.time > Duration::from_millis(100) && original.time < Duration::from_millis(400), "{lost:?}");
    }
}

#[test]
fn the_rate_rises_from_a_third_to_the_target_in_seven_reports() {
    let options = fixed(100);
    let outcome = run(&options, path(1_000, 5), 3 * 100_000_000 / 8, 1);
    // Seven reports take 2.5 s, at 1/3, 0.4, 0.48, 0.576, 0.69, 0.83 and 0.995 of the rate.
    let mean = outcome.goodput() / 1e6;
    assert!((66.0..=76.0).contains(&mean), "{mean} Mbit/s");
    let micros = outcome.sender.send_period.as_micros();
    let exact = 1_500.0 * 8.0 / 100.0;
    assert!((micros - exact).abs() < 1e-6, "{micros} µs at the end, {exact} is the target");
}

#[test]
fn whole_microseconds_without_headers_are_faster_than_asked() {
    let exact = run(&fixed(1_000), path(10_000, 1), 400_000_000, 1);
    let options = Options { exact: false, ..fixed(1_000) };
    let whole = run(&options, path(10_000, 1), 400_000_000, 1);
    assert_eq!((exact.sender.send_period.as_micros(), whole.sender.send_period.as_micros()), (12.0, 11.0));
}

/// 1 Gbit/s and an RTT of 11 ms with little loss (paper:ornl §2).
fn dedicated() -> Path {
    Path { loss: 2e-4, queue: 2_000, delay: Duration::from_micros(5_500), ..path(1_000, 0) }
}

#[test]
fn a_dedicated_gigabit_loses_a_second_to_the_slow_start_of_the_original() {
    let outcome = run(&fixed(990), dedicated(), 500_000_000, 3);
    // 1458 of 1500 bytes are payload. The start sends 1.5 s worth of data in 2.45 s.
    let full = 500_000_000.0 * 8.0 / (990e6 * 1_458.0 / 1_500.0);
    let extra = outcome.time.as_secs_f64() - full;
    assert!((0.9..1.05).contains(&extra), "{extra} s more than at the full rate");
    assert!(outcome.sender.retransmission_ratio() < 1e-3);
}

#[test]
fn a_search_for_the_rate_carries_what_the_paper_measured() {
    // paper:ornl table 1: Tsunami 919 Mbit/s.
    let outcome = run(&Options::default(), dedicated(), 800_000_000, 5);
    let goodput = outcome.goodput() / 1e6;
    assert!(goodput >= 919.0, "{goodput} Mbit/s");
}

#[test]
fn a_link_far_below_the_rate_causes_no_restart_storm() {
    // A tenth of the rate fits. The original goes back again and again, and sends what has arrived.
    let path = Path { queue: 100, ..path(100, 10) };
    let bytes = 20_000_000;
    let gaps = run(&fixed(1_000), path.clone(), bytes, 1);
    let waste = |outcome: &Outcome| outcome.receiver.totals.packets_duplicate as f64 / (bytes as f64 / 1_458.0);
    assert!(waste(&gaps) < 0.1, "{} of the blocks arrived twice", waste(&gaps));
    let restarts = run(&Options::original(RateChoice::Fixed(megabits(1_000))), path, bytes, 1);
    assert!(waste(&restarts) > 2.0 * waste(&gaps) + 0.1, "{} with restarts", waste(&restarts));
    let needed = bytes as f64 * 8.0 / 95.0e6;
    assert!(gaps.time.as_secs_f64() < 1.3 * needed, "{:?}, {needed} s at the rate of the link", gaps.time);
}

#[test]
fn requests_of_gaps_stay_few_at_any_loss() {
    for loss in [0.01, 0.3, 0.6] {
        let outcome = run(&fixed(200), Path { loss, ..path(1_000, 20) }, 20_000_000, 2);
        let blocks = 20_000_000 / 1_458;
        let resent = outcome.sender.totals.packets_retransmitted as f64 / blocks as f64;
        // Each block needs 1/(1 - loss) transmissions.
        let needed = loss / (1.0 - loss);
        assert!(resent < 1.15 * needed + 0.01, "{loss}: {resent} of the blocks sent again, {needed} were needed");
    }
}

#[test]
fn a_block_is_sent_again_once_per_round_trip_however_often_it_is_asked_for() {
    // Attack B6.
    let mut wire = Wire::<Tsunami>::new(&fixed(100), &Config::default(), Path::default(), 1);
    let mut received = Vec::new();
    wire.sender.write(wire.now, &content(1_458 * 50));
    wire.sender.flush(wire.now);
    while wire.sender.deadline().is_some_and(|deadline| deadline <= wire.now + Duration::from_millis(1)) {
        wire.step(&mut received).unwrap();
    }
    let mut now = wire.now;
    let mut sent = 0;
    for _ in 0..200 {
        wire.sender.handle_control(now, &Request::Retransmit(7).bytes()).unwrap();
        now += Duration::from_millis(1);
        while let Some(plan) = wire.sender.plan(now) {
            sent += plan.packets;
            wire.sender.emit(now, plan, &mut Vec::new());
        }
    }
    // The RTT is 20 ms, and the two halves of the memory give 10 to 20 ms.
    assert!((10..=20).contains(&sent), "{sent} times in 200 ms");
}

#[test]
fn a_slow_reader_is_served_without_losing_a_byte() {
    let slow = Path { reader: Some(2_000_000), ..path(100, 10) };
    run(&fixed(90), slow.clone(), 4_000_000, 1);
    // Without credit the sender overruns a small buffer. Whatever finds no room is asked for again.
    let config = Config { recv_buffer: 100_000, send_buffer: 1_000_000, ..Config::default() };
    let outcome = transfer(&fixed(90), &config, slow, 4_000_000, 1);
    let seconds = outcome.time.as_secs_f64();
    assert!((1.9..2.6).contains(&seconds), "{seconds} s for two seconds of reading");
}

#[test]
fn the_sender_holds_no_more_than_its_buffer() {
    let config = Config { send_buffer: 300_000, ..Config::default() };
    let outcome = transfer(&fixed(100), &config, Path { loss: 0.05, ..path(1_000, 10) }, 3_000_000, 9);
    assert!(outcome.sender.memory < 900_000, "{} bytes", outcome.sender.memory);
}

#[test]
fn heavy_loss_slows_the_sender_and_the_end_of_loss_frees_it() {
    let outcome = run(&fixed(100), Path { loss: 0.5, ..path(1_000, 10) }, 30_000_000, 4);
    let period = outcome.sender.send_period.as_micros();
    let start = 3.0 * 1_500.0 * 8.0 / 100.0;
    assert!(period > start, "{period} µs after the start with {start}");
}

#[test]
fn a_record_that_no_receiver_sends_ends_the_connection() {
    let new = || Wire::<Tsunami>::new(&fixed(100), &Config::default(), Path::default(), 1);
    let now = Instant::from_nanos(2_000_000_000);
    let out_of_range = |value| {
        let field = "the number of a requested block";
        PeerMisbehaved::ControlRecord(ControlFault::OutOfRange { field, value, valid: "a block that was sent" })
    };
    for (bytes, expected) in [
        (Request::Retransmit(1).bytes(), out_of_range(1)),
        (Request::RetransmitRange { first: 0, last: u32::MAX }.bytes(), out_of_range(u64::from(u32::MAX))),
        (Request::Restart(0x4000_0000).bytes(), out_of_range(0x4000_0000)),
        (Request::Stop.bytes(), PeerMisbehaved::ControlRecord(ControlFault::OutOfTurn("a stop record"))),
        ([9; 12], PeerMisbehaved::ControlRecord(ControlFault::UnknownType(0x0909))),
    ] {
        let mut wire = new();
        assert_eq!(wire.sender.handle_control(now, &bytes[..5]), Ok(()));
        assert_eq!(wire.sender.handle_control(now, &bytes[5..]), Err(expected));
    }
}

#[test]
fn requests_are_read_however_they_are_divided() {
    let requests = [Request::ErrorRate(5), Request::ErrorRate(70_000), Request::Retransmit(1)];
    let bytes: Vec<u8> = requests.iter().flat_map(|request| request.bytes()).collect();
    let now = Instant::from_nanos(2_000_000_000);
    for size in 1..=bytes.len() {
        let mut wire = Wire::<Tsunami>::new(&fixed(100), &Config::default(), Path::default(), 1);
        wire.sender.write(now, &[7; 10]);
        wire.sender.flush(now);
        let plan = wire.sender.plan(now).unwrap();
        wire.sender.emit(now, plan, &mut Vec::new());
        for piece in bytes.chunks(size) {
            wire.sender.handle_control(now, piece).unwrap();
        }
        let mut stats = Stats::default();
        wire.sender.fill_stats(now, &mut stats);
        let (records, asked) = (stats.totals.naks_received, stats.totals.packets_lost_sending);
        assert_eq!((records, asked), (3, 1), "pieces of {size}");
    }
}

/// A request for blocks around `number`, the last block that was sent.
fn request_near(rng: &mut Rng, number: u64) -> Request {
    let mut block = || rng.below(number + 1) as u32;
    let (one, two) = (block().max(1), block().max(1));
    match rng.below(4) {
        0 => Request::Retransmit(one),
        1 => Request::RetransmitRange { first: one, last: two },
        2 => Request::Restart(one),
        _ => Request::ErrorRate(rng.next_u32()),
    }
}

#[test]
fn requests_for_any_block_that_was_sent_do_no_harm() {
    let content = content(1_000_000);
    for seed in 0..30 {
        let mut rng = Rng::new(seed);
        let options = if seed % 2 == 0 { fixed(200) } else { Options::original(RateChoice::Fixed(megabits(200))) };
        let path = Path { loss: 0.02, ..path(1_000, 5) };
        let mut wire = Wire::<Tsunami>::new(&options, &Config::default(), path, seed);
        let (mut written, mut received) = (0, Vec::new());
        for step in 0.. {
            written += wire.sender.write(wire.now, &content[written..content.len().min(written + 50_000)]);
            if written == content.len() {
                wire.sender.flush(wire.now);
            }
            wire.step(&mut received).unwrap();
            if wire.sender.is_delivered() && received.len() == content.len() {
                break;
            }
            let mut stats = farhaul_proto::stats::Stats::default();
            wire.sender.fill_stats(wire.now, &mut stats);
            let first_sends = stats.totals.packets_sent - stats.totals.packets_retransmitted;
            if rng.chance(0.05) && first_sends > 0 && step < 5_000 {
                let request = request_near(&mut rng, first_sends);
                wire.sender.handle_control(wire.now, &request.bytes()).unwrap();
            }
            assert!(step < 1_000_000, "no end");
        }
        assert!(received == content, "{seed}");
    }
}

proptest! {
    #[test]
    fn no_bytes_make_an_end_panic(
        control in proptest::collection::vec(any::<u8>(), 0..200),
        datagrams in proptest::collection::vec((0u32..40, 0usize..3, 0usize..1_500), 0..60),
        noise in proptest::collection::vec(any::<u8>(), 0..100),
    ) {
        let mut wire = Wire::<Tsunami>::new(&fixed(100), &Config::default(), Path::default(), 1);
        wire.sender.write(wire.now, &[1; 100_000]);
        let mut received = Vec::new();
        for _ in 0..20 {
            wire.step(&mut received).unwrap();
        }
        let _ = wire.sender.handle_control(wire.now, &control);
        while let Some(plan) = wire.sender.plan(wire.now) {
            prop_assert!(wire.sender.emit(wire.now, plan, &mut Vec::new()).is_some());
        }
        for (shift, letter, length) in datagrams {
            let mut datagram = 1u32.checked_shl(shift).unwrap_or(u32::MAX).to_be_bytes().to_vec();
            datagram.extend([0, b"ORX"[letter]]);
            datagram.resize(6 + length, 9);
            wire.receiver.handle_datagram(wire.now, &datagram);
            wire.receiver.end_batch(wire.now);
        }
        prop_assert!(!wire.receiver.handle_datagram(wire.now, &noise) || noise.len() > 6);
        prop_assert_eq!(wire.receiver.handle_control(wire.now, &control).is_ok(), control.is_empty());
    }
}
