//! What class of link a path's own one is of: flows that share a bottleneck grow alike, though their own paths differ.
//!
//! Where cuts are shares of the rate, flows' rates come to be as their growth. A flow that ends in an OC-12 of 599 Mbit/s had two
//! thirds of what those beside it had that end in 975, as long as each grew by the root of what its own path carries (A15,
//! simulated: 332, 230 and 343 Mbit/s; with classes 308, 273 and 325). UDT's own increase goes by decades, `10^⌈log10 B⌉`
//! (`daimd.rs`), which jumps where most links are: at 1 Gbit/s, 100 Mbit/s and 10 Mbit/s. Here these are in the middle of their
//! class:
//!
//! ```text
//! class   K = 10^y bit/s,  x = log10(B in bit/s):  y = ⌊x⌋ up to 3/10 of the decade, ⌊x⌋ + 1 from 6/10 on, a straight
//!         line in between; so 400 Mbit/s to 2 Gbit/s are of the class of 1 Gbit/s                    (1)
//! ```
//!
//! A link of which nothing is known but that one of the flows on it has seen a rate C gets the class of 5/4·C, and of 1 Gbit/s at
//! least                                                                                             (2)
//!
//! Nothing is known where probe pairs seem to come at 500 000/s and more: in one batch                  (3)
//!
//! Departure D23.

use crate::Path;

/// Shares of a decade up to which a link is of the class below, and from which it is of the one above, (1).
const BELOW: f64 = 0.3;
const ABOVE: f64 = 0.6;
/// Least that a link is taken for of which nothing is known, bit/s, (2): packets come in groups, so that pairs of them say nothing,
/// from cards of 1 Gbit/s and more.
const UNKNOWN: f64 = 1e9;
/// A flow that shares a link has seen a part of it, (2), or all of it, or more, if hosts stood still and made up for it. With this
/// a third of a link of 1 Gbit/s, 10 Gbit/s and so on is of the same class as all of it and half as much again. With twice what was
/// seen, a flow of 40 µs that took 975 Mbit/s for 1.3 Gbit/s while it was alone left 244 and 266 Mbit/s to those of 16 and 110 ms
/// (A15, emulated), with this 278 and 305.
const SHARED: f64 = 1.25;
/// Pairs that seem faster came in one batch, packets/s: receivers count whole microseconds, (3).
const FASTEST: f64 = 500_000.0;
/// Bits per byte.
const BITS: f64 = 8.0;

/// The class of a link of `link` packets/s, packets of `mss` bytes; in packets/s as well.
pub(super) fn class(link: f64, mss: u32) -> f64 {
    let bits = f64::from(mss.max(1)) * BITS;
    let exponent = libm::log10((link * bits).max(1.0));
    let decade = libm::floor(exponent);
    let above = ((exponent - decade - BELOW) / (ABOVE - BELOW)).clamp(0.0, 1.0);
    libm::pow(10.0, decade + above) / bits
}

/// Whether probe pairs came in one batch and say nothing, (3).
pub(super) fn pairs_say_nothing(path: &Path) -> bool {
    path.capacity.is_some_and(|pairs| pairs.packets_per_second() >= FASTEST)
}

/// The class of a link of which a flow with rivals has `seen` so much, packets/s, and of which nothing else is known; in packets/s,
/// (2).
pub(super) fn class_of_unknown(seen: f64, mss: u32) -> f64 {
    let bits = f64::from(mss.max(1)) * BITS;
    class((seen * SHARED).max(UNKNOWN / bits), mss)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The class of a link of so many Mbit/s, in Mbit/s.
    fn of(megabits: f64) -> f64 {
        class(megabits * 1e6 / 12_000.0, 1_500) * 12_000.0 / 1e6
    }

    #[test]
    fn links_of_about_a_gigabit_are_of_one_class() {
        for megabits in [400.0, 599.0, 975.0, 1_000.0, 1_900.0] {
            assert!((of(megabits) / 1_000.0 - 1.0).abs() < 1e-9, "{megabits}");
        }
        assert!((of(100.0) / 100.0 - 1.0).abs() < 1e-9 && (of(44.0) / 100.0 - 1.0).abs() < 1e-9);
    }

    #[test]
    fn classes_pass_into_each_other_and_never_fall() {
        let classes: Vec<f64> = (0..600).map(|step| of(libm::pow(10.0, f64::from(step) / 100.0))).collect();
        assert!(classes.windows(2).all(|pair| pair[0] <= pair[1] * (1.0 + 1e-9) && pair[1] < pair[0] * 1.1));
    }

    #[test]
    fn a_link_of_which_little_was_seen_is_taken_for_one_of_a_gigabit() {
        let of = |megabits: f64| class_of_unknown(megabits * 1e6 / 12_000.0, 1_500) * 12_000.0 / 1e9;
        assert!([0.0, 20.0, 400.0, 975.0].iter().all(|megabits| (of(*megabits) - 1.0).abs() < 1e-9));
        assert!((of(4_000.0) - 10.0).abs() < 1e-9);
    }

    #[test]
    fn a_third_of_a_link_and_half_as_much_again_are_of_one_class_if_that_is_all_that_is_known() {
        let of = |gigabits: f64| class_of_unknown(gigabits * 1e9 / 12_000.0, 1_500) * 12_000.0 / 1e9;
        assert!([3.3, 5.0, 10.0, 15.0].iter().all(|gigabits| (of(*gigabits) - 10.0).abs() < 1e-9));
        assert!((of(1.5) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_link_that_is_not_known_has_a_class_too() {
        assert!(class(0.0, 0) > 0.0 && class(1e12, 1_500).is_finite());
    }
}
