//! Each law beside the code of the Linux kernel that ns-2 runs. `cargo xtask interop --ns2`.

use anyhow::{Result, bail};

use super::statistics::Difference;
use super::tools::{Case, CaseResult, Tools};

/// The laws that ns-2 has as well, under the same names.
const LAWS: [(&str, &str); 10] = [
    ("reno", "linux-reno"),
    ("cubic", "linux-cubic"),
    ("highspeed", "linux-highspeed"),
    ("scalable", "linux-scalable"),
    ("htcp", "linux-htcp"),
    ("bic", "linux-bic"),
    ("westwood", "linux-westwood"),
    ("illinois", "linux-illinois"),
    ("hybla", "linux-hybla"),
    ("vegas", "linux-vegas"),
];
const RATES_MBIT: [u32; 2] = [100, 1_000];
const ROUND_TRIPS_MS: [u32; 2] = [20, 100];
/// Queues in BDP.
const QUEUES: [f64; 3] = [0.1, 0.5, 1.0];
const LOSSES: [&str; 4] = ["0", "0.00001", "0.0001", "0.001"];
/// When a second flow begins, s.
const SECONDS_FLOW: [Option<u32>; 2] = [None, Some(20)];
/// Seeds of a cell with random loss.
const SEEDS: u32 = 4;
/// Bytes of a packet.
const PACKET: f64 = 1_500.0;
/// Largest difference of the goodput of all flows, unless its 95 % interval contains zero.
const MOST: f64 = 0.10;
/// The receiver's window, packets.
const WINDOW: u32 = 1_000_000;

/// Measures, prints, and returns the number of cells that differ. `laws` chooses some; none chooses all.
pub(crate) fn run(tools: &Tools, laws: &[String], quick: bool) -> Result<usize> {
    if let Some(unknown) = laws.iter().find(|law| LAWS.iter().all(|(name, _)| name != law)) {
        bail!("ns-2 has no law '{unknown}': {}", LAWS.map(|(name, _)| name).join(", "));
    }
    println!("goodput of all flows, Mbit/s, and the share of the second one, which begins after 20 s\n");
    println!(
        "{:<10} {:>9} {:>7} {:>6} {:>6} {:>6}  {:>8} {:>8} {:>8}  {:>6} {:>6}",
        "law", "link", "RTT", "queue", "loss", "flows", "farhaul", "ns-2", "differs", "share", "ns-2"
    );
    let mut differing = 0;
    for (law, recovery) in LAWS.into_iter().filter(|(name, _)| laws.is_empty() || laws.iter().any(|law| law == name)) {
        for rate_mbit in RATES_MBIT.into_iter().filter(|rate| !quick || *rate == RATES_MBIT[0]) {
            for round_trip in ROUND_TRIPS_MS {
                for (queue, loss, second) in cells() {
                    let cell = Cell { law, recovery, rate_mbit, round_trip, queue, loss, second };
                    differing += usize::from(!cell.compare(tools)?);
                }
            }
        }
    }
    println!("\n{differing} cells differ by more than {:.0} %", 100.0 * MOST);
    Ok(differing)
}

fn cells() -> impl Iterator<Item = (f64, &'static str, Option<u32>)> {
    let with_loss = QUEUES.into_iter().flat_map(|queue| LOSSES.map(|loss| (queue, loss)));
    with_loss.flat_map(|(queue, loss)| SECONDS_FLOW.map(|second| (queue, loss, second)))
}

struct Cell {
    law: &'static str,
    recovery: &'static str,
    rate_mbit: u32,
    round_trip: u32,
    queue: f64,
    loss: &'static str,
    second: Option<u32>,
}

impl Cell {
    fn case(&self, seed: u32) -> Case {
        let bdp = f64::from(self.rate_mbit) * f64::from(self.round_trip) * 1e3 / 8.0 / PACKET;
        // ns-2 repairs the first overshoot of a fast slow start for up to 95 s, and acknowledges nothing meanwhile. More packets at the
        // fast rate would take hours.
        let (seconds, cut) = if self.rate_mbit > RATES_MBIT[0] { (120, 80) } else { (200, 100) };
        Case {
            recovery: self.recovery,
            rate_mbit: self.rate_mbit,
            delay_ms: self.round_trip / 2,
            queue: (bdp * self.queue).round() as u32,
            loss: self.loss,
            seed,
            seconds,
            cut,
            window: WINDOW,
            second: self.second,
        }
    }

    /// Runs both simulators, and prints a line. Returns whether they agree.
    fn compare(&self, tools: &Tools) -> Result<bool> {
        let seeds = if self.loss == "0" { 1 } else { SEEDS };
        let cases: Vec<Case> = (1..=seeds).map(|seed| self.case(seed)).collect();
        let results = tools.simulate_both(&cases)?;
        let counted = f64::from(cases[0].seconds - cases[0].cut);
        let goodput = |results: &[CaseResult]| -> Vec<f64> {
            results.iter().map(|result| result.segments as f64 * 1_460.0 * 8.0 / counted / 1e6).collect()
        };
        let share = |results: &[CaseResult]| {
            let (last, all) =
                results.iter().fold((0, 0), |sum, result| (sum.0 + result.of_last, sum.1 + result.segments));
            if self.second.is_some() { format!("{:.2}", last as f64 / all.max(1) as f64) } else { String::new() }
        };
        let difference = Difference::of(&goodput(&results[0]), &goodput(&results[1]));
        let agrees = difference.relative.abs() <= MOST || difference.may_be_zero();
        println!(
            "{:<10} {:>4} Mbit {:>4} ms {:>6} {:>6} {:>6}  {:>8.1} {:>8.1} {:>+6.1} %  {:>6} {:>6} {}",
            self.law,
            self.rate_mbit,
            self.round_trip,
            self.queue,
            self.loss.parse::<f64>()?,
            if self.second.is_some() { 2 } else { 1 },
            difference.ours,
            difference.theirs,
            100.0 * difference.relative,
            share(&results[0]),
            share(&results[1]),
            if agrees { "" } else { "DIFFERS" }
        );
        Ok(agrees)
    }
}
