//! How many callers whose address was not validated are looked at: a flood of them must not take the time of connections.

use farhaul_units::{Duration, Instant};

/// Time between two of them in the long run: 10 000 per second. An answer derives keys from the caller's random bytes and seals
/// a packet, which takes 15 µs. So a flood takes 15 % of a core, and the rest of it is dropped before any cryptography.
const EACH: Duration = Duration::from_micros(100);
/// And so many at once: the calls of a cluster whose jobs begin together. A client that is dropped calls again after 0.2 s.
const AT_ONCE: u32 = 1_000;

/// A bucket of answers.
#[derive(Debug, Default)]
pub(super) struct UnvalidatedCallers {
    /// When the bucket is full again.
    full: Instant,
}

impl UnvalidatedCallers {
    /// Takes one answer. Returns false if none is left.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        let full = self.full.max(now);
        let left = full - now <= EACH * (AT_ONCE - 1);
        if left {
            self.full = full + EACH;
        }
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_answered_and_then_ten_thousand_in_a_second() {
        let mut unvalidated = UnvalidatedCallers::default();
        let at = |micros: u64| Instant::ZERO + Duration::from_secs(7) + Duration::from_micros(micros);
        let burst = (0..5_000).filter(|_| unvalidated.take(at(0))).count();
        assert_eq!(burst, 1_000);
        // 100 000 of them in each second.
        let flood = (0..300_000_u64).filter(|call| unvalidated.take(at(10 * call))).count();
        assert!((29_990..=30_010).contains(&flood), "{flood}");
        assert!(unvalidated.take(at(10_000_000)));
    }
}
