//! How often the emulator looks at its hosts: at once while packets come singly, and in intervals while they come all the time.
//!
//! A look takes some microseconds, so there is a bound to how many there are. What is not used of it is saved for a moment, and
//! spent on packets that come after a rest: no nap is made after them, and the last of the wait until they leave is spent awake,
//! since a sleeping processor takes long to come back. An echo of `ping` is so passed on within some ten microseconds.

use farhaul_units::{Duration, Instant};

/// What a look counts for at least: 13 000 a second while packets flow, at the price of that much lateness. A look at a path of
/// 1 Gbit/s takes some 40 µs of processor time, most of it in the receiving host, however few packets it finds.
const LOOK: Duration = Duration::from_micros(75);
/// And for this many times as long as it took: where much is to be done, looks are further apart and each finds more, which costs
/// less for each packet. More than half of a processor is needed only where that does not help.
const WORK_COST: (u32, u32) = (9, 4);
/// The longest nap.
const LONGEST_NAP: Duration = Duration::from_micros(100);
/// What is saved at most, as the time that 30 looks count for: an echo takes four of them and two vigils.
const SAVED: Duration = Duration::from_micros(2_250);
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
    /// Until when to nap after a look that began at `began` and has found something; `None` if another look may come at once.
    pub(crate) fn nap_after(&mut self, began: Instant, now: Instant) -> Option<Instant> {
        let (times, of) = WORK_COST;
        self.spend(began, LOOK.max((now - began) * times / of));
        self.paid = self.paid.min(now + LONGEST_NAP);
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
        let mut nap_after = |now| pace.nap_after(now, now);
        let free = std::iter::from_fn(|| nap_after(START).is_none().then_some(())).count();
        assert_eq!(free, 30);
        let mut now = START + LOOK;
        for _ in 0..1_000 {
            now = nap_after(now).unwrap();
        }
        assert_eq!(now, START + LOOK * 1_001);
        now += LOOK * 2;
        assert_eq!((nap_after(now), nap_after(now)), (None, None), "two were saved");
        assert!(nap_after(now).is_some());
    }

    #[test]
    fn long_looks_are_further_apart() {
        let mut pace = Pace { paid: START };
        let end = |micros| START + Duration::from_micros(micros);
        assert_eq!(pace.nap_after(START, end(40)), Some(end(90)));
        assert_eq!(Pace { paid: START }.nap_after(START, end(1_000)), Some(end(1_100)), "but there is an end to it");
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
        assert_eq!(pace.vigil(START + VIGIL * 2), Duration::ZERO, "half of one is left");
        assert_eq!(pace.vigil(START + VIGIL * 3), VIGIL);
    }
}
