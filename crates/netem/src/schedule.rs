//! Rate and delay that change at known instants.

use std::sync::Arc;

use farhaul_units::{Duration, Instant, Rate};

/// Most steps of one schedule, so that a description from outside has a bound.
pub const MAX_STEPS: usize = 1_000_000;

/// One change, at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// When, counted from the host's [`Instant::ZERO`], or in a repeated schedule from the beginning of the cycle.
    pub at: Duration,
    /// The rate from here on; `None` leaves it. A rate of zero is an outage.
    pub rate: Option<Rate>,
    /// The propagation delay of packets that leave the transmitter from here on; `None` leaves it.
    pub delay: Option<Duration>,
}

/// Steps in order of time.
///
/// Before the first step the link has the rate and the delay of its description. A packet that is being sent when the
/// rate changes sends its remaining bits at the new rate, to the fraction of a bit. A delay that becomes shorter does
/// not let packets overtake: they arrive together with the last one of before, unless [`reordering`](Self::reordering)
/// was asked for, as when a route changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    steps: Arc<[Step]>,
    period: Option<Duration>,
    may_reorder: bool,
}

/// Why a list of steps is no schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// Steps are applied one after the other, so their instants must not go back.
    #[error("step {0} (counted from 1) comes before the step in front of it: steps go by time")]
    NotInOrder(usize),
    /// More steps than memory should hold.
    #[error("a schedule has at most {MAX_STEPS} steps, not {0}")]
    TooMany(usize),
    /// A cycle holds all of its steps.
    #[error("a cycle of {0:?} ends before its last step, or takes no time")]
    ShortPeriod(Duration),
}

impl Schedule {
    /// The schedule with these steps. Of several at one instant the last one decides.
    ///
    /// # Errors
    /// The steps are out of order or too many.
    pub fn new(steps: impl IntoIterator<Item = Step>) -> Result<Self, ScheduleError> {
        let steps: Arc<[Step]> = steps.into_iter().take(MAX_STEPS + 1).collect();
        if steps.len() > MAX_STEPS {
            return Err(ScheduleError::TooMany(steps.len()));
        }
        if let Some(index) = steps.windows(2).position(|pair| pair[1].at < pair[0].at) {
            return Err(ScheduleError::NotInOrder(index + 2));
        }
        Ok(Self { steps, period: None, may_reorder: false })
    }

    /// The same steps over and over; each cycle begins with the rate and delay of the link's description.
    ///
    /// # Errors
    /// A step lies behind the end of the cycle, or the cycle takes no time.
    pub fn repeated(mut self, period: Duration) -> Result<Self, ScheduleError> {
        if period.is_zero() || self.steps.last().is_some_and(|last| last.at >= period) {
            return Err(ScheduleError::ShortPeriod(period));
        }
        self.period = Some(period);
        Ok(self)
    }

    /// Lets packets with a shorter delay overtake those with a longer one.
    #[must_use]
    pub fn reordering(mut self) -> Self {
        self.may_reorder = true;
        self
    }

    /// The steps in order.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The length of a cycle, if the steps repeat.
    pub fn period(&self) -> Option<Duration> {
        self.period
    }

    /// Whether a shrinking delay lets packets overtake.
    pub fn may_reorder(&self) -> bool {
        self.may_reorder
    }

    /// The highest rate there is, given the one before the first step; `None` if a link is ever without one.
    pub(crate) fn highest_rate(&self, base: Option<Rate>) -> Option<Rate> {
        let stepped = self.steps.iter().filter_map(|step| step.rate).max();
        base.map(|base| stepped.map_or(base, |stepped| stepped.max(base)))
    }

    /// What holds when, for a link that has `rate` and `delay` before the first step.
    pub(crate) fn timeline(&self, rate: Option<Rate>, delay: Duration) -> Timeline {
        let mut pieces = vec![Piece { start: 0, rate, delay: nanos(delay) }];
        for step in self.steps.iter() {
            let mut next = pieces.last().cloned().expect("there is a first piece");
            next.start = nanos(step.at);
            next.rate = step.rate.or(next.rate);
            next.delay = step.delay.map_or(next.delay, nanos);
            if pieces.last().is_some_and(|last| last.start == next.start) {
                pieces.pop();
            }
            pieces.push(next);
        }
        Timeline::new(pieces, self.period.map_or(0, nanos))
    }
}

pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// A time in which nothing changes.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    /// Nanoseconds since the beginning of the cycle.
    start: u64,
    /// `None`: sending takes no time.
    pub(crate) rate: Option<Rate>,
    /// Nanoseconds.
    pub(crate) delay: u64,
}

/// What can pass in a cycle, in bits × 10⁹.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CycleWork {
    /// There is no cycle, or no limit to what passes in it.
    Unknown,
    Known(u128),
}

/// The pieces of a schedule and a place in it that only moves on.
#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    pieces: Arc<[Piece]>,
    /// Nanoseconds; zero if nothing repeats.
    period: u64,
    pub(crate) cycle_work: CycleWork,
    cycle_start: u64,
    index: usize,
    /// The first nanosecond of the next piece; `u64::MAX` if there is none.
    pub(crate) until: u64,
}

