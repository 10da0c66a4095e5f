//! A throughput profile: goodput and loss over the sending rate, its shape, and the best rate (paper:ornl §2.2).
//!
//! ```text
//!   goodput ▲        ______ plateau: a dedicated path
//!           │      /‾ ‾ ‾ \  fall: a shared path, or a receiver that cannot keep up
//!           │    /          \
//!           │  /
//!           └────────────────▶ sending rate
//! ```
//!
//! **The rule.** A point is *overloaded* if it sends at least 15 % more than the best goodput of its window W_c. The
//! goodput of each overloaded point is divided by that best goodput. The path is shared if the median of these shares
//! lies below one by more than the noise. The noise is twice the deviation between repeats, but at least 5 %. Windows
//! are compared with themselves, because large bursts lose more in a small queue of a dedicated path too.

use farhaul_units::{Duration, Rate};

use super::blaster::BlasterFigures;

/// A point is overloaded beyond this multiple of the best goodput of its window. Smaller excesses fit into the error of
/// rates that timers make.
const OVERLOADED: f64 = 1.15;
/// Overloaded points that a verdict needs.
const ENOUGH: usize = 3;
/// The least noise, a share of the goodput: two runs on an idle host differ by a few per cent.
const NOISE: f64 = 0.05;
/// Deviations between repeats that count as noise: 95 % of a normal distribution.
const DEVIATIONS: f64 = 2.0;
/// The plateau begins where the goodput is within this share of the greatest. Source: the target of 2 % for stable
/// streams.
const PLATEAU: f64 = 0.98;
/// Losses count as equal if they differ by less than this, or by less than a factor of two.
const SAME_LOSS: f64 = 0.001;
const SAME_LOSS_FACTOR: f64 = 2.0;

/// Mean and range over repeats.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// Mean.
    pub mean: f64,
    /// Least and greatest.
    pub low: f64,
    /// See [`low`](Self::low).
    pub high: f64,
}

impl Spread {
    fn of(values: impl Iterator<Item = f64> + Clone) -> Self {
        let count = values.clone().count();
        if count == 0 {
            return Self::default();
        }
        let sum: f64 = values.clone().sum();
        let low = values.clone().fold(f64::INFINITY, f64::min);
        Self { mean: sum / count as f64, low, high: values.fold(f64::NEG_INFINITY, f64::max) }
    }
}

/// One point (W_c, T_s), measured once or several times.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// W_c: datagrams per burst.
    pub window: u32,
    /// T_s: time between bursts.
    pub sleep: Duration,
    /// The results of its runs.
    pub runs: Vec<BlasterFigures>,
}

impl Point {
    /// Sending rate, bit/s of UDP payload.
    pub fn rate(&self) -> Spread {
        Spread::of(self.runs.iter().map(|run| run.rate.bits_per_second() as f64))
    }

    /// Goodput, bit/s of UDP payload.
    pub fn goodput(&self) -> Spread {
        Spread::of(self.runs.iter().map(|run| run.goodput.bits_per_second() as f64))
    }

    /// Share that was lost.
    pub fn loss(&self) -> Spread {
        Spread::of(self.runs.iter().map(|run| run.loss))
    }

    /// Mean deviation of the one-way delay, seconds.
    pub fn jitter(&self) -> Spread {
        Spread::of(self.runs.iter().map(|run| run.jitter.as_secs_f64()))
    }
}

/// The shape of a profile at rates beyond the capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// The goodput stays: a dedicated path.
    Plateau,
    /// The goodput falls beyond the noise: a shared path, or a receiver that cannot keep up.
    Fall,
    /// Too few points send more than the path carries. The sender may be the limit.
    Unsaturated,
}

/// The best rate of a path: the smallest on the plateau with minimal loss.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Advice {
    /// W_c: datagrams per burst.
    pub window: u32,
    /// T_s: time between bursts.
    pub sleep: Duration,
    /// The sending rate that it gave, UDP payload.
    pub rate: Rate,
    /// The goodput that it gave, UDP payload.
    pub goodput: Rate,
    /// The share that was lost.
    pub loss: f64,
}

