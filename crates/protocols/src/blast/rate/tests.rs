//! The search over a fluid model of a path: a link with a queue, random loss, and feedback every 10 ms.

use std::collections::VecDeque;

use farhaul_units::Rng;

use super::*;
use crate::blast::engine::Protocol;
use crate::blast::tests::testing::{Path, Wire, content};
use farhaul_proto::config::Config;

const TICK: Duration = Duration::from_millis(1);
const PACKET: f64 = 12_000.0;
/// The pause of a host whose buffer overflows.
const OUTAGE: Duration = Duration::from_millis(30);

/// A path.
#[derive(Clone, Copy, Debug)]
struct Fluid {
    capacity: f64,
    round_trip: Duration,
    /// Packets.
    queue: f64,
    loss: f64,
    /// The first rate, if an earlier profile told one.
    hint: Option<Rate>,
    /// Factor of the capacity in the second half of the time.
    change: f64,
    /// When everything is lost for 30 ms.
    outage: Option<Duration>,
}

/// Runs a search over a path. Returns the share of the capacity that arrived, and the share of what was sent that was
/// lost, in `time`.
fn run(path: Fluid, time: Duration, seed: u64) -> [f64; 2] {
    let mut control = RateControl::new(RateChoice::Auto, path.hint, path.round_trip);
    run_control(path, time, seed, &mut control, |_, _| {})
}

/// The same for a search in any state. `see` is shown time and rate.
fn run_control(
    mut path: Fluid,
    time: Duration,
    seed: u64,
    control: &mut RateControl,
    mut see: impl FnMut(Duration, f64),
) -> [f64; 2] {
    let start = Instant::from_nanos(1_000_000_000);
    let mut rng = Rng::new(seed);
    let (mut now, mut waiting, mut arrived, mut sent, mut lost) = (start, 0.0_f64, 0.0, 0.0, 0.0);
    let mut feedbacks: VecDeque<(Instant, Feedback)> = VecDeque::new();
    let mut next_feedback = start;
    let mut carried = 0.0;
    while now < start + time {
        let tick = TICK.as_secs_f64();
        if now >= start + time / 2 {
            path.capacity *= std::mem::replace(&mut path.change, 1.0);
        }
        carried += path.capacity * tick;
        let bits = control.rate().bits_per_second() as f64 * tick;
        sent += bits;
        // Bits on the wire, which include the headers that the control adds.
        control.on_sent(now, 0, (bits / 8.0) as usize);
        // Sums of many packets lose about their expectation, with a scatter.
        let packets = bits / PACKET;
        let scatter = libm::sqrt(packets * path.loss) * (rng.unit() + rng.unit() + rng.unit() - 1.5) * 2.0;
        let random = ((packets * path.loss + scatter) * PACKET).clamp(0.0, bits);
        let room = path.queue * PACKET + path.capacity * tick - waiting;
        let is_out = path.outage.is_some_and(|outage| (outage..outage + OUTAGE).contains(&(now - start)));
        let taken = if is_out { 0.0 } else { (bits - random).min(room) };
        lost += bits - taken;
        waiting += taken;
        let leaves = waiting.min(path.capacity * tick);
        waiting -= leaves;
        arrived += leaves;
        if now >= next_feedback {
            next_feedback = now + Duration::from_millis(10);
            let datagrams = (arrived / PACKET) as u64;
            let bytes = (arrived / 8.0) as u64 - datagrams * 36;
            // The forward and the return path take an RTT together.
            feedbacks.push_back((
                now + path.round_trip,
                Feedback { datagrams, bytes, clock: now - Instant::ZERO, ..Feedback::default() },
            ));
        }
        while feedbacks.front().is_some_and(|(at, _)| *at <= now) {
            if let Some((_, feedback)) = feedbacks.pop_front() {
                control.on_feedback(now, &feedback);
            }
        }
        now += TICK;
        see(now - start, control.rate);
    }
    [arrived / carried, lost / sent]
}

