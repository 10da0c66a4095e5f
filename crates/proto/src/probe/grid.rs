//! The points of a throughput profile for a path of unknown capacity.
//!
//! paper:ornl §2.2 chose its grid by hand. Here a short search doubles the rate until less arrives than leaves. The grid
//! then lies around the capacity that the search has seen.

use core::f64::consts::SQRT_2;

use farhaul_units::{Duration, Rate};

use super::blaster::{BlasterConfig, BlasterFigures};

/// The first rate of the search. Slower paths show their capacity by the first step.
const FIRST: u64 = 1_000_000;
/// How long each step of the search sends: twenty bursts, or two datagrams of a path of 1 Mbit/s with large datagrams.
const STEP: Duration = Duration::from_millis(200);
/// Time between the bursts of the search. Timers keep it within a few per cent.
const PAUSE: Duration = Duration::from_millis(1);
/// The path is full when less than this share of a step arrives.
const ARRIVES: f64 = 0.9;
/// The host is the limit when it sends less than this share of what the step demands.
const LEAVES: f64 = 0.7;

/// Finds the capacity of a path by doubling the rate.
#[derive(Clone, Copy, Debug)]
pub struct Search {
    datagram: u16,
    /// The rate of the next step, bit/s. `None` once the path or the host is full.
    next: Option<u64>,
    /// The step at this rate fell short once.
    fell_short: bool,
    best: Rate,
}

impl Search {
    /// A search with datagrams of this many bytes.
    pub fn new(datagram: u16) -> Self {
        Self { datagram, next: Some(FIRST), fell_short: false, best: Rate::ZERO }
    }

    /// The next step. `None` once the search is over.
    pub fn step(&self) -> Option<BlasterConfig> {
        let bits = u64::from(self.datagram) * 8;
        let rate = self.next?;
        let in_pause = Rate::from_bits_per_second(rate).bytes_in(PAUSE) * 8;
        let window = (in_pause / bits).clamp(1, u64::from(u16::MAX)) as u32;
        let sleep = Duration::from_secs_f64((u64::from(window) * bits) as f64 / rate as f64);
        Some(point(self.datagram, (window, sleep), STEP))
    }

    /// Takes the result of a step. One that falls short is repeated: a host that other programs keep busy for some
    /// milliseconds falls short once, a full path each time.
    pub fn take(&mut self, figures: &BlasterFigures) {
        let Some(rate) = self.next else { return };
        // A path that is not full delivers at the rate of the source. Its first and last datagram say less about it.
        let full = |of: f64, share: f64, is: Rate| (is.bits_per_second() as f64) < of * share;
        let is_full =
            full(figures.rate.bits_per_second() as f64, ARRIVES, figures.goodput) || figures.loss > 1.0 - ARRIVES;
        self.best = self.best.max(if is_full { figures.goodput } else { figures.rate.min(figures.goodput) });
        let is_host = full(rate as f64, LEAVES, figures.rate);
        let falls_short = is_full || is_host;
        self.next = match (falls_short, self.fell_short) {
            (false, _) => rate.checked_mul(2),
            (true, false) => Some(rate),
            (true, true) => None,
        };
        self.fell_short = falls_short;
    }

    /// The greatest goodput so far: about the capacity of the path, once the search is over.
    pub fn capacity(&self) -> Rate {
        self.best
    }
}

/// The sleep at which the smallest burst has the rate of the path. Timers of a few microseconds keep it.
const FULL_SLEEP: Duration = Duration::from_micros(250);
/// The largest of the smallest bursts: one train for the kernel.
const MOST_IN_BURST: u64 = 64;
/// Bursts of the grid, in smallest bursts.
const WINDOWS: [u32; 3] = [1, 2, 4];
/// Sleeps of the grid, in sleeps at which the smallest burst has the rate of the path. Neighbours differ by √2, so the
/// grid spans 1/8 to 2.8 of the capacity, and points of equal rates have different bursts.
const SLEEPS: [f64; 6] = [8.0, 4.0 * SQRT_2, 4.0, 2.0 * SQRT_2, 2.0, SQRT_2];
/// Rates near the capacity, as shares of it: the edge of the plateau lies among them.
const NEAR: [f64; 8] = [0.8, 0.85, 0.9, 0.95, 1.0, 1.05, 1.15, 1.3];

/// The points of a profile, as pairs of W_c and T_s. `windows` and `sleeps` replace those of the grid around `capacity`.
/// Without them, points near the capacity follow.
pub fn grid(datagram: u16, capacity: Rate, windows: &[u32], sleeps: &[Duration]) -> Vec<(u32, Duration)> {
    let bits = u64::from(datagram) * 8;
    let capacity = capacity.max(Rate::from_bits_per_second(1));
    let smallest = (capacity.bytes_in(FULL_SLEEP) * 8).div_ceil(bits).clamp(1, MOST_IN_BURST);
    let sleep_at = |share: f64| rounded((smallest * bits) as f64 / capacity.bits_per_second() as f64 / share);
    let found_windows: Vec<u32> = WINDOWS.iter().map(|factor| factor * smallest as u32).collect();
    let found_sleeps: Vec<Duration> = SLEEPS.iter().map(|factor| sleep_at(1.0 / factor)).collect();
    let windows_of = if windows.is_empty() { &found_windows[..] } else { windows };
    let sleeps_of = if sleeps.is_empty() { &found_sleeps[..] } else { sleeps };
    let mut points: Vec<(u32, Duration)> =
        windows_of.iter().flat_map(|window| sleeps_of.iter().map(move |sleep| (*window, *sleep))).collect();
    if windows.is_empty() && sleeps.is_empty() {
        points.extend(NEAR.iter().map(|share| (found_windows[0], sleep_at(*share))));
    }
    points
}

