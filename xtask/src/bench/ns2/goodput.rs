//! Goodput of each recovery on two links, without loss and with three loss rates.

use anyhow::Result;

use super::statistics::Difference;
use super::tools::{Case, Tools};

const RECOVERIES: [&str; 4] = ["tahoe", "reno", "newreno", "sack"];

/// A link: rate, one-way delay, queue.
#[derive(Clone, Copy, Debug)]
struct Link {
    rate_mbit: u32,
    delay_ms: u32,
    queue: u32,
    /// Number of seeds at the smallest loss rate.
    rare_loss_seeds: u32,
}

/// A slow link with a queue of three BDP, and a fast long one with a queue of one. Their BDP is 67 and 1667 packets, so
/// windows overflow the queues even without random loss. A run on the fast link has only thirty losses at the smallest
/// rate, so single runs vary widely.
const LINKS: [Link; 2] = [
    Link { rate_mbit: 10, delay_ms: 10, queue: 50, rare_loss_seeds: SEEDS },
    Link { rate_mbit: 100, delay_ms: 50, queue: 832, rare_loss_seeds: 2 * SEEDS },
];

const NO_LOSS: &str = "0";
const RARE_LOSS: &str = "0.0001";
const LOSSES: [&str; 4] = [NO_LOSS, RARE_LOSS, "0.001", "0.01"];
const SEEDS: u32 = 20;

/// Largest difference of the means without loss, and with loss.
const WITHOUT_LOSS: f64 = 0.03;
const WITH_LOSS: f64 = 0.05;

const SECONDS: u32 = 300;
const CUT: u32 = 60;
const SEGMENT: u64 = 1_460;

/// Measures, prints, and returns the number of rows that do not hold.
pub(super) fn run(tools: &Tools, quick: bool) -> Result<usize> {
    println!(
        "\ngoodput, Mbit/s: {CUT} s to {SECONDS} s; without loss within 3 %, with loss within 5 % or 0 in the 95 % interval\n"
    );
    let head = ["link", "loss", "recovery", "seeds", "farhaul", "ns-2", "difference", "95 % interval", ""];
    print_row(head.map(str::to_owned));
    let mut unmet = 0;
    for link in LINKS {
        for loss in LOSSES {
            for recovery in RECOVERIES {
                let seeds = if quick { seeds(link, loss).min(2) } else { seeds(link, loss) };
                let [ours, theirs] = measure(tools, link, loss, recovery, seeds)?;
                let difference = Difference::of(&ours, &theirs);
                let holds = holds(&difference, loss == NO_LOSS);
                unmet += usize::from(!holds);
                print_row(row(link, loss, recovery, seeds, &difference, holds));
            }
        }
    }
    Ok(unmet)
}

/// Number of seeds of a row. Without loss nothing is random.
fn seeds(link: Link, loss: &str) -> u32 {
    match loss {
        NO_LOSS => 1,
        RARE_LOSS => link.rare_loss_seeds,
        _ => SEEDS,
    }
}

fn holds(difference: &Difference, lossless: bool) -> bool {
    if lossless {
        difference.relative.abs() <= WITHOUT_LOSS
    } else {
        difference.relative.abs() <= WITH_LOSS || difference.may_be_zero()
    }
}

/// Goodput by seed in both simulators.
fn measure(tools: &Tools, link: Link, loss: &'static str, recovery: &'static str, seeds: u32) -> Result<[Vec<f64>; 2]> {
    let Link { rate_mbit, delay_ms, queue, .. } = link;
    let (seconds, cut, window) = (SECONDS, CUT, 1_000_000);
    let case = |seed| Case { recovery, rate_mbit, delay_ms, queue, loss, seed, seconds, cut, window, second: None };
    let results = tools.simulate_both(&(1..=seeds).map(case).collect::<Vec<_>>())?;
    Ok(results.map(|results| results.iter().map(|result| megabits(result.segments)).collect()))
}

fn megabits(segments: u64) -> f64 {
    (segments * SEGMENT * 8) as f64 / f64::from(SECONDS - CUT) / 1e6
}

fn row(link: Link, loss: &str, recovery: &str, seeds: u32, difference: &Difference, holds: bool) -> [String; 9] {
    let percent = |share: f64| format!("{:+.2} %", 100.0 * share);
    let Difference { ours, theirs, relative, half_width } = *difference;
    let interval = if seeds > 1 {
        format!("{} .. {}", percent(relative - half_width), percent(relative + half_width))
    } else {
        String::new()
    };
    [
        format!("{} Mbit/s {} ms q {}", link.rate_mbit, 2 * link.delay_ms, link.queue),
        loss.to_owned(),
        recovery.to_owned(),
        seeds.to_string(),
        format!("{ours:.3}"),
        format!("{theirs:.3}"),
        percent(relative),
        interval,
        if holds { "holds" } else { "DOES NOT HOLD" }.to_owned(),
    ]
}

fn print_row([link, loss, recovery, seeds, ours, theirs, difference, interval, verdict]: [String; 9]) {
    println!(
        "{link:<24} {loss:>7} {recovery:<8} {seeds:>5} {ours:>9} {theirs:>9} {difference:>10} {interval:>21} {verdict}"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_holds_within_its_bound_or_its_interval() {
        let difference = |relative, half_width| Difference { ours: 1.0, theirs: 1.0, relative, half_width };
        assert!(holds(&difference(-0.029, 0.0), true) && !holds(&difference(0.031, 0.5), true));
        assert!(holds(&difference(-0.05, 0.0), false) && holds(&difference(0.08, 0.09), false));
        assert!(!holds(&difference(0.08, 0.07), false));
    }
}
