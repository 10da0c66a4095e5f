//! Loss that spares short packets, so that acknowledgements pass and only data is lost.

use farhaul_units::Instant;

use crate::{Impairment, Outlet, WireLen};

/// Applies an impairment to packets of a minimum length. Shorter packets pass at once and use no random draw and no
/// count.
#[derive(Clone, Debug)]
pub struct Sparing<I> {
    least: u32,
    inner: I,
}

impl<I> Sparing<I> {
    /// Applies `inner` to packets of at least `least` bytes.
    pub fn new(least: u32, inner: I) -> Self {
        Self { least, inner }
    }
}

impl<P: WireLen, I: Impairment<P>> Impairment<P> for Sparing<I> {
    fn apply(&mut self, now: Instant, packet: P, out: &mut Outlet<P>) {
        if packet.wire_len() < self.least {
            out.pass(now, packet);
        } else {
            self.inner.apply(now, packet, out);
        }
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