/// Points of one path.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profile {
    /// All points with at least one run.
    pub points: Vec<Point>,
}

impl Profile {
    /// Adds the result of a run. Runs of the same pair are repeats of one point.
    pub fn add(&mut self, window: u32, sleep: Duration, figures: BlasterFigures) {
        match self.points.iter_mut().find(|point| (point.window, point.sleep) == (window, sleep)) {
            Some(point) => point.runs.push(figures),
            None => self.points.push(Point { window, sleep, runs: vec![figures] }),
        }
    }

    /// Relative deviation of the goodput between repeats, over all points. Zero without repeats.
    fn deviation(&self) -> f64 {
        let (mut squares, mut freedom) = (0.0, 0);
        for point in &self.points {
            let mean = point.goodput().mean;
            if mean > 0.0 {
                let off = |run: &BlasterFigures| run.goodput.bits_per_second() as f64 / mean - 1.0;
                squares += point.runs.iter().map(|run| off(run) * off(run)).sum::<f64>();
                freedom += point.runs.len() - 1;
            }
        }
        if freedom == 0 { 0.0 } else { libm::sqrt(squares / freedom as f64) }
    }

    /// Goodputs of overloaded points, as shares of the best goodput of their windows, in order.
    fn overloaded(&self) -> Vec<f64> {
        let best = |window: u32| {
            let same = self.points.iter().filter(move |point| point.window == window);
            same.map(|point| point.goodput().mean).fold(0.0, f64::max)
        };
        let shares = self.points.iter().filter_map(|point| {
            let best = best(point.window);
            (best > 0.0 && point.rate().mean >= OVERLOADED * best).then(|| point.goodput().mean / best)
        });
        let mut shares: Vec<f64> = shares.collect();
        shares.sort_by(f64::total_cmp);
        shares
    }

    /// The shape by the rule of this module.
    pub fn shape(&self) -> Shape {
        let shares = self.overloaded();
        if shares.len() < ENOUGH {
            return Shape::Unsaturated;
        }
        let median = (shares[(shares.len() - 1) / 2] + shares[shares.len() / 2]) / 2.0;
        let noise = NOISE.max(DEVIATIONS * self.deviation());
        if median < 1.0 - noise { Shape::Fall } else { Shape::Plateau }
    }

    /// The best rate. `None` if nothing arrived at any point.
    pub fn advice(&self) -> Option<Advice> {
        let greatest = self.points.iter().map(|point| point.goodput().mean).fold(0.0, f64::max);
        if greatest <= 0.0 {
            return None;
        }
        let plateau = || self.points.iter().filter(|point| point.goodput().mean >= PLATEAU * greatest);
        let least = plateau().map(|point| point.loss().mean).fold(f64::INFINITY, f64::min);
        let most = (least + SAME_LOSS).max(least * SAME_LOSS_FACTOR);
        let gentle = plateau().filter(|point| point.loss().mean <= most);
        let best = gentle.min_by(|one, other| one.rate().mean.total_cmp(&other.rate().mean))?;
        Some(Advice {
            window: best.window,
            sleep: best.sleep,
            rate: Rate::from_bits_per_second(best.rate().mean as u64),
            goodput: Rate::from_bits_per_second(best.goodput().mean as u64),
            loss: best.loss().mean,
        })
    }
}

#[cfg(test)]
mod tests {
    use farhaul_units::Rng;

    use super::super::grid;
    use super::*;

    const CAPACITY: f64 = 950e6;

    /// Goodput of a path that carries `CAPACITY`.
    fn dedicated(rate: f64, _: u32) -> f64 {
        rate.min(CAPACITY)
    }

    /// Its goodput falls by `slope` of the excess.
    fn falling(slope: f64) -> impl Fn(f64, u32) -> f64 {
        move |rate, _| if rate < CAPACITY { rate } else { (CAPACITY - slope * (rate - CAPACITY)).max(1e6) }
    }

