//! Both engines over a path in virtual time.

use farhaul_units::{Duration, Instant, Rate};
use farhaul_wire::tsunami::Request;

use super::{Options, Tsunami};
use crate::blast::engine::Sender as _;
use crate::blast::rate::RateChoice;
use crate::blast::testing::{Outcome, Path, Wire, content};
use crate::config::Config;
use crate::error::{ControlFault, PeerMisbehaved};

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

#[test]
fn a_dedicated_gigabit_carries_what_the_paper_measured() {
    // paper:ornl table 1: Tsunami 919 Mbit/s over 1 Gbit/s and 11 ms, losses below 1e-3. 957 is the most of 1500 bytes.
    let path = Path { loss: 2e-4, queue: 2_000, ..path(1_000, 5) };
    let outcome = run(&fixed(990), path, 2_000_000_000, 3);
    let goodput = outcome.goodput() / 1e6;
    assert!(goodput >= 890.0, "{goodput} Mbit/s with the slow start of the original");
    let resent = outcome.sender.retransmission_ratio();
    assert!(resent < 1e-3, "{resent}");
}

#[test]
fn a_search_for_the_rate_fills_the_path_from_the_start() {
    let outcome = run(&Options::default(), path(1_000, 5), 500_000_000, 5);
    let goodput = outcome.goodput() / 1e6;
    assert!(goodput > 800.0, "{goodput} Mbit/s");
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
