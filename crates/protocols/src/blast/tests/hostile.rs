//! Random paths and random peers for the tests of the engines.

use farhaul_units::{Duration, Instant, Rate, Rng};
use farhaul_wire::blast::Tag;
use proptest::prelude::*;

use super::testing::{Path, Wire, content};
use crate::blast::engine::{Feedback, Prefix, Protocol, Receiver, Sender, Setup};
use farhaul_proto::config::Config;
use farhaul_proto::stats::Stats;

/// Most steps of an engine that random inputs drive.
const STEPS: usize = 200;

/// A path that loses, delays and repeats datagrams.
pub(crate) fn any_path() -> impl Strategy<Value = Path> {
    let link = (1u64..500, 0u64..60_000, 5usize..500);
    let faults = (0.0..0.2f64, 0.0..0.1f64, 0.0..0.1f64, 0u64..30_000);
    (link, faults, any::<bool>(), prop_oneof![Just(1_472usize), 200usize..9_000]).prop_map(
        |((megabits, delay, queue), (loss, twice, late, late_by), slow, datagram)| Path {
            rate: Some(Rate::from_megabits_per_second(megabits)),
            delay: Duration::from_micros(delay),
            queue,
            datagram,
            loss,
            twice,
            late: (late, Duration::from_micros(late_by)),
            reader: slow.then_some(2_000_000),
            ..Path::default()
        },
    )
}

/// Bytes of a transfer arrive whole and in order.
pub(crate) fn assert_whole<P: Protocol>(options: &P::Options, path: Path, bytes: usize, seed: u64) {
    let content = content(bytes);
    let outcome = Wire::<P>::new(options, &Config::default(), path, seed).transfer(&content, Duration::from_secs(600));
    assert!(outcome.received == content, "the bytes differ");
}

/// Engines take any bytes and times without a panic, without endless work, and within a bound of memory.
pub(crate) fn assert_robust<P: Protocol>(options: &P::Options, seed: u64, kinds: u64) {
    let config = Config { recv_buffer: 1 << 20, send_buffer: 1 << 20, ..Config::default() };
    let mut rng = Rng::new(seed);
    let mut now = Instant::from_nanos(1_000_000_000);
    let setup = |rng: &mut Rng| {
        let round_trip = Duration::from_millis(rng.below(50));
        // The numbers of known runs count one more draw.
        let _ = rng.fork();
        Setup { config: &config, datagram: 300, prefix: Prefix::Tag(Tag(7)), round_trip, now }
    };
    let mut sender = P::sender(options, setup(&mut rng));
    let Ok(mut receiver) = P::receiver(options, &P::hello(options), setup(&mut rng)) else { panic!("its own hello") };
    let (mut scratch, mut out) = (Vec::new(), Vec::new());
    // An engine whose peer misbehaved is thrown away. So its errors end it here too.
    let mut alive = [true; 2];
    for _ in 0..STEPS {
        now += Duration::from_micros(rng.below(20_000));
        match rng.below(8) {
            0 => drop(sender.write(now, &vec![1; rng.below(5_000) as usize])),
            1 => sender.flush(now),
            2 if alive[0] => alive[0] = sender.handle_control(now, &record(&mut rng, kinds)).is_ok(),
            3 if alive[1] => alive[1] = receiver.handle_control(now, &record(&mut rng, kinds)).is_ok(),
            4 => {
                let number = word(&mut rng).to_be_bytes();
                let datagram = [&number[..], &vec![2; rng.below(300) as usize]].concat();
                receiver.handle_datagram(now, &datagram);
                receiver.end_batch(now);
            }
            5 => sender.on_delivered(now, rng.below(10_000)),
            6 => {
                let feedback = Feedback {
                    datagrams: rng.next_u64(),
                    bytes: rng.next_u64() >> 8,
                    clock: now - Instant::ZERO,
                    ..Feedback::default()
                };
                sender.on_feedback(now, &feedback);
            }
            _ => drop(receiver.read(&mut vec![0; rng.below(5_000) as usize])),
        }
        sender.handle_timeout(now);
        receiver.handle_timeout(now);
        send_all(&mut sender, now, &mut scratch);
        out.clear();
        sender.poll_control(now, &mut out);
        receiver.poll_control(now, &mut out);
        assert!(out.len() < 1 << 20, "{} bytes of records at once", out.len());
        assert!(sender.deadline().is_none_or(|at| at >= Instant::ZERO) && receiver.available() <= 1 << 20);
    }
    let mut stats = Stats::default();
    sender.fill_stats(now, &mut stats);
    receiver.fill_stats(now, &mut stats);
    assert!(stats.memory < 8 << 20, "{} bytes held", stats.memory);
}

/// Everything that may leave now leaves, and that is not without end.
fn send_all(sender: &mut impl Sender, now: Instant, scratch: &mut Vec<u8>) {
    let mut trains = 0;
    while let Some(plan) = sender.plan(now) {
        let (size, bytes) = sender.emit(now, plan, scratch).expect("a plan has datagrams");
        assert_eq!(bytes.chunks(size).count(), plan.packets as usize);
        trains += 1;
        assert!(trains < 10_000, "endless work");
    }
}

/// A record of one of `kinds` types from 1 on, with fields near the numbers in use.
fn record(rng: &mut Rng, kinds: u64) -> Vec<u8> {
    let mut bytes = vec![1 + rng.below(kinds) as u8];
    if rng.chance(0.3) {
        bytes.extend_from_slice(&(1 + rng.below(3) as u16).to_be_bytes());
    }
    for _ in 0..rng.below(8) {
        bytes.extend_from_slice(&word(rng).to_be_bytes());
    }
    bytes
}

/// Mostly a small number, rarely any.
fn word(rng: &mut Rng) -> u32 {
    if rng.chance(0.9) { rng.below(60) as u32 } else { rng.next_u32() }
}
