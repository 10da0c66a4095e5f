//! How often the emulator polls its hosts: at once for isolated packets, at intervals for continuous traffic.
//!
//! A poll takes some microseconds, so polls have a budget. Unused budget is saved for a moment. Packets that arrive
//! after an idle time spend it in two ways. First, no pause follows them. Second, the thread spins through the end of the
//! wait for their departure, since a sleeping processor wakes up slowly. An echo of `ping` thus passes within some ten
//! microseconds.

use farhaul_units::{Duration, Instant};

/// Minimum cost of a poll: at most 13 000 polls a second under load, at the price of that much lateness. A poll at 1
/// Gbit/s takes about 40 µs of processor time, most of it in the receiving host, however few packets it finds.
const POLL_COST: Duration = Duration::from_micros(75);
/// Cost of a poll per time that it took, as a fraction. A heavy load thus spaces polls further apart, so each finds
/// more packets at less cost per packet. More than half of a processor is used only where that does not suffice.
const WORK_COST: (u32, u32) = (9, 4);
/// The longest pause.
const LONGEST_NAP: Duration = Duration::from_micros(100);
/// The largest saving, equal to the cost of 30 polls. An echo takes four polls and spins twice.
const SAVED: Duration = Duration::from_micros(2_250);
/// Length of a spin at the end of a wait. Longer than the wake-up of a processor in a virtual machine.
const SPIN: Duration = Duration::from_micros(100);
/// Cost of a spin per time that it took. Spins use at most a fifth of a processor.
const SPIN_COST: u32 = 5;

/// The budget for polls and spins.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// When all costs so far are paid. In the past if there are savings.
    paid: Instant,
}

impl Pace {
    /// The end of the pause after a poll that began at `began` and found packets. `None` if another poll may follow at
    /// once.
    pub(crate) fn nap_after(&mut self, began: Instant, now: Instant) -> Option<Instant> {
        let (times, of) = WORK_COST;
        self.spend(began, POLL_COST.max((now - began) * times / of));
        self.paid = self.paid.min(now + LONGEST_NAP);
        (self.paid > now).then_some(self.paid)
    }

    /// How long the thread may spin at the end of a wait.
    pub(crate) fn spin(&self, now: Instant) -> Duration {
        if now - self.paid >= SPIN * SPIN_COST { SPIN } else { Duration::ZERO }
    }

    /// The thread has spun for `length` until `now`.
    pub(crate) fn on_spin(&mut self, now: Instant, length: Duration) {
        self.spend(now, length * SPIN_COST);
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
    fn saved_budget_pays_for_polls_without_naps_and_then_a_nap_follows_each() {
        let mut pace = Pace::default();
        let mut nap_after = |now| pace.nap_after(now, now);
        let free = std::iter::from_fn(|| nap_after(START).is_none().then_some(())).count();
        assert_eq!(free, 30);
        let mut now = START + POLL_COST;
        for _ in 0..1_000 {
            now = nap_after(now).unwrap();
        }
        assert_eq!(now, START + POLL_COST * 1_001);
        now += POLL_COST * 2;
        assert_eq!((nap_after(now), nap_after(now)), (None, None), "two were saved");
        assert!(nap_after(now).is_some());
    }

    #[test]
    fn long_polls_are_further_apart() {
        let mut pace = Pace { paid: START };
        let end = |micros| START + Duration::from_micros(micros);
        assert_eq!(pace.nap_after(START, end(40)), Some(end(90)));
        assert_eq!(Pace { paid: START }.nap_after(START, end(1_000)), Some(end(1_100)), "but there is an end to it");
    }

    #[test]
    fn the_thread_spins_after_an_idle_time_but_not_all_the_time() {
        let mut pace = Pace::default();
        let vigils = std::iter::from_fn(|| {
            let spin = pace.spin(START);
            pace.on_spin(START, spin);
            (!spin.is_zero()).then_some(())
        });
        assert_eq!(vigils.count(), 4);
        assert_eq!(pace.spin(START + SPIN * 2), Duration::ZERO, "half of one is left");
        assert_eq!(pace.spin(START + SPIN * 3), SPIN);
    }
}
