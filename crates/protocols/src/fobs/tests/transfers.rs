//! Transfers over the test path.

use std::collections::BTreeSet;

use farhaul_units::Duration;

use super::{fixed, greedy};
use crate::blast::tests::testing::{Outcome, Path, megabits, transfer_whole};
use crate::fobs::{Fobs, Options, Pick};
use farhaul_proto::config::Config;

const LIMIT: Duration = Duration::from_secs(120);

/// Transfers `bytes` and checks that they arrive whole.
fn transfer(options: &Options, path: Path, bytes: usize, seed: u64) -> Outcome {
    transfer_whole::<Fobs>((options, &Config::default()), (path, seed), bytes, LIMIT)
}

// ---- the study's channel ----

#[test]
fn the_dedicated_channel_carries_more_than_the_708_megabits_of_the_paper() {
    let outcome = transfer(&fixed(1_000), Path::new(Duration::from_millis(11), 4e-5), 250_000_000, 5);
    assert!(outcome.goodput() > 900e6, "{}", outcome.goodput());
    assert!(outcome.lost > 0 && outcome.resent() < 4e-4, "{}", outcome.resent());
}

#[test]
fn each_loss_is_repeated_once() {
    for pick in [Pick::Circular, Pick::MissingFirst] {
        let options = Options { pick, ..fixed(500) };
        let outcome = transfer(&options, Path::new(Duration::from_millis(11), 5e-3), 40_000_000, 6);
        assert!(outcome.lost > 50);
        assert_eq!(outcome.sender.totals.packets_retransmitted, outcome.lost, "{pick:?}");
        assert_eq!(outcome.receiver.totals.packets_duplicate, 0, "{pick:?}");
    }
}

#[test]
fn objects_one_after_another_leave_the_path_idle_between_them() {
    let time = |overlap| {
        let options = Options { overlap, object: 5_000_000, ..fixed(500) };
        transfer(&options, Path::new(Duration::from_millis(50), 0.0), 40_000_000, 6).time
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
            let outcome = transfer(&options, Path::new(Duration::from_millis(millis), loss), 3_000_000, seed as u64);
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
    let outcome = transfer(&Options::default(), Path::new(Duration::from_millis(11), 4e-5), 150_000_000, 2);
    assert!(outcome.goodput() > 708e6, "{}", outcome.goodput());
}

#[test]
fn the_greedy_version_repeats_what_is_under_way() {
    let outcome = transfer(&greedy(500), Path::new(Duration::from_millis(11), 1e-3), 60_000_000, 3);
    let share = outcome.resent();
    // An RTT of 5.5 ms each way and one acknowledgement in 60 MB.
    assert!((0.002..0.05).contains(&share), "{share}");
    assert!(outcome.goodput() > 440e6, "{}", outcome.goodput());
}

// ---- the end of a transfer ----

#[test]
fn a_transfer_ends_though_its_last_datagrams_are_lost() {
    for options in [fixed(100), greedy(100)] {
        let round_trip = Duration::from_millis(20);
        // 100 packets and a short one. All from the 91st on are lost, and the first repetitions with them.
        let lost: BTreeSet<u64> = (90..120).collect();
        let outcome = transfer(&options, Path { lost, ..Path::new(round_trip, 0.0) }, 100 * 1_460 + 7, 1);
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
    transfer_whole::<Fobs>((&fixed(20), &config), (slow, 1), 2_000_000, LIMIT);
}

#[test]
fn duplicates_are_counted_and_late_datagrams_are_no_loss() {
    let late = (0.01, Duration::from_millis(2));
    let disturbed = Path { twice: 0.02, late, ..Path::new(Duration::from_millis(20), 0.0) };
    let outcome = transfer(&fixed(100), disturbed, 5_000_000, 1);
    assert!(outcome.receiver.totals.packets_duplicate > 20);
    assert_eq!(outcome.sender.totals.packets_retransmitted, 0);
}
