//! Loss that spares short packets, so that acknowledgements pass and only data is lost.

use farhaul_units::Instant;

use super::model::LossModel;

/// Applies a loss model to packets of a minimum length. Shorter packets pass at once and use no random draw and no
/// count.
#[derive(Clone, Debug)]
pub struct Sparing<L> {
    least: u32,
    inner: L,
}

impl<L> Sparing<L> {
    /// Applies `inner` to packets of at least `least` bytes.
    pub fn new(least: u32, inner: L) -> Self {
        Self { least, inner }
    }
}

impl<L: LossModel> LossModel for Sparing<L> {
    fn loses(&mut self, now: Instant, bytes: u32) -> bool {
        bytes >= self.least && self.inner.loses(now, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Numbered, drain, numbers};
    use crate::{Element, Impair, Periodic};

    #[test]
    fn short_packets_pass_and_do_not_count() {
        let mut loss = Impair::new(Sparing::new(1_000, Periodic::every(2)));
        for (number, bytes) in (0..).zip([1_500, 40, 999, 1_000, 40, 1_500, 1_500]) {
            loss.push(Instant::ZERO, Numbered { bytes, ..Numbered::new(number) });
        }
        assert_eq!(numbers(&drain(&mut loss)), [0, 1, 2, 4, 5]);
    }
}
