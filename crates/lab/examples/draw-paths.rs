//! Draws paths at random and prints them as values of an axis, for figure E-auto.
//!
//! ```text
//! cargo run -p farhaul-lab --example draw-paths -- SEED COUNT
//! ```

use std::process::ExitCode;

use farhaul_units::Rng;

/// Rates of the bottleneck, bit/s.
const RATES: (f64, f64) = (20e6, 2e9);
/// Round-trip times, seconds.
const ROUND_TRIPS: (f64, f64) = (0.001, 0.2);
/// Shares lost at random on half of the paths. The others lose nothing.
const LOSSES: (f64, f64) = (1e-6, 1e-3);
/// Queues, in bandwidth-delay products.
const QUEUES: (f64, f64) = (0.25, 2.0);
/// Shortest queue, packets: that of the lab's links.
const SHORTEST_QUEUE: f64 = 100.0;
/// Shortest transfer at full rate: so many seconds, and so many round-trip times.
const SHORTEST_TRANSFER: (f64, f64) = (10.0, 100.0);
/// Time for a transfer, as a multiple of its shortest.
const PATIENCE: f64 = 2.0;

fn main() -> ExitCode {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<u64>());
    let (Some(Ok(seed)), Some(Ok(count)), None) = (numbers.next(), numbers.next(), numbers.next()) else {
        eprintln!("usage: draw-paths SEED COUNT");
        return ExitCode::from(2);
    };
    for line in draw(seed, count) {
        println!("    {line}");
    }
    ExitCode::SUCCESS
}

/// The values of an axis, one line each.
pub(crate) fn draw(seed: u64, count: u64) -> Vec<String> {
    let mut rng = Rng::new(seed);
    (1..=count).map(|number| path(number, &mut rng)).collect()
}

fn path(number: u64, rng: &mut Rng) -> String {
    let mut between = |(low, high): (f64, f64)| low * libm::pow(high / low, rng.unit());
    // Whole kbit/s, tens of microseconds and two digits of a loss: as they are printed, so they are run.
    let rate = (between(RATES) / 1e3).round() * 1e3;
    let round_trip = (between(ROUND_TRIPS) * 1e5).round() / 1e5;
    let product = rate * round_trip / 12e3;
    let queue = (product * between(QUEUES)).round().max(SHORTEST_QUEUE);
    let lossy = between((1.0, 4.0)) >= 2.0;
    // A path without losses draws one, too, so that what follows does not depend on it.
    let loss = between(LOSSES);
    let loss = if lossy { format!("{loss:.1e}") } else { "0".to_owned() };
    let time = SHORTEST_TRANSFER.0.max(SHORTEST_TRANSFER.1 * round_trip);
    let megabytes = (rate * time / 8e6).ceil();
    format!(
        "{{ label = {number}, \"link.rate\" = \"{:.0}kbit\", \"link.rtt\" = \"{:.0}us\", \"link.loss\" = {loss}, \
         \"link.queue\" = {queue:.0}, \"flow.file.bytes\" = \"{megabytes:.0}MB\", duration = \"{:.0}s\" }},",
        rate / 1e3,
        round_trip * 1e6,
        (time * PATIENCE).ceil(),
    )
}
