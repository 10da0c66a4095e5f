//! The engines over a path in virtual time, and against records and datagrams that no peer sends.

mod hostile;
mod objects;
mod transfers;

use farhaul_units::{Duration, Instant, SeqNo, SeqRange};
use farhaul_wire::fobs::{Segment, encode_done, encode_segment};
use proptest::prelude::*;

use super::*;
use crate::blast::engine::{Receiver as _, Sender as _};
use crate::blast::tests::hostile::{any_path, assert_robust, assert_whole};
use crate::blast::tests::testing::{content, megabits, setup};
use farhaul_proto::config::Config;
use farhaul_proto::stats::Stats;

fn fixed(rate: u64) -> Options {
    Options { rate: RateChoice::Fixed(megabits(rate)), ..Options::default() }
}

fn greedy(rate: u64) -> Options {
    Options { version: Version::Greedy, ..fixed(rate) }
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

// ---- at random ----

fn any_options() -> impl Strategy<Value = Options> {
    let rate = prop_oneof![Just(RateChoice::Auto), (1u64..1_000).prop_map(|rate| RateChoice::Fixed(megabits(rate)))];
    // No rate fixes the loss of a batch that exceeds the shortest queue.
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
