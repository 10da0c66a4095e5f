//! The largest packet of a link: it drops larger ones without a word, as an Ethernet switch does.

use farhaul_units::{Duration, Instant};

use crate::loss::LossModel;

/// The largest packet of a link over time, in bytes of the packet's length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mtu {
    first: u32,
    /// Times from which the link carries other packets, in ascending order.
    steps: Vec<(Duration, u32)>,
}

impl Mtu {
    /// A link that carries packets of up to `bytes`.
    pub const fn new(bytes: u32) -> Self {
        Self { first: bytes, steps: Vec::new() }
    }

    /// From `at` on, which is later than all earlier steps, it carries packets of up to `bytes`.
    #[must_use]
    pub fn then(mut self, at: Duration, bytes: u32) -> Self {
        self.steps.push((at, bytes));
        self
    }

    /// The largest packet from the last step on, in bytes.
    pub fn last(&self) -> u32 {
        self.steps.last().map_or(self.first, |(_, bytes)| *bytes)
    }

    fn at(&self, now: Instant) -> u32 {
        let step = self.steps.iter().rev().find(|(at, _)| now >= Instant::ZERO + *at);
        step.map_or(self.first, |(_, bytes)| *bytes)
    }
}

impl LossModel for Mtu {
    fn loses(&mut self, now: Instant, bytes: u32) -> bool {
        bytes > self.at(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Numbered, drain, numbers};
    use crate::{Element, PathSpec};

    #[test]
    fn larger_packets_than_the_present_mtu_are_lost() {
        let mtu = Mtu::new(9_000).then(Duration::from_secs(1), 1_500).then(Duration::from_secs(2), 9_000);
        let mut path = PathSpec { mtu: Some(mtu), ..PathSpec::default() }.build();
        let sizes = [1_500, 9_000, 9_001];
        for (number, bytes) in (0..).zip(sizes.repeat(3)) {
            let second = Instant::ZERO + Duration::from_secs(u64::from(number / 3));
            path.push(second, Numbered { bytes, ..Numbered::new(number) });
        }
        assert_eq!(numbers(&drain(&mut path)), [0, 1, 3, 6, 7]);
        assert_eq!(path.counters().dropped_loss.packets, 4);
    }
}
