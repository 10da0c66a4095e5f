//! How often the emulator looks at its hosts: at once while packets come singly, and in intervals while they come all the time.
//!
//! A look takes some microseconds, so there is a bound to how many there are. What is not used of it is saved for a moment, and
//! spent on packets that come after a rest: no nap is made after them, and the last of the wait until they leave is spent awake,
//! since a sleeping processor takes long to come back. An echo of `ping` is so passed on within some ten microseconds.

use farhaul_units::{Duration, Instant};

/// Between two looks while packets flow: 20 000 a second, at the price of that much lateness.
pub(crate) const NAP: Duration = Duration::from_micros(50);
/// What is saved at most, as a time in which there was a look at each interval: an echo takes four looks and two vigils.
const SAVED: Duration = Duration::from_millis(2);
/// The last of a wait, to be spent awake: longer than it takes a processor of a virtual machine to wake up.
const VIGIL: Duration = Duration::from_micros(100);
/// A vigil counts for this many times its length: a fifth of a processor goes into vigils at most.
const VIGIL_COST: u32 = 5;

/// What may be spent on looks and vigils.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// When all that was spent will be paid for; in the past, if something is saved.
    paid: Instant,
}

impl Pace {
    /// Until when to nap after a look at `now` that has found something; `None` if another look may come at once.
    pub(crate) fn nap_after(&mut self, now: Instant) -> Option<Instant> {
        self.spend(now, NAP);
        (self.paid > now).then_some(self.paid)
    }

    /// How much of the end of a wait may be spent awake.
    pub(crate) fn vigil(&self, now: Instant) -> Duration {
        if now - self.paid >= VIGIL * VIGIL_COST { VIGIL } else { Duration::ZERO }
    }

    /// A vigil has ended at `now`, after `length`.
    pub(crate) fn on_vigil(&mut self, now: Instant, length: Duration) {
        self.spend(now, length * VIGIL_COST);
    }

    fn spend(&mut self, now: Instant, cost: Duration) {
        self.paid = self.paid.max(now.saturating_sub(SAVED)) + cost;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Instant = Instant::from_nanos(1_000_000_000);

    #[test]
    fn what_was_saved_goes_into_looks_without_a_nap_and_then_there_is_one_after_each() {
        let mut pace = Pace::default();
        let free = std::iter::from_fn(|| pace.nap_after(START).is_none().then_some(())).count();
        assert_eq!(free, 40);
        let mut now = START + NAP;
        for _ in 0..1_000 {
            now = pace.nap_after(now).unwrap();
        }
        assert_eq!(now, START + NAP * 1_001);
        now += NAP * 2;
        assert_eq!((pace.nap_after(now), pace.nap_after(now)), (None, None), "two were saved");
        assert!(pace.nap_after(now).is_some());
    }

    #[test]
    fn vigils_are_kept_after_a_rest_and_not_all_the_time() {
        let mut pace = Pace::default();
        let vigils = std::iter::from_fn(|| {
            let vigil = pace.vigil(START);
            pace.on_vigil(START, vigil);
            (!vigil.is_zero()).then_some(())
        });
        assert_eq!(vigils.count(), 4);
        assert_eq!(pace.vigil(START + VIGIL * 4), Duration::ZERO);
        assert_eq!(pace.vigil(START + VIGIL * 5), VIGIL);
    }
}