#[test]
fn a_fixed_rate_does_not_move() {
    let rate = Rate::from_bits_per_second(5_000_000);
    let mut control = RateControl::new(RateChoice::Fixed(rate), None, Duration::from_millis(10));
    let feedback = Feedback { clock: Duration::from_secs(1), ..Feedback::default() };
    control.on_feedback(Instant::ZERO, &feedback);
    assert_eq!(control.rate(), rate);
}

#[test]
fn the_search_fills_paths_drawn_at_random() {
    let mut rng = Rng::new(20_061_025);
    let between = |rng: &mut Rng, low: f64, high: f64| low * libm::pow(high / low, rng.unit());
    for seed in 0..40 {
        let capacity = between(&mut rng, 20e6, 2e9);
        let round_trip = Duration::from_secs_f64(between(&mut rng, 0.001, 0.2));
        let loss = if rng.unit() < 0.5 { 0.0 } else { between(&mut rng, 1e-6, 1e-3) };
        let queue = between(&mut rng, 50.0, 2_000.0);
        let path = Fluid { capacity, round_trip, queue, loss, hint: None, change: 1.0, outage: None };
        let [filled, _] = run(path, Duration::from_secs(60), seed);
        assert!(filled >= 0.95 * (1.0 - loss), "{filled} of {path:?}");
    }
}

/// A path of 300 Mbit/s and 50 ms, and what arrives in 40 RTTs with a search that begins at a hint.
fn filled_with_hint(hint: Option<f64>) -> f64 {
    let hint = hint.map(|bits| Rate::from_bits_per_second(bits as u64));
    let path = Fluid {
        capacity: 300e6,
        round_trip: Duration::from_millis(50),
        queue: 600.0,
        loss: 1e-4,
        hint,
        change: 1.0,
        outage: None,
    };
    run(path, Duration::from_secs(2), 7)[0]
}

#[test]
fn a_hint_that_is_right_saves_the_start() {
    assert!(filled_with_hint(Some(300e6)) > filled_with_hint(None));
}

#[test]
fn a_hint_ten_times_too_high_or_too_low_costs_a_few_rtts_at_most() {
    let right = filled_with_hint(Some(300e6));
    for wrong in [30e6, 3e9] {
        let lost = (right - filled_with_hint(Some(wrong))) * 40.0;
        assert!(lost < 4.0, "{lost} RTTs with a hint of {wrong} bit/s");
    }
}

/// Seconds until the rate is within a fifth of 300 Mbit/s, if the search stands at `rate`.
fn seconds_to_recover(rate: f64, round_trip: Duration) -> f64 {
    let path = Fluid { capacity: 300e6, round_trip, queue: 600.0, loss: 1e-3, hint: None, change: 1.0, outage: None };
    let mut control = RateControl::new(RateChoice::Auto, None, round_trip);
    control.rate = rate;
    control.finder.as_mut().unwrap().step = Step::Climb(Climb::new(rate));
    let mut reached = f64::INFINITY;
    run_control(path, Duration::from_secs(30), 1, &mut control, |time, rate| {
        if (240e6..360e6).contains(&rate) {
            reached = reached.min(time.as_secs_f64());
        }
    });
    reached
}

#[test]
fn a_search_recovers_from_any_rate_within_seconds() {
    for millis in [1, 20, 100] {
        for rate in [SLOWEST, 5e5, 5e6, 50e6, 3e9, FASTEST] {
            let seconds = seconds_to_recover(rate, Duration::from_millis(millis));
            // Eight packets a second leave at the slowest rate, so a first step takes four seconds there.
            assert!(seconds < 10.0, "{seconds} s from {rate} bit/s with an RTT of {millis} ms");
        }
    }
}

#[test]
fn a_hint_beyond_any_use_is_brought_into_bounds() {
    for bits in [0, 1, u64::MAX] {
        let hint = Some(Rate::from_bits_per_second(bits));
        let control = RateControl::new(RateChoice::Auto, hint, Duration::from_millis(20));
        assert!((SLOWEST..=FASTEST).contains(&control.rate), "{}", control.rate);
    }
}

