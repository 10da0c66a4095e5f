//! The packet size of the path, found by probes (RFC 8899).
//!
//! ```text
//!           first data                      the largest is answered, or nothing is left to try
//!  Waiting ────────────▶ search ◀─────────────────────────────────────────────────▶ search again after 600 s
//!                          │ no progress, or 30 s passed
//!                          ▼
//!                        check: probes of the size in use, and of the base
//!                          │ 3 × the base alone is answered          ▲
//!                          └───────▶ fall back to the base ──────────┘ search
//! ```
//!
//! It decides by its own probes alone. Sizes are those of UDT: headers of IP and UDP included, envelope excluded.

mod candidates;
#[cfg(test)]
mod tests;

use farhaul_units::{Duration, Instant, Rng};

use self::candidates::Candidates;
use crate::timer::Timer;

/// Probes of a size without a reply after which the path does not carry it. Source: RFC 8899, section 5.1.2, `MAX_PROBES`.
const MAX_PROBES: u32 = 3;
/// Shortest time for a reply. It bounds the load of probes on paths without delay, where a busy peer answers late.
const LEAST_WAIT: Duration = Duration::from_millis(50);
/// Longest time for a reply. Rounds with three probes must end within the three seconds that a fallback may take.
const LONGEST_WAIT: Duration = Duration::from_millis(700);
/// Time until larger sizes are tried again. Source: RFC 8899, section 5.1.1, `PMTU_RAISE_TIMER`.
const RAISE: Duration = Duration::from_secs(600);
/// Time until the size in use is checked while data flows. Narrow routers fragment without a word. Source: RFC 8899, section 5.1.1,
/// `CONFIRMATION_TIMER`; its least is that of a probe, 15 s.
const CONFIRM: Duration = Duration::from_secs(30);
/// The wait between rounds of a check that nobody answers doubles so often: the path is down.
const MAX_DOUBLINGS: u32 = 4;

/// The state of discovery on one connection, for the packets of this side.
#[derive(Debug)]
pub(crate) struct PathMtu {
    base: u32,
    size: u32,
    candidates: Candidates,
    /// The larger size that is being tried.
    search: Option<Probe>,
    check: Option<Check>,
    /// The end of the present round of probes.
    round: Timer,
    /// Larger sizes are tried again then.
    raise: Timer,
    /// The size in use is checked then.
    confirm: Timer,
    begun: bool,
    rng: Rng,
}

/// A packet without data that asks whether its size arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Probe {
    pub(crate) size: u32,
    /// Its random number, the same in each repetition, so that a late reply counts.
    pub(crate) number: u32,
    /// Sent so often without a reply.
    lost: u32,
    /// It leaves with the next packets.
    due: bool,
}

/// A check of the size in use.
#[derive(Clone, Copy, Debug)]
struct Check {
    present: Probe,
    /// The base is probed beside it if the present size is in doubt.
    base: Option<Probe>,
    base_answered: bool,
    /// Rounds without any reply.
    silent: u32,
}

/// Sizes to begin with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    pub(crate) size: u32,
    pub(crate) base: u32,
    pub(crate) largest: u32,
    pub(crate) margin: u32,
}

/// What a reply or a lost probe changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Nothing.
    None,
    /// New packets have this size.
    Raise(u32),
    /// The path drops larger packets than this, the base.
    Fall(u32),
}

impl PathMtu {
    /// Begins with packets of `size` bytes. Probes find at most `largest`, and packets never become smaller than `base`, or than
    /// `size` if that is less. `margin` is what these sizes leave out of the packets of IP.
    pub(crate) fn new(Sizes { size, base, largest, margin }: Sizes, rng: Rng) -> Self {
        Self {
            base: base.min(size),
            size,
            candidates: Candidates::new(largest, margin),
            search: None,
            check: None,
            round: Timer::stopped(),
            raise: Timer::stopped(),
            confirm: Timer::stopped(),
            begun: false,
            rng,
        }
    }

    /// The smallest size to which it may fall.
    pub(crate) const fn base(&self) -> u32 {
        self.base
    }

    // ---- what the connection does ----

    /// Data waits to be sent. The first time begins the search. `wait` is the time for a reply, here and below.
    pub(crate) fn on_data(&mut self, now: Instant, wait: Duration) {
        if self.begun {
            return;
        }
        self.begun = true;
        self.confirm.set(now + CONFIRM);
        self.begin_check();
        self.search_on(now);
        self.begin_round(now, wait);
    }

