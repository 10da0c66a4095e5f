//! Records and datagrams that no peer sends, between Farhaul ends.

use farhaul_units::{Duration, Instant};
use farhaul_wire::blast::Tag;
use proptest::prelude::*;

use super::super::{Options, Sabul, Start};
use crate::blast::engine::{Prefix, Protocol, Receiver as _, Sender as _, Setup};
use crate::blast::tests::hostile::{any_path, assert_robust, assert_whole};
use farhaul_proto::config::Config;
use farhaul_proto::stats::Stats;

const NOW: Instant = Instant::from_nanos(1_000_000_000);
/// Most losses of one report (SABUL 2.1).
const MOST_LOSSES: u32 = 366;

fn setup(config: &Config) -> Setup<'_> {
    let round_trip = Duration::from_millis(10);
    Setup { config, datagram: 300, prefix: Prefix::Tag(Tag(7)), round_trip, now: NOW }
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// A sender whose first packets have left.
fn sending() -> <Sabul as Protocol>::Sender {
    let mut sender =
        Sabul::sender(&Options { start: Start::Original, ..Options::default() }, setup(&Config::default()));
    sender.write(NOW, &[1; 100_000]);
    let mut scratch = Vec::new();
    let plan = sender.plan(NOW).expect("it has data");
    sender.emit(NOW, plan, &mut scratch).expect("a plan has datagrams");
    sender
}

#[test]
fn an_acknowledgement_of_packets_that_never_left_is_refused() {
    assert!(sending().handle_control(NOW, &words(&[1, 90_000])).is_err());
    assert!(sending().handle_control(NOW, &words(&[1, 100_000_000])).is_err(), "no number of SABUL");
}

#[test]
fn losses_that_never_left_are_ignored_and_too_many_are_refused() {
    let mut sender = sending();
    sender.handle_control(NOW, &words(&[2, 2, 50_000, 99_999_999])).unwrap();
    let mut stats = Stats::default();
    sender.fill_stats(NOW, &mut stats);
    assert_eq!(stats.totals.packets_lost_sending, 0);
    assert!(sending().handle_control(NOW, &words(&[2, MOST_LOSSES + 1])).is_err());
    assert!(sending().handle_control(NOW, &words(&[2, u32::MAX])).is_err());
    assert!(sending().handle_control(NOW, &words(&[9, 0])).is_err(), "an unknown record");
}

#[test]
fn a_packet_far_ahead_takes_no_memory() {
    let config = Config { recv_buffer: 1 << 20, ..Config::default() };
    let Ok(mut receiver) = Sabul::receiver(&Options::default(), &Sabul::hello(&Options::default()), setup(&config))
    else {
        panic!("its own hello")
    };
    for number in [49_000_000_u32, 26_000, 99_999_999, u32::MAX] {
        receiver.handle_datagram(NOW, &[&number.to_be_bytes()[..], &[2; 250]].concat());
        receiver.end_batch(NOW);
    }
    let mut stats = Stats::default();
    receiver.fill_stats(NOW, &mut stats);
    assert!(stats.memory < 1 << 20, "{} bytes", stats.memory);
    assert_eq!(receiver.available(), 0);
}

fn any_options() -> impl Strategy<Value = Options> {
    prop_oneof![Just(Options::default()), Just(Options::original())]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn any_path_delivers_the_bytes(options in any_options(), path in any_path(), bytes in 0usize..200_000, seed: u64) {
        assert_whole::<Sabul>(&options, path, bytes, seed);
    }
}

proptest! {
    #[test]
    fn no_peer_makes_an_engine_panic_or_grow(options in any_options(), seed: u64) {
        assert_robust::<Sabul>(&options, seed, 4);
    }
}
