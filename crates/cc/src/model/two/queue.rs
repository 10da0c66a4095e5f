//! Queueing delay: lower bounds of the RTT, less the path's minimum.
//!
//! ```text
//! q       the least delay of the last two SYN intervals
//! rises   q > q*          a queue stands from then on
//! falls   the least delay of this interval < q*/2
//! P       the largest q since the queue rose
//! ```
//!
//! The least of an interval excludes acknowledgements that a busy host delayed. Two intervals exclude single pauses, also
//! from the peak.

/// Delays of a path, s.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Queue {
    latest: f64,
    /// Least delay of this interval and of the one before.
    least: Option<f64>,
    least_before: Option<f64>,
    peak: f64,
    stands: bool,
    /// Delay that a drain did not remove: jitter, not a queue.
    offset: f64,
}

impl Queue {
    /// Adds the delay of an acknowledgement.
    pub(super) fn take(&mut self, delay: f64) {
        let delay = (delay - self.offset).max(0.0);
        self.latest = delay;
        self.least = Some(self.least.map_or(delay, |known| known.min(delay)));
    }

    /// Compares the delay with `threshold`, q*. Returns whether a queue has just gone.
    pub(super) fn watch(&mut self, threshold: f64) -> bool {
        let delay = self.delay();
        if !self.stands && delay.is_some_and(|delay| delay > threshold) {
            (self.stands, self.peak) = (true, 0.0);
        }
        let falls = self.stands && self.least.or(delay).unwrap_or(0.0) < threshold / 2.0;
        self.stands &= !falls;
        falls
    }

    /// A SYN interval has ended. One without a sample does not count.
    pub(super) fn end_interval(&mut self) {
        if self.least.is_some() {
            self.peak = self.peak.max(self.delay().unwrap_or(0.0));
            self.least_before = self.least.take();
        }
    }

    /// q: the least delay of this interval and of the one before; `None` before two intervals.
    pub(super) fn delay(&self) -> Option<f64> {
        Some(self.least_before?.min(self.least.unwrap_or(f64::INFINITY)))
    }

    pub(super) fn latest(&self) -> f64 {
        self.latest
    }

    /// P: the largest delay since the queue rose.
    pub(super) fn peak(&self) -> f64 {
        self.peak
    }

    /// A queue rose and has not fallen since.
    pub(super) fn stands(&self) -> bool {
        self.stands
    }

    /// Forgets all samples. Delays count above `offset` from now on.
    pub(super) fn restart_above(&mut self, offset: f64) {
        *self = Self { offset, ..Self::default() };
    }

    /// Delays count in full again.
    pub(super) fn remove_offset(&mut self) {
        self.offset = 0.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Watches intervals with these least delays, in ms, at q* = 2 ms. Returns after which of them a queue stood, and at
    /// which it fell.
    fn watch(queue: &mut Queue, delays: &[f64]) -> Vec<(bool, bool)> {
        let mut seen = Vec::new();
        for delay in delays {
            queue.take(delay * 1e-3);
            queue.take(delay * 1e-3 + 1e-3);
            let falls = queue.watch(2e-3);
            seen.push((queue.stands(), falls));
            queue.end_interval();
        }
        seen
    }

    #[test]
    fn a_queue_rises_in_two_intervals_and_falls_below_half_the_threshold() {
        let (no, yes, gone) = ((false, false), (true, false), (false, true));
        let mut queue = Queue::default();
        assert_eq!(watch(&mut queue, &[3.0, 0.0, 3.0, 5.0, 1.5, 0.5, 0.5]), [no, no, no, yes, yes, gone, no]);
        assert!((queue.peak() - 3e-3).abs() < 1e-9, "5 ms in one interval only");
    }

    #[test]
    fn an_offset_is_no_queue() {
        let mut queue = Queue::default();
        queue.restart_above(4e-3);
        assert_eq!(watch(&mut queue, &[5.0, 5.0]), [(false, false); 2]);
        queue.remove_offset();
        assert_eq!(watch(&mut queue, &[5.0, 5.0]), [(false, false), (true, false)]);
    }
}
