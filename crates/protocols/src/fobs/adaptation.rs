//! The delay between packets, after the loss of each segment.
//!
//! ```text
//! l > tolerance                d ← d·(1 + l)            so the rate falls to about what arrives
//! l ≤ tolerance, 2 segments    d ← d·15/16, not below the delay of the user's rate
//! ```
//!
//! The rule is a recollection of the later program, its constants are ours. It is for rates that are set (departure
//! D333).

/// Segments without notable loss before the delay shrinks.
const GOOD_SEGMENTS: u32 = 2;
/// The delay shrinks by this factor.
const FASTER: f64 = 15.0 / 16.0;
/// Longest delay, as a multiple of the shortest. Beyond, a transfer would be mistaken for a stalled one.
const SLOWEST: f64 = 1_000.0;
/// Fewest packets of a segment that tell a loss. One lost packet of fewer would exceed the tolerance.
const FEWEST_PACKETS: u32 = 100;

/// The delay as a multiple of the shortest one.
#[derive(Debug)]
pub(super) struct Adaptation {
    tolerance: f64,
    factor: f64,
    good: u32,
}

impl Adaptation {
    pub(super) const fn new(tolerance: f64) -> Self {
        Self { tolerance, factor: 1.0, good: 0 }
    }

    /// The present factor, from 1 on.
    pub(super) const fn factor(&self) -> f64 {
        self.factor
    }

    /// Of `packets` packets of a segment, `lost` did not arrive.
    pub(super) fn on_segment(&mut self, lost: u32, packets: u32) {
        if packets < FEWEST_PACKETS {
            return;
        }
        let loss = f64::from(lost) / f64::from(packets);
        if loss > self.tolerance {
            self.good = 0;
            self.factor = (self.factor * (1.0 + loss)).min(SLOWEST);
            return;
        }
        self.good += 1;
        if self.good >= GOOD_SEGMENTS {
            self.good = 0;
            self.factor = (self.factor * FASTER).max(1.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_beyond_the_tolerance_lengthens_the_delay_by_it() {
        let mut adaptation = Adaptation::new(0.01);
        adaptation.on_segment(100, 10_000);
        assert!((adaptation.factor() - 1.0).abs() < 1e-9);
        adaptation.on_segment(2_500, 10_000);
        assert!((adaptation.factor() - 1.25).abs() < 1e-9);
    }

    #[test]
    fn two_good_segments_shorten_it_down_to_the_shortest() {
        let mut adaptation = Adaptation::new(0.01);
        adaptation.on_segment(5_000, 10_000);
        adaptation.on_segment(0, 10_000);
        assert!((adaptation.factor() - 1.5).abs() < 1e-9);
        adaptation.on_segment(0, 10_000);
        assert!((adaptation.factor() - 1.5 * FASTER).abs() < 1e-9);
        for _ in 0..100 {
            adaptation.on_segment(0, 10_000);
        }
        assert!((adaptation.factor() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_few_packets_tell_no_loss_and_no_loss_stops_a_sender() {
        let mut adaptation = Adaptation::new(0.01);
        adaptation.on_segment(50, 99);
        assert!((adaptation.factor() - 1.0).abs() < 1e-9);
        for _ in 0..100 {
            adaptation.on_segment(10_000, 10_000);
        }
        assert!((adaptation.factor() - SLOWEST).abs() < 1e-9);
    }
}
