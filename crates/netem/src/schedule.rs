//! Rate and delay that change at known instants.

use std::sync::Arc;

use farhaul_units::{Duration, Instant, Rate};

/// Most steps in one schedule, which bounds the memory of a description from outside.
pub const MAX_STEPS: usize = 1_000_000;

/// One change, at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// When, counted from the driver's [`Instant::ZERO`]. In a repeated schedule, counted from the beginning of the
    /// cycle.
    pub at: Duration,
    /// The rate from here on; `None` keeps it. A rate of zero is an outage.
    pub rate: Option<Rate>,
    /// The propagation delay of packets that leave the transmitter from here on; `None` keeps it.
    pub delay: Option<Duration>,
}

/// Changes of rate and delay in order of time.
///
/// Before the first step the link has the rate and delay of its description. A packet in transmission when the rate
/// changes sends its remaining bits at the new rate, to the fraction of a bit. A shorter delay does not let packets
/// overtake: they arrive together with the last earlier one. [`reordering`](Self::reordering) lets them overtake, as a
/// route change does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    steps: Arc<[Step]>,
    period: Option<Duration>,
    may_reorder: bool,
}

/// The error of making a [`Schedule`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// A step lies before its predecessor.
    #[error("step {0} (counted from 1) is earlier than the step before it")]
    NotInOrder(usize),
    /// More than [`MAX_STEPS`] steps.
    #[error("a schedule has at most {MAX_STEPS} steps, not {0}")]
    TooMany(usize),
    /// The cycle ends before its last step.
    #[error("a cycle of {0:?} is too short: it must end after its last step")]
    ShortPeriod(Duration),
}

impl Schedule {
    /// A schedule of these steps. Of several steps at one instant the last one applies.
    ///
    /// # Errors
    /// The steps are out of order, or more than [`MAX_STEPS`].
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

    /// Repeats the steps. Each cycle begins with the rate and delay of the link's description.
    ///
    /// # Errors
    /// A step lies beyond the end of the cycle, or `period` is zero.
    pub fn repeated(mut self, period: Duration) -> Result<Self, ScheduleError> {
        if period.is_zero() || self.steps.last().is_some_and(|last| last.at >= period) {
            return Err(ScheduleError::ShortPeriod(period));
        }
        self.period = Some(period);
        Ok(self)
    }

    /// Lets packets with a shorter delay overtake packets with a longer one.
    #[must_use]
    pub fn reordering(mut self) -> Self {
        self.may_reorder = true;
        self
    }

    /// The steps in order.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The length of a cycle; `None` if the steps do not repeat.
    pub fn period(&self) -> Option<Duration> {
        self.period
    }

    /// Whether a shrinking delay lets packets overtake.
    pub fn may_reorder(&self) -> bool {
        self.may_reorder
    }

    /// The highest rate, including `base`, the one before the first step. `None` if `base` is.
    pub(crate) fn highest_rate(&self, base: Option<Rate>) -> Option<Rate> {
        let stepped = self.steps.iter().filter_map(|step| step.rate).max();
        base.map(|base| stepped.map_or(base, |stepped| stepped.max(base)))
    }

    /// The timeline of a link that has `rate` and `delay` before the first step.
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

/// A time during which rate and delay are constant.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    /// Nanoseconds since the beginning of the cycle.
    start: u64,
    /// `None` if transmission takes no time.
    pub(crate) rate: Option<Rate>,
    /// Nanoseconds.
    pub(crate) delay: u64,
}

/// The work possible in one cycle, in bits × 10⁹.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CycleWork {
    /// There is no cycle, or the work has no limit.
    Unknown,
    Known(u128),
}

/// The pieces of a schedule and a position in it that only moves forward.
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

    /// The piece at the present position.
    pub(crate) fn piece(&self) -> &Piece {
        &self.pieces[self.index]
    }

    /// Moves to the piece that holds at `time`. Never moves back.
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
    // The pieces last at most 2^64 ns together and no rate reaches 2^64 bit/s, so the sum stays below 2^128.
    work.sum::<Option<u128>>().map_or(CycleWork::Unknown, CycleWork::Known)
}

/// The propagation delay of a link, constant or changing. Packets stay in order unless `may_reorder`.
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

    /// When a packet sent at `sent` arrives. `sent` never decreases from call to call.
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
    fn a_timeline_reports_rate_and_delay_at_every_instant() {
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