#[test]
fn a_path_that_becomes_ten_times_faster_or_slower_is_filled_again_within_seconds() {
    for (change, least, most_lost) in [(10.0, 0.75, 0.05), (0.1, 0.9, 0.1)] {
        let round_trip = Duration::from_millis(20);
        let path = Fluid { capacity: 100e6, round_trip, queue: 200.0, loss: 1e-5, hint: None, change, outage: None };
        let [filled, lost] = run(path, Duration::from_secs(20), 1);
        assert!(filled >= least && lost <= most_lost, "{filled} filled and {lost} lost with {change}");
    }
}

#[test]
fn an_outage_while_the_rate_grows_is_no_limit_of_the_path() {
    for millis in 0..30 {
        let outage = Some(Duration::from_millis(10 * millis));
        let round_trip = Duration::from_millis(1);
        let path = Fluid { capacity: 2e9, round_trip, queue: 2_000.0, loss: 0.0, hint: None, change: 1.0, outage };
        let [filled, _] = run(path, Duration::from_secs(2), 1);
        assert!(filled >= 0.8, "{filled} filled with an outage at {outage:?}");
    }
}

#[test]
fn an_application_that_pauses_neither_raises_nor_lowers_the_rate() {
    let start = Instant::from_nanos(1_000_000_000);
    let mut control = RateControl::new(RateChoice::Auto, None, Duration::from_millis(20));
    let first = control.rate();
    for tick in 0..500_u64 {
        let now = start + Duration::from_millis(10) * tick as u32;
        control.on_sent(now, 1, 108);
        let clock = now - Instant::ZERO;
        let feedback = Feedback { datagrams: tick, bytes: tick * 100, clock, ..Feedback::default() };
        control.on_feedback(now, &feedback);
    }
    assert_eq!(control.rate(), first);
}

#[test]
fn counts_that_no_path_carries_keep_the_rate_within_its_bounds() {
    let mut control = RateControl::new(RateChoice::Auto, None, Duration::from_millis(20));
    for tick in 1..2_000_u64 {
        let datagrams = if tick % 2 == 0 { u64::MAX } else { 0 };
        let now = Instant::ZERO + Duration::from_millis(10) * tick as u32;
        control.on_sent(now, 64, 100_000);
        control.on_feedback(
            now,
            &Feedback { datagrams, bytes: datagrams, clock: now - Instant::ZERO, ..Feedback::default() },
        );
        assert!((SLOWEST..=FASTEST).contains(&control.rate), "{}", control.rate);
    }
}

/// Seconds that 25 MB take over 100 Mbit/s and 20 ms, from a first rate.
fn seconds<P: Protocol>(options: &P::Options, first: Option<u64>) -> f64 {
    let path = Path { rate: Some(Rate::from_megabits_per_second(100)), loss: 1e-4, queue: 200, ..Path::default() };
    let first_rate = first.map(Rate::from_megabits_per_second);
    let wire = Wire::<P>::new(options, &Config { first_rate, ..Config::default() }, path, 3);
    wire.transfer(&content(25_000_000), Duration::from_secs(60)).time.as_secs_f64()
}

/// A first rate ten times too high or too low costs less than 20 RTTs of 20 ms, repetitions and their rounds included.
fn withstands_wrong_first_rates<P: Protocol>(options: &P::Options) {
    let right = seconds::<P>(options, Some(100));
    for wrong in [10, 1_000] {
        let late = seconds::<P>(options, Some(wrong)) - right;
        assert!(late < 20.0 * 0.02, "{}: {late} s late of {right} s with {wrong} Mbit/s", P::NAME);
    }
}

#[test]
fn a_wrong_first_rate_does_not_harm_a_transfer_of_any_protocol() {
    withstands_wrong_first_rates::<crate::hurricane::Hurricane>(&Default::default());
    withstands_wrong_first_rates::<crate::rbudp::Rbudp>(&Default::default());
    withstands_wrong_first_rates::<crate::tsunami::Tsunami>(&Default::default());
    withstands_wrong_first_rates::<crate::fobs::Fobs>(&Default::default());
}