    /// Acknowledgements make no progress, so the size in use is in doubt.
    pub(crate) fn on_stall(&mut self, now: Instant, wait: Duration) {
        if !self.begun || self.size <= self.base || self.check.is_some_and(|check| check.base.is_some()) {
            return;
        }
        if self.check.is_none() {
            self.begin_check();
        }
        let base = self.probe(self.base);
        if let Some(check) = &mut self.check {
            check.base = Some(base);
        }
        self.begin_round(now, wait);
    }

    // ---- probes ----

    /// The next probe to send.
    pub(crate) fn poll(&mut self) -> Option<Probe> {
        let check = self.check.as_mut();
        let (present, base) = check.map_or((None, None), |check| (Some(&mut check.present), check.base.as_mut()));
        let probe = [present, base, self.search.as_mut()].into_iter().flatten().find(|probe| probe.due)?;
        probe.due = false;
        Some(*probe)
    }

    /// A reply arrived: `arrived` bytes, counted like sizes, of the probe with this number.
    pub(crate) fn on_reply(&mut self, number: u32, arrived: u32, now: Instant, wait: Duration) -> Change {
        let is = |probe: &Probe| probe.number == number && probe.size == arrived;
        if let Some(found) = self.search.filter(is) {
            self.size = found.size;
            // What carries more carries the size in doubt.
            self.check = None;
            self.search = None;
            self.search_on(now);
            self.begin_round(now, wait);
            return Change::Raise(found.size);
        }
        let Some(check) = &mut self.check else { return Change::None };
        if check.base.as_ref().is_some_and(is) {
            check.base_answered = true;
        } else if is(&check.present) {
            self.check = None;
            self.confirm.set(now + CONFIRM);
        }
        Change::None
    }

    /// Fires the timers. `active` is whether data waits or is in flight, without which nothing new begins.
    pub(crate) fn handle_timeout(&mut self, now: Instant, wait: Duration, active: bool) -> Change {
        if self.round.fires(now) {
            let change = self.end_round(now);
            if self.check.is_some() || self.search.is_some() {
                self.begin_round(now, wait);
            }
            if change != Change::None {
                return change;
            }
        }
        if self.confirm.fires(now) {
            self.confirm.set(now + CONFIRM);
            if active && self.check.is_none() && self.size > self.base {
                self.begin_check();
                self.begin_round(now, wait);
            }
        }
        if self.raise.fires(now) {
            if active {
                self.candidates.restart();
                self.search_on(now);
                self.begin_round(now, wait);
            } else {
                self.raise.set(now + CONFIRM);
            }
        }
        Change::None
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        [self.round.deadline(), self.raise.deadline(), self.confirm.deadline()].into_iter().flatten().min()
    }

    // ---- rounds ----

    /// Begins to check the size in use. The base always arrives.
    fn begin_check(&mut self) {
        if self.size > self.base {
            let present = self.probe(self.size);
            self.check = Some(Check { present, base: None, base_answered: false, silent: 0 });
        }
    }

    /// Tries the next larger size, or none for long.
    fn search_on(&mut self, now: Instant) {
        self.search = self.candidates.next(self.size).map(|size| self.probe(size));
        match self.search {
            Some(_) => self.raise.stop(),
            None => self.raise.set(now + RAISE),
        }
    }

    fn probe(&mut self, size: u32) -> Probe {
        Probe { size, number: (self.rng.next_u64() >> 32) as u32, lost: 0, due: true }
    }

    fn begin_round(&mut self, now: Instant, wait: Duration) {
        let doublings = self.check.map_or(0, |check| check.silent.saturating_sub(MAX_PROBES).min(MAX_DOUBLINGS));
        self.round.set(now + wait.clamp(LEAST_WAIT, LONGEST_WAIT) * (1 << doublings));
    }

    /// Judges the probes of a round, and repeats those that may still arrive.
    fn end_round(&mut self, now: Instant) -> Change {
        if let Some(mut check) = self.check.take() {
            match check.base {
                // Only the base shows whether the size is the reason.
                None => check.base = Some(self.probe(self.base)),
                Some(_) if check.base_answered => check.present.lost += 1,
                Some(_) => check.silent += 1,
            }
            if check.present.lost >= MAX_PROBES {
                return self.fall(now);
            }
            check.base_answered = false;
            check.base = check.base.map(|base| Probe { due: true, ..base });
            check.present.due = true;
            self.check = Some(check);
            // While the size in use is in doubt, larger ones prove nothing.
            return Change::None;
        }
        if let Some(probe) = &mut self.search {
            probe.lost += 1;
            probe.due = true;
            if probe.lost >= MAX_PROBES {
                let size = probe.size;
                self.candidates.fails(size);
                self.search_on(now);
            }
        }
        Change::None
    }

    fn fall(&mut self, now: Instant) -> Change {
        self.candidates.fails(self.size);
        self.size = self.base;
        self.search_on(now);
        Change::Fall(self.base)
    }
}
