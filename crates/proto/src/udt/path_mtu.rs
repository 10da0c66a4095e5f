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
//! A lost size costs `MAX_PROBES` probes in either case. It decides by its own probes alone. Sizes are those of UDT: headers of IP and UDP included, packet protection excluded.

mod candidates;
mod check;
#[cfg(test)]
mod tests;

use farhaul_units::{Duration, Instant, Rng};

use self::candidates::Candidates;
use self::check::{Check, Verdict};
use crate::timer::Timer;

/// Probes of a size without a reply after which the path does not carry it. Source: RFC 8899, section 5.1.2, `MAX_PROBES`.
const MAX_PROBES: u32 = 3;
/// Bounds of the time for a reply to a probe of a larger size. The lower one spares peers that answer late. A reply that comes later
/// than the upper one counts too, because repetitions have the same number.
const LEAST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// Pairs of probes in the time of one reply, while the size in use is in doubt. So three of them take less than two round trips.
const PAIRS_PER_WAIT: u32 = 4;
/// Shortest time between them.
const LEAST_ROUND: Duration = Duration::from_millis(30);
/// After so many rounds without a reply the path is down, and each doubles the time to the next, at most so often.
const SILENT_ROUNDS: u32 = 16;
const MAX_DOUBLINGS: u32 = 5;
/// Time until larger sizes are tried again. Source: RFC 8899, section 5.1.1, `PMTU_RAISE_TIMER`.
const RAISE: Duration = Duration::from_secs(600);
/// Time until the size in use is checked while data flows. Narrow routers fragment without a word. Source: RFC 8899, section 5.1.1,
/// `CONFIRMATION_TIMER`; its least is that of a probe, 15 s.
const CONFIRM: Duration = Duration::from_secs(30);
/// The state of discovery on one connection, for the packets of this side.
#[derive(Debug)]
pub(crate) struct PathMtu {
    base: u32,
    size: u32,
    candidates: Candidates,
    /// The larger size that is being tried.
    search: Option<Search>,
    /// When the reply to its probe is overdue.
    overdue: Timer,
    check: Option<Check>,
    /// The end of the present round of the check.
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
    /// Random, so that nobody can reply who does not see the path.
    pub(crate) number: u32,
}

/// A larger size that is being tried.
#[derive(Clone, Copy, Debug)]
struct Search {
    /// The same in each repetition, so that a late reply counts.
    probe: Probe,
    lost: u32,
    due: bool,
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
            overdue: Timer::stopped(),
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
        self.begin_check(false, now, wait);
        self.search_on(now, wait);
    }

    /// Acknowledgements make no progress, so the size in use is in doubt.
    pub(crate) fn on_stall(&mut self, now: Instant, wait: Duration) {
        if !self.begun {
            return;
        }
        match &mut self.check {
            Some(check) if check.is_in_doubt() => {}
            Some(check) => {
                check.doubt();
                self.begin_round(now, wait);
            }
            None => self.begin_check(true, now, wait),
        }
    }

    // ---- probes ----

    /// The next probe to send.
    pub(crate) fn poll(&mut self) -> Option<Probe> {
        if let Some(probe) = self.check.as_mut().and_then(Check::poll) {
            return Some(probe);
        }
        let search = self.search.as_mut().filter(|search| search.due)?;
        search.due = false;
        Some(search.probe)
    }

    /// A reply arrived: `size` bytes, counted like sizes, of the probe with this number.
    pub(crate) fn on_reply(&mut self, number: u32, size: u32, now: Instant, wait: Duration) -> Change {
        let reply = Probe { size, number };
        if self.search.is_some_and(|search| search.probe == reply) {
            self.size = size;
            // What carries more carries the size in doubt.
            self.end_check(now);
            self.search_on(now, wait);
            return Change::Raise(size);
        }
        match &mut self.check {
            Some(check) if check.is_passed(reply) => self.end_check(now),
            Some(check) => check.on_reply(reply),
            None => {}
        }
        Change::None
    }

    /// Fires the timers. `active` is whether data waits or is in flight, without which nothing new begins.
    pub(crate) fn handle_timeout(&mut self, now: Instant, wait: Duration, active: bool) -> Change {
        if self.round.fires(now)
            && let Some(check) = &mut self.check
        {
            if check.end_round(&mut self.rng) == Verdict::TooLarge {
                return self.fall(now, wait);
            }
            self.begin_round(now, wait);
        }
        if self.overdue.fires(now) {
            self.on_overdue(now, wait);
        }
        if self.confirm.fires(now) {
            self.confirm.set(now + CONFIRM);
            if active && self.check.is_none() {
                self.begin_check(false, now, wait);
            }
        }
        if self.raise.fires(now) {
            if active {
                self.candidates.restart();
                self.search_on(now, wait);
            } else {
                self.raise.set(now + CONFIRM);
            }
        }
        Change::None
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        let timers = [&self.round, &self.overdue, &self.raise, &self.confirm];
        timers.into_iter().filter_map(|timer| timer.deadline()).min()
    }

    // ---- the size in use ----

    /// Begins to check the size in use. The base needs no check.
    fn begin_check(&mut self, in_doubt: bool, now: Instant, wait: Duration) {
        if self.size <= self.base {
            return;
        }
        self.check = Some(Check::new(self.size, self.base, in_doubt, &mut self.rng));
        if in_doubt {
            self.begin_round(now, wait);
        } else {
            self.round.set(now + wait.clamp(LEAST_WAIT, LONGEST_WAIT));
        }
    }

    fn begin_round(&mut self, now: Instant, wait: Duration) {
        let silent = self.check.map_or(0, |check| check.silent);
        let doublings = silent.saturating_sub(SILENT_ROUNDS).min(MAX_DOUBLINGS);
        self.round.set(now + (wait.min(LONGEST_WAIT) / PAIRS_PER_WAIT).max(LEAST_ROUND) * (1 << doublings));
    }

    /// The size in use arrives.
    fn end_check(&mut self, now: Instant) {
        self.check = None;
        self.round.stop();
        self.confirm.set(now + CONFIRM);
    }

    fn fall(&mut self, now: Instant, wait: Duration) -> Change {
        self.end_check(now);
        self.candidates.fails(self.size);
        self.size = self.base;
        self.search_on(now, wait);
        Change::Fall(self.base)
    }

    // ---- larger sizes ----

    /// Tries the next larger size, or none for long.
    fn search_on(&mut self, now: Instant, wait: Duration) {
        let number = (self.rng.next_u64() >> 32) as u32;
        let next = self.candidates.next(self.size);
        self.search = next.map(|size| Search { probe: Probe { size, number }, lost: 0, due: true });
        if next.is_some() {
            self.raise.stop();
            self.overdue.set(now + wait.clamp(LEAST_WAIT, LONGEST_WAIT));
        } else {
            self.overdue.stop();
            self.raise.set(now + RAISE);
        }
    }

    /// The reply to a probe of a larger size is overdue.
    fn on_overdue(&mut self, now: Instant, wait: Duration) {
        self.overdue.set(now + wait.clamp(LEAST_WAIT, LONGEST_WAIT));
        // While even the size in use may be lost, larger ones prove nothing.
        let in_doubt = self.check.is_some_and(|check| check.is_in_doubt());
        if let Some(search) = self.search.as_mut().filter(|_| !in_doubt) {
            search.lost += 1;
            search.due = true;
            if search.lost >= MAX_PROBES {
                self.candidates.fails(search.probe.size);
                self.search_on(now, wait);
            }
        }
    }
}
