//! A policer: drops traffic above a rate, without queueing or delay.
//!
//! ```text
//! tokens ← min(burst, tokens + rate·elapsed)                    (1)
//! a packet of L bytes passes if tokens ≥ L; tokens ← tokens − L (2)
//! ```
//!
//! The bucket starts full. Tokens are kept in bits × 10⁹, of which a rate of 1 bit/s adds one per nanosecond, so no
//! step rounds. In any time t at most burst + rate·t passes, and a stream within that bound loses nothing.

use farhaul_units::{ByteSize, Instant, Rate};

use crate::impair::{Impairment, Outlet, WireLen};

const NANOS_PER_SECOND: u128 = 1_000_000_000;
const BITS_PER_BYTE: u128 = 8;

/// Parameters of a policer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicerSpec {
    /// The long-term rate.
    pub rate: Rate,
    /// The largest burst after a pause. Longer packets never pass.
    pub burst: ByteSize,
}

/// A token bucket.
#[derive(Clone, Debug)]
pub struct Policer {
    /// Bits per second.
    rate: u128,
    /// Bits × 10⁹, like `tokens`.
    burst: u128,
    tokens: u128,
    /// `tokens` are up to date until here.
    until: Instant,
}

impl Policer {
    /// A policer with a full bucket.
    pub fn new(spec: PolicerSpec) -> Self {
        let ByteSize(bytes) = spec.burst;
        let burst = work(bytes);
        Self { rate: u128::from(spec.rate.bits_per_second()), burst, tokens: burst, until: Instant::ZERO }
    }
}

impl<P: WireLen> Impairment<P> for Policer {
    fn apply(&mut self, now: Instant, packet: P, out: &mut Outlet<P>) {
        let elapsed = u128::from(now.as_nanos().saturating_sub(self.until.as_nanos()));
        self.until = self.until.max(now);
        self.tokens = self.tokens.saturating_add(self.rate * elapsed).min(self.burst);
        let needed = work(u64::from(packet.wire_len()));
        if let Some(left) = self.tokens.checked_sub(needed) {
            self.tokens = left;
            out.pass(now, packet);
        } else {
            out.counters.dropped_policer.add(packet.wire_len());
        }
    }
}

/// The tokens that `bytes` need.
fn work(bytes: u64) -> u128 {
    u128::from(bytes) * BITS_PER_BYTE * NANOS_PER_SECOND
}

#[cfg(test)]
mod tests {
    use farhaul_units::Duration;
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{Numbered, numbers, play};
    use crate::{Element, Impair};

    fn policer(megabits: u64, burst: u64) -> Impair<Policer, Numbered> {
        let rate = Rate::from_megabits_per_second(megabits);
        Impair::new(Policer::new(PolicerSpec { rate, burst: ByteSize(burst) }))
    }

    #[test]
    fn a_burst_passes_and_then_the_rate() {
        // Ten packets fit into the bucket. At 100 Mbit/s one more passes every 120 µs.
        let out = play(&mut policer(100, 15_000), 100, 12_000);
        let passed = numbers(&out);
        assert_eq!(passed[..11], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        assert_eq!(passed[11..], [20, 30, 40, 50, 60, 70, 80, 90]);
        assert!(
            out.iter().all(|(at, packet)| at.as_nanos() == u64::from(packet.number) * 12_000),
            "nothing is delayed"
        );
    }

    #[test]
    fn a_stream_of_exactly_the_rate_loses_nothing_for_ever() {
        // At 7 Mbit/s a full packet takes 1714285 5/7 ns, and seven packets take 12 ms. The bucket holds one byte more
        // than a packet, because arrivals are rounded to nanoseconds.
        let mut policer = policer(7, 1_501);
        let rate = Rate::from_megabits_per_second(7);
        for number in 0..100_000u64 {
            let now = Instant::ZERO + rate.time_for(number * 1_500);
            policer.push(now, Numbered::new(number as u32));
            assert!(policer.pop(now).is_some(), "{number}");
        }
    }

    #[test]
    fn a_packet_longer_than_the_burst_never_passes() {
        assert!(play(&mut policer(1_000, 1_499), 10, 1_000_000_000).is_empty());
    }

    proptest! {
        #[test]
        fn no_interval_passes_more_than_the_burst_plus_rate_times_time(
            gaps in prop::collection::vec(0u64..2_000_000, 1..100), burst in 1_500u64..20_000,
        ) {
            let mut policer = policer(10, burst);
            let mut now = Instant::ZERO;
            let mut passed: Vec<Instant> = Vec::new();
            for gap in gaps {
                now += Duration::from_nanos(gap);
                policer.push(now, Numbered::new(0));
                passed.extend(policer.pop(now).map(|_| now));
            }
            for (first, from) in passed.iter().enumerate() {
                for (last, until) in passed.iter().enumerate().skip(first) {
                    let bytes = (last - first + 1) as u64 * 1_500;
                    let allowed = Rate::from_megabits_per_second(10).bytes_in(*until - *from) + burst;
                    prop_assert!(bytes <= allowed, "{bytes} of {allowed}");
                }
            }
        }
    }
}
