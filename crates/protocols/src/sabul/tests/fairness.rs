//! Figure B6: flows with first rates of 1:10 and RTTs of 1, 10 and 100 ms share a link.

use farhaul_units::{Duration, Rate};

use super::shared_link::{Link, SharedLink, jain};
use crate::sabul::{Generation, Options, Start};

/// RTTs in milliseconds.
const ROUND_TRIPS: [&[u64]; 7] =
    [&[1, 1], &[10, 10], &[100, 100], &[1, 100], &[1, 10, 100], &[10, 10, 10, 10], &[1, 10, 10, 100]];

/// Goodput of each flow in Mbit/s between two times in seconds.
fn shares(generation: Generation, start: Start, megabits: u64, round_trips: &[u64], seconds: [u64; 2]) -> Vec<f64> {
    let rate = |megabits: f64| Some(Rate::from_bits_per_second((megabits * 1e6) as u64));
    let flows = round_trips.len();
    let flow = |(number, &millis): (usize, &u64)| {
        // The first flow begins with a tenth of the last one's rate. Together they fill the link.
        let weight = 1.0 + 9.0 * number as f64 / (flows - 1) as f64;
        let first_rate = rate(megabits as f64 * weight / (5.5 * flows as f64)).filter(|_| start == Start::Original);
        (Options { generation, start, first_rate, ..Options::default() }, Duration::from_millis(millis))
    };
    let flows: Vec<_> = round_trips.iter().enumerate().map(flow).collect();
    let queue = (megabits * 5 / 2) as usize;
    let mut link = SharedLink::new(Link { rate: Rate::from_megabits_per_second(megabits), queue }, &flows);
    let [before, after] = seconds.map(|second| link.run_until(Duration::from_secs(second)));
    let time = (seconds[1] - seconds[0]) as f64;
    before.iter().zip(&after).map(|(before, after)| (after - before) as f64 * 8e-6 / time).collect()
}

#[test]
fn flows_of_release_2_1_share_a_link_whatever_their_round_trip_times_and_first_rates() {
    for round_trips in [&[1, 1][..], &[100, 100], &[1, 100], &[1, 10, 10, 100]] {
        let shares = shares(Generation::March2003, Start::Original, 100, round_trips, [25, 45]);
        let (index, sum) = (jain(&shares), shares.iter().sum::<f64>());
        assert!(index >= 0.95 && sum > 85.0, "{round_trips:?} ms: {shares:.1?}");
    }
}

/// The limit of that law: its increase has the power of ten above the packets per 10 ms. A flow below a power stays
/// small beside flows above it, because they grow ten times faster.
#[test]
fn a_flow_of_release_2_1_below_a_power_of_ten_stays_small_beside_flows_above() {
    let shares = shares(Generation::March2003, Start::Bounded, 100, &[1, 10, 100], [25, 45]);
    let least = shares.iter().copied().fold(f64::INFINITY, f64::min);
    // 10 packets in 10 ms are 12 Mbit/s, headers included.
    assert!(least < 12.0 && jain(&shares) < 0.95, "{shares:.1?}");
}

/// `cargo test -p farhaul-proto --lib -- --ignored --nocapture sabul::tests::fairness::table`
#[test]
#[ignore = "prints the figure and takes minutes"]
fn table() {
    for megabits in [100, 1_000] {
        for start in [Start::Original, Start::Bounded] {
            for (name, generation) in Generation::ALL {
                for round_trips in ROUND_TRIPS {
                    let seconds = if megabits == 100 { [60, 120] } else { [20, 60] };
                    let shares = shares(generation, start, megabits, round_trips, seconds);
                    let (index, sum) = (jain(&shares), shares.iter().sum::<f64>());
                    println!(
                        "{megabits} Mbit/s {start:?} {name} {round_trips:?} ms: Jain {index:.3}, {sum:.0} of it, {shares:.1?}"
                    );
                }
            }
        }
    }
}