    fn profile(path: impl Fn(f64, u32) -> f64, noise: f64, repeats: usize, seed: u64) -> Profile {
        let (mut profile, mut rng) = (Profile::default(), Rng::new(seed));
        for _ in 0..repeats {
            for (window, sleep) in grid(1_472, Rate::from_bits_per_second(CAPACITY as u64), &[], &[]) {
                let rate = f64::from(window) * 11_776.0 / sleep.as_secs_f64();
                let goodput = path(rate, window) * (1.0 + noise * (2.0 * rng.unit() - 1.0));
                let bits = |value: f64| Rate::from_bits_per_second(value as u64);
                let loss = (1.0 - goodput / rate).max(0.0);
                let figures =
                    BlasterFigures { rate: bits(rate), goodput: bits(goodput), loss, ..BlasterFigures::default() };
                profile.add(window, sleep, figures);
            }
        }
        profile
    }

    #[test]
    fn a_plateau_is_a_dedicated_path_and_a_fall_a_shared_one() {
        for seed in 0..20 {
            for noise in [0.0, 0.02, 0.1] {
                assert_eq!(profile(dedicated, noise, 3, seed).shape(), Shape::Plateau, "{noise}, seed {seed}");
            }
            for (slope, noise) in [(0.25, 0.0), (0.25, 0.02), (0.6, 0.05), (1.0, 0.1)] {
                let shape = profile(falling(slope), noise, 3, seed).shape();
                assert_eq!(shape, Shape::Fall, "slope {slope}, {noise}, seed {seed}");
            }
        }
    }

    #[test]
    fn a_fall_within_the_noise_is_none() {
        for seed in 0..20 {
            assert_eq!(profile(falling(0.02), 0.0, 1, seed).shape(), Shape::Plateau);
            // With so much scatter, a tenth less proves nothing.
            assert_eq!(profile(falling(0.1), 0.3, 3, seed).shape(), Shape::Plateau, "seed {seed}");
        }
    }

    #[test]
    fn bursts_that_a_small_queue_loses_make_no_shared_path() {
        let small_queue = |rate: f64, window: u32| rate.min(CAPACITY * if window > 30 { 0.6 } else { 1.0 });
        assert_eq!(profile(small_queue, 0.02, 3, 1).shape(), Shape::Plateau);
    }

    #[test]
    fn a_path_that_carries_all_has_no_shape() {
        assert_eq!(profile(|rate, _| rate, 0.02, 3, 1).shape(), Shape::Unsaturated);
        assert_eq!(Profile::default().shape(), Shape::Unsaturated);
    }

    #[test]
    fn the_best_rate_is_the_smallest_on_the_plateau_with_minimal_loss() {
        for path in [0.0, 0.5] {
            let advice = profile(falling(path), 0.0, 1, 1).advice().unwrap();
            let rate = advice.rate.bits_per_second() as f64;
            assert!((0.98..=1.01).contains(&(rate / CAPACITY)) && advice.loss < 0.001, "{advice:?}");
        }
        // Random loss at every rate moves the edge, and not the choice.
        let lossy = |rate: f64, _: u32| (rate * 0.99).min(CAPACITY);
        let advice = profile(lossy, 0.0, 1, 1).advice().unwrap();
        assert!((0.98..=1.04).contains(&(advice.rate.bits_per_second() as f64 / CAPACITY)), "{advice:?}");
    }

    #[test]
    fn nothing_that_arrives_is_no_advice() {
        assert_eq!(profile(|_, _| 0.0, 0.0, 1, 1).advice(), None);
        assert_eq!(Profile::default().advice(), None);
    }

    #[test]
    fn repeats_have_a_mean_and_a_range() {
        let mut profile = Profile::default();
        for mbit in [10, 20, 60] {
            let goodput = Rate::from_megabits_per_second(mbit);
            profile.add(2, Duration::from_millis(1), BlasterFigures { goodput, ..BlasterFigures::default() });
        }
        let [point] = &profile.points[..] else { panic!("repeats are one point") };
        assert_eq!(point.goodput(), Spread { mean: 30e6, low: 10e6, high: 60e6 });
    }
}