impl Timeline {
    fn new(pieces: Vec<Piece>, period: u64) -> Self {
        let cycle_work = cycle_work(&pieces, period);
        let mut timeline =
            Self { pieces: pieces.into(), period, cycle_work, cycle_start: 0, index: 0, until: u64::MAX };
        timeline.until = timeline.end_of_piece();
        timeline
    }

    /// The piece of the present place.
    pub(crate) fn piece(&self) -> &Piece {
        &self.pieces[self.index]
    }

    /// Moves on to the piece that holds at `time`; never back.
    pub(crate) fn seek(&mut self, time: u64) {
        if time < self.until || self.until == u64::MAX {
            return;
        }
        if self.period > 0 {
            self.cycle_start = time - time % self.period;
        }
        let elapsed = time - self.cycle_start;
        self.index = self.pieces.partition_point(|piece| piece.start <= elapsed) - 1;
        self.until = self.end_of_piece();
    }

    /// When the present cycle began.
    pub(crate) fn cycle_start(&self) -> u64 {
        self.cycle_start
    }

    /// The time `cycles` cycles after `time`.
    pub(crate) fn after_cycles(&self, time: u64, cycles: u128) -> u64 {
        let passed = u64::try_from(cycles.saturating_mul(u128::from(self.period))).unwrap_or(u64::MAX);
        time.saturating_add(passed)
    }

    fn end_of_piece(&self) -> u64 {
        match self.pieces.get(self.index + 1) {
            Some(next) => self.cycle_start.saturating_add(next.start),
            None if self.period > 0 => self.cycle_start.saturating_add(self.period),
            None => u64::MAX,
        }
    }
}

fn cycle_work(pieces: &[Piece], period: u64) -> CycleWork {
    if period == 0 {
        return CycleWork::Unknown;
    }
    let ends = pieces.iter().skip(1).map(|piece| piece.start).chain([period]);
    let work = pieces.iter().zip(ends).map(|(piece, end)| {
        let rate = piece.rate?.bits_per_second();
        Some(u128::from(rate) * u128::from(end - piece.start))
    });
    // Pieces are at most 2^64 ns and 2^64 bit/s together, so the sum stays below 2^128.
    work.sum::<Option<u128>>().map_or(CycleWork::Unknown, CycleWork::Known)
}

/// The propagation delay of a link, which may change; packets stay in order unless asked.
#[derive(Clone, Debug)]
pub(crate) struct Propagation {
    /// Nanoseconds.
    delay: u64,
    changes: Option<Timeline>,
    pub(crate) may_reorder: bool,
    /// When the latest packet arrives.
    last: Instant,
}

impl Propagation {
    pub(crate) fn constant(delay: Duration) -> Self {
        Self { delay: nanos(delay), changes: None, may_reorder: false, last: Instant::ZERO }
    }

    pub(crate) fn changing(timeline: Timeline, may_reorder: bool) -> Self {
        Self { delay: timeline.piece().delay, changes: Some(timeline), may_reorder, last: Instant::ZERO }
    }

    /// When a packet arrives that has been sent at `sent`, which never goes back.
    pub(crate) fn arrival(&mut self, sent: Instant) -> Instant {
        let sent = sent.as_nanos();
        let Some(timeline) = &mut self.changes else {
            return Instant::from_nanos(sent.saturating_add(self.delay));
        };
        timeline.seek(sent);
        let due = Instant::from_nanos(sent.saturating_add(timeline.piece().delay));
        self.last = if self.may_reorder { due } else { due.max(self.last) };
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Step {
        Step { at: Duration::from_millis(millis), ..Step::default() }
    }

    #[test]
    fn steps_out_of_order_are_refused_by_their_number() {
        assert_eq!(Schedule::new([at(1), at(3), at(2)]), Err(ScheduleError::NotInOrder(3)));
        assert_eq!(Schedule::new(vec![at(1); MAX_STEPS + 1]), Err(ScheduleError::TooMany(MAX_STEPS + 1)));
        let steps = Schedule::new([at(0), at(5)]).unwrap();
        for period in [Duration::ZERO, Duration::from_millis(5)] {
            assert_eq!(steps.clone().repeated(period), Err(ScheduleError::ShortPeriod(period)));
        }
        assert!(steps.repeated(Duration::from_nanos(5_000_001)).is_ok());
    }

    #[test]
    fn a_timeline_knows_what_holds_when() {
        let delay =
            |at, delay| Step { at: Duration::from_nanos(at), delay: Some(Duration::from_nanos(delay)), rate: None };
        let schedule = Schedule::new([delay(10, 1), delay(10, 2), delay(30, 3)]).unwrap();
        let once = schedule.timeline(None, Duration::from_nanos(9));
        let again = schedule.repeated(Duration::from_nanos(40)).unwrap().timeline(None, Duration::from_nanos(9));
        let held = |timeline: &Timeline, time| {
            let mut timeline = timeline.clone();
            timeline.seek(time);
            timeline.piece().delay
        };
        for (time, delay) in [(0, 9), (9, 9), (10, 2), (29, 2), (30, 3), (39, 3)] {
            assert_eq!((held(&once, time), held(&again, time)), (delay, delay), "{time}");
            assert_eq!(held(&again, 40 * 1_000_000 + time), delay, "{time}");
        }
        assert_eq!(held(&once, u64::MAX), 3);
    }
}
