//! Transmission times of packets, without accumulated rounding error, at constant and changing rates.

use farhaul_units::{Instant, Rate};

use crate::schedule::{CycleWork, Timeline};

/// Work is measured in bits × 10⁹: a rate of 1 bit/s does one unit per nanosecond.
const NANOS_PER_SECOND: u64 = 1_000_000_000;
const BITS_PER_BYTE: u64 = 8;

/// Sends packets back to back.
///
/// The end of a packet is a whole number of nanoseconds plus an integer fraction that carries over to the next packet.
/// At 7 Gbit/s a full packet takes 1714 2/7 ns, and seven packets take exactly 12 µs. A rate changes at a whole
/// nanosecond, where the remaining work of a packet is an integer too.
#[derive(Clone, Debug)]
pub(super) struct Transmitter {
    /// Bits per second; `None` if transmission takes no time.
    rate: Option<u64>,
    /// When the last transmission ends, in whole nanoseconds.
    free: u64,
    /// The fraction of a nanosecond to add to `free`, in units of 1/rate ns. Always below the rate.
    fraction: u64,
    /// The rate holds until here; `u64::MAX` if it never changes.
    until: u64,
    changes: Option<Box<Timeline>>,
    /// Most packets are as long as the one before. Remembering the result saves the division, the slowest step.
    last_length: Length,
}

/// The transmission time of one packet length at the present rate.
#[derive(Clone, Copy, Debug, Default)]
struct Length {
    bytes: u32,
    /// Whole nanoseconds.
    nanos: u64,
    /// The remainder, in units of 1/rate ns.
    fraction: u64,
}

impl Transmitter {
    pub(super) fn new(rate: Rate) -> Self {
        Self {
            rate: Some(rate.bits_per_second()),
            free: 0,
            fraction: 0,
            until: u64::MAX,
            changes: None,
            last_length: Length::default(),
        }
    }

    /// A transmitter whose rate follows `timeline`.
    pub(super) fn changing(timeline: Timeline) -> Self {
        let rate = timeline.piece().rate.map(Rate::bits_per_second);
        let until = timeline.until;
        Self { rate, until, changes: Some(Box::new(timeline)), ..Self::new(Rate::ZERO) }
    }

    /// The first whole nanosecond at which the transmitter is idle.
    pub(super) fn free_at(&self) -> Instant {
        Instant::from_nanos(self.free.saturating_add(u64::from(self.fraction > 0)))
    }

    /// Skips the idle time before `now`.
    pub(super) fn idle_until(&mut self, now: Instant) {
        debug_assert!(self.free_at() <= now, "a busy transmitter does not idle");
        self.free = now.as_nanos();
        self.fraction = 0;
        self.follow_changes();
    }

    /// Sends `bytes` directly behind the last packet and returns when the last bit is out, rounded up.
    pub(super) fn send(&mut self, bytes: u32) -> Instant {
        if !self.send_at_one_rate(bytes) {
            self.send_across_changes(bytes);
        }
        self.free_at()
    }

    /// Sends the packet if it ends before the rate changes. Otherwise changes nothing and returns `false`.
    fn send_at_one_rate(&mut self, bytes: u32) -> bool {
        let Some(rate) = self.rate.filter(|rate| *rate > 0) else { return false };
        let length = self.length(bytes, rate);
        // Both fractions are below the rate. This adds them modulo the rate without overflow.
        let room = rate - length.fraction;
        let (fraction, carry) =
            if self.fraction >= room { (self.fraction - room, 1) } else { (self.fraction + length.fraction, 0) };
        let end = self.free.saturating_add(length.nanos).saturating_add(carry);
        if end > self.until || (end == self.until && fraction > 0) {
            return false;
        }
        (self.free, self.fraction) = (end, fraction);
        true
    }

    fn length(&mut self, bytes: u32, rate: u64) -> Length {
        if self.last_length.bytes != bytes {
            // The work of realistic packets fits into 64 bits, where division is several times faster.
            let (nanos, fraction) = match u64::try_from(work(bytes)) {
                Ok(work) => (work / rate, work % rate),
                Err(_) => {
                    let (work, rate) = (work(bytes), u128::from(rate));
                    (u64::try_from(work / rate).unwrap_or(u64::MAX), (work % rate) as u64) // below the rate
                }
            };
            self.last_length = Length { bytes, nanos, fraction };
        }
        self.last_length
    }

    /// Sends a packet across rate changes, piece by piece. The packet never ends if the rate stays zero.
    fn send_across_changes(&mut self, bytes: u32) {
        let mut left = work(bytes) + u128::from(self.fraction);
        loop {
            self.fraction = 0;
            self.follow_changes();
            left = self.skip_cycles(left);
            if self.free == u64::MAX {
                return;
            }
            let Some(rate) = self.rate.map(u128::from) else { return };
            let possible = rate * u128::from(self.until - self.free);
            if left <= possible && rate > 0 {
                self.free += (left / rate) as u64; // at most until - free
                self.fraction = (left % rate) as u64; // below the rate
                return;
            }
            left -= possible.min(left);
            self.free = self.until;
        }
    }

    /// At the beginning of a cycle, skips all whole cycles that the packet fills in one step, however short they are.
    fn skip_cycles(&mut self, left: u128) -> u128 {
        let Some(timeline) = &self.changes else { return left };
        let CycleWork::Known(work) = timeline.cycle_work else { return left };
        if self.free != timeline.cycle_start() {
            return left;
        }
        // If a cycle does no work, the packet is never sent.
        let cycles = left.saturating_sub(1).checked_div(work).unwrap_or(u128::MAX);
        if cycles > 0 {
            self.free = timeline.after_cycles(self.free, cycles);
            self.follow_changes();
        }
        left.saturating_sub(cycles.saturating_mul(work))
    }

