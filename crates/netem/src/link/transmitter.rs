//! The instants at which a sender of constant rate has sent its packets, exact for ever.

use farhaul_units::{Duration, Instant, Rate};

const NANOS_PER_SECOND: u128 = 1_000_000_000;
const BITS_PER_BYTE: u128 = 8;

/// Puts one packet after the other on the link.
///
/// The end of a packet is a whole number of nanoseconds and a fraction, carried to the next packet as an integer: at
/// 7 Gbit/s a full packet lasts 1714 2/7 ns, and seven of them last exactly 12 µs.
#[derive(Clone, Debug)]
pub(super) struct Transmitter {
    rate: Rate,
    /// When the last packet has been sent, without the fraction.
    free: Instant,
    /// The fraction of a nanosecond to add to `free`, in units of 1/rate ns: always below the rate in bits per second.
    fraction: u64,
}

impl Transmitter {
    pub(super) fn new(rate: Rate) -> Self {
        Self { rate, free: Instant::ZERO, fraction: 0 }
    }

    /// The first whole nanosecond at which nothing is being sent.
    pub(super) fn free_at(&self) -> Instant {
        self.free + Duration::from_nanos(u64::from(self.fraction > 0))
    }

    /// Forgets the time before `now`, during which nothing was sent.
    pub(super) fn idle_until(&mut self, now: Instant) {
        debug_assert!(self.free_at() <= now, "a busy transmitter does not idle");
        self.free = now;
        self.fraction = 0;
    }

    /// Sends `bytes` directly after what was sent before, and says when the last bit is out, rounded up.
    pub(super) fn send(&mut self, bytes: u32) -> Instant {
        let rate = u128::from(self.rate.bits_per_second());
        if rate == 0 {
            self.free = Instant::FAR_FUTURE;
            return self.free;
        }
        let parts = u128::from(bytes) * BITS_PER_BYTE * NANOS_PER_SECOND + u128::from(self.fraction);
        let nanos = u64::try_from(parts / rate).unwrap_or(u64::MAX);
        self.free += Duration::from_nanos(nanos);
        self.fraction = (parts % rate) as u64; // below the rate, which is 64 bits wide
        self.free_at()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_millionth_packet_is_sent_at_its_exact_nanosecond() {
        for megabits in [1_000, 7_000, 622, 9_953, 100_000] {
            let rate = Rate::from_megabits_per_second(megabits);
            let mut transmitter = Transmitter::new(rate);
            for sent in 1..=1_000_000 {
                assert_eq!(transmitter.send(1_500), Instant::ZERO + rate.time_for(sent * 1_500), "{rate}, {sent}");
            }
        }
    }

    #[test]
    fn a_packet_during_the_last_fraction_of_a_nanosecond_waits_for_it() {
        let mut transmitter = Transmitter::new(Rate::from_megabits_per_second(7_000));
        assert_eq!(transmitter.send(1_500), Instant::from_nanos(1_715));
        assert_eq!(transmitter.free_at(), Instant::from_nanos(1_715));
        transmitter.idle_until(Instant::from_nanos(1_715));
        assert_eq!(transmitter.send(1_500), Instant::from_nanos(1_715 + 1_715));
    }

    #[test]
    fn at_rate_zero_nothing_is_ever_sent() {
        assert_eq!(Transmitter::new(Rate::ZERO).send(1), Instant::FAR_FUTURE);
    }
}