/// A time with three significant digits, whole microseconds.
fn rounded(seconds: f64) -> Duration {
    let micros = seconds * 1e6;
    let step = libm::pow(10.0, (libm::log10(micros.max(1.0)).floor() - 2.0).max(0.0));
    Duration::from_micros(((micros / step).round() * step) as u64)
}

/// The settings of a point that sends for `time`.
fn point(datagram: u16, (window, sleep): (u32, Duration), time: Duration) -> BlasterConfig {
    BlasterConfig { datagram, window, sleep, spaced: false, messages: false, time }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The outcome of a step on a path of this capacity, from a host of this speed.
    fn result(step: &BlasterConfig, capacity: f64, host: f64) -> BlasterFigures {
        let wanted = f64::from(step.window) * f64::from(step.datagram) * 8.0 / step.sleep.as_secs_f64();
        let rate = wanted.min(host);
        let goodput = rate.min(capacity);
        let bits = |value: f64| Rate::from_bits_per_second(value as u64);
        BlasterFigures {
            rate: bits(rate),
            goodput: bits(goodput),
            loss: 1.0 - goodput / rate,
            ..BlasterFigures::default()
        }
    }

    fn search(capacity: f64, host: f64) -> (f64, u32) {
        let (mut search, mut steps) = (Search::new(1_472), 0);
        while let Some(step) = search.step() {
            search.take(&result(&step, capacity, host));
            steps += 1;
        }
        (search.capacity().bits_per_second() as f64, steps)
    }

    #[test]
    fn doubling_ends_at_the_path_or_at_the_host() {
        for (capacity, host, steps) in
            [(0.3e6, 40e9, 2), (20e6, 40e9, 7), (1e9, 40e9, 13), (1e12, 5e9, 15), (9.6e8, 9.7e8, 13)]
        {
            let (found, took) = search(capacity, host);
            assert!((found / capacity.min(host) - 1.0).abs() < 0.02, "{capacity}: {found}");
            assert_eq!(took, steps, "{capacity}");
        }
    }

    #[test]
    fn a_step_without_an_answer_that_counts_ends_the_search() {
        let mut search = Search::new(1_472);
        search.take(&BlasterFigures::default());
        search.take(&BlasterFigures::default());
        assert_eq!((search.step(), search.capacity()), (None, Rate::ZERO));
    }

    #[test]
    fn steps_that_fall_short_once_do_not_end_the_search() {
        let (mut search, mut taken) = (Search::new(1_472), 0);
        while let Some(step) = search.step() {
            taken += 1;
            // Every third step, something else keeps the host busy.
            let host = if taken % 3 == 0 { 0.3e6 } else { 40e9 };
            search.take(&result(&step, 50e6, host));
        }
        assert!((search.capacity().bits_per_second() as f64 / 50e6 - 1.0).abs() < 0.02, "{:?}", search.capacity());
    }

    #[test]
    fn the_grid_spans_the_capacity_with_different_bursts() {
        for capacity in [1e6, 20e6, 950e6, 9.6e9] {
            let points = grid(1_472, Rate::from_bits_per_second(capacity as u64), &[], &[]);
            assert_eq!(points.len(), WINDOWS.len() * SLEEPS.len() + NEAR.len());
            let rates: Vec<f64> = points
                .iter()
                .map(|(window, sleep)| f64::from(*window) * 11_776.0 / sleep.as_secs_f64() / capacity)
                .collect();
            let (low, high) =
                rates.iter().fold((9.0_f64, 0.0_f64), |(low, high), rate| (low.min(*rate), high.max(*rate)));
            assert!((low - 0.125).abs() < 0.01 && (high - 2.83).abs() < 0.1, "{capacity}: {low} {high}");
            assert!(rates.iter().filter(|rate| (0.85..1.06).contains(*rate)).count() >= 4, "{rates:?}");
        }
    }

    #[test]
    fn lists_replace_the_grid() {
        let sleeps = [Duration::ZERO, Duration::from_micros(100)];
        let points = grid(1_472, Rate::from_bits_per_second(1_000_000_000), &[1, 5], &sleeps);
        assert_eq!(points, [(1, sleeps[0]), (1, sleeps[1]), (5, sleeps[0]), (5, sleeps[1])]);
        assert_eq!(grid(1_472, Rate::ZERO, &[3], &[]).len(), SLEEPS.len());
    }

    #[test]
    fn sleeps_are_round() {
        let micros = [12_346.0, 1_414.2, 99.6, 0.2].map(|micros| rounded(micros / 1e6).as_micros());
        assert_eq!(micros, [12_300, 1_410, 100, 0]);
    }
}