    /// Takes the rate that holds at `free`.
    fn follow_changes(&mut self) {
        if self.free < self.until {
            return;
        }
        let Some(timeline) = &mut self.changes else { return };
        timeline.seek(self.free);
        self.until = timeline.until;
        self.rate = timeline.piece().rate.map(Rate::bits_per_second);
        self.last_length = Length::default();
    }
}

/// The work of a packet of `bytes` bytes.
fn work(bytes: u32) -> u128 {
    u128::from(u64::from(bytes) * BITS_PER_BYTE) * u128::from(NANOS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use farhaul_units::Duration;
    use proptest::prelude::*;

    use super::*;
    use crate::{Schedule, Step};

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
    fn a_packet_waits_for_the_last_fraction_of_a_nanosecond() {
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

    fn at(nanos: u64, rate: u64) -> Step {
        Step { at: Duration::from_nanos(nanos), rate: Some(Rate::from_bits_per_second(rate)), delay: None }
    }

    const GIGABIT: Option<Rate> = Some(Rate::from_megabits_per_second(1_000));

    fn following(steps: &[Step], period: Option<u64>) -> Transmitter {
        let schedule = Schedule::new(steps.iter().copied()).unwrap();
        let schedule = match period {
            Some(period) => schedule.repeated(Duration::from_nanos(period)).unwrap(),
            None => schedule,
        };
        Transmitter::changing(schedule.timeline(GIGABIT, Duration::ZERO))
    }

    #[test]
    fn a_packet_in_transmission_sends_its_remaining_bits_at_the_new_rate() {
        // 4 µs at 1 Gbit/s leave 8000 of 12000 bits, which take 80 µs at 100 Mbit/s.
        let mut transmitter = following(&[at(4_000, 100_000_000)], None);
        assert_eq!(transmitter.send(1_500), Instant::from_nanos(84_000));
        assert_eq!(transmitter.send(1_500), Instant::from_nanos(204_000));
    }

    #[test]
    fn an_outage_holds_a_packet_until_it_is_over() {
        let mut transmitter = following(&[at(4_000, 0), at(1_000_000, 1_000_000_000)], None);
        assert_eq!(transmitter.send(1_500), Instant::from_nanos(1_008_000));
        let mut for_ever = following(&[at(4_000, 0)], None);
        assert_eq!((for_ever.send(500), for_ever.send(1)), (Instant::from_nanos(4_000), Instant::FAR_FUTURE));
    }

    #[test]
    fn a_packet_across_many_short_cycles_is_computed_in_one_step() {
        // The first of every two nanoseconds sends one bit, the second none. 12000 bits end in cycle 12000.
        let mut transmitter = following(&[at(1, 0)], Some(2));
        assert_eq!(transmitter.send(1_500), Instant::from_nanos(2 * 11_999 + 1));
        let slow = [at(0, 1), at(1, 0)];
        assert_eq!(following(&slow, Some(2)).send(1_500), Instant::from_nanos(2 * (12_000 * NANOS_PER_SECOND - 1) + 1));
        let never = [at(0, 0), at(1, 0)];
        assert_eq!(following(&never, Some(2)).send(1_500), Instant::FAR_FUTURE);
    }

    /// The work possible until `time`, in bits × 10⁹, summed piece by piece.
    fn possible(pieces: &[(u64, u64)], period: Option<u64>, time: u64) -> u128 {
        let within = |end: u64| -> u128 {
            let ends = pieces.iter().skip(1).map(|piece| piece.0).chain([u64::MAX]);
            let parts = pieces.iter().zip(ends);
            parts
                .map(|((start, rate), next)| u128::from(*rate) * u128::from(end.min(next).saturating_sub(*start)))
                .sum()
        };
        period.map_or_else(|| within(time), |period| u128::from(time / period) * within(period) + within(time % period))
    }

    proptest! {
        /// The k-th packet ends at the first nanosecond by which the integral of the rate reaches the sum of the bits.
        #[test]
        fn departures_follow_the_integral_of_the_rate(
            gaps in prop::collection::vec((1u64..20_000, prop_oneof![Just(0), 1u64..20_000_000_000]), 0..8),
            repeats in any::<bool>(),
            lengths in prop::collection::vec(prop_oneof![Just(1_500u32), 1u32..9_000], 1..40),
        ) {
            let mut pieces = vec![(0, 1_000_000_000)];
            for (gap, rate) in gaps {
                pieces.push((pieces[pieces.len() - 1].0 + gap, rate));
            }
            let period = repeats.then_some(pieces[pieces.len() - 1].0 + 777);
            let steps: Vec<Step> = pieces[1..].iter().map(|(start, rate)| at(*start, *rate)).collect();
            let mut transmitter = following(&steps, period);
            let mut sum = 0;
            for bytes in lengths {
                sum += work(bytes);
                let end = transmitter.send(bytes);
                if end == Instant::FAR_FUTURE {
                    prop_assert!(possible(&pieces, period, 1 << 60) < sum);
                    break;
                }
                let end = end.as_nanos();
                prop_assert!(possible(&pieces, period, end) >= sum, "too early");
                prop_assert!(possible(&pieces, period, end - 1) < sum, "too late");
            }
        }
    }
}
