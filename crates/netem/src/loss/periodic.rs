//! Regular loss: one packet of every period.

use farhaul_units::Instant;

use super::model::LossModel;

/// Loses one packet of every `period` packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Periodic {
    period: u64,
    /// Packets that pass before the next loss.
    left: u64,
}

impl Periodic {
    /// Loses the last of every `period` packets. Loses none if `period` is zero.
    pub const fn every(period: u64) -> Self {
        Self { period, left: period.saturating_sub(1) }
    }

    /// Passes the first `passed` packets, loses the next one and from there on one of every period.
    #[must_use]
    pub const fn after(mut self, passed: u64) -> Self {
        self.left = passed;
        self
    }
}

impl LossModel for Periodic {
    fn loses(&mut self, _: Instant, _: u32) -> bool {
        if self.period == 0 || self.left > 0 {
            self.left = self.left.saturating_sub(1);
            return false;
        }
        self.left = self.period - 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Impair;
    use crate::testing::{numbers, play};

    #[test]
    fn one_packet_of_a_period_is_lost() {
        let survivors = |loss: Periodic| numbers(&play(&mut Impair::new(loss), 9, 1));
        assert_eq!(survivors(Periodic::every(4)), [0, 1, 2, 4, 5, 6, 8]);
        assert_eq!(survivors(Periodic::every(4).after(0)), [1, 2, 3, 5, 6, 7]);
        assert_eq!(survivors(Periodic::every(1)), [] as [u32; 0]);
        assert_eq!(survivors(Periodic::every(0)).len(), 9);
    }
}
