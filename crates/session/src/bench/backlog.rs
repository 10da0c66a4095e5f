//! Data that a sender's transport has taken and not yet sent. It leaves after the end of the measurement, unless the
//! sender stops writing in time.

use farhaul_units::{Duration, Instant};

/// Most bytes that wait while none has left. The rate is not known yet. It is what the smallest transport buffers.
const FIRST: u64 = 1 << 20;
/// The present rate is measured over at least this part of the time so far. Blast protocols pause for an RTT after each
/// blast, so a short span would miss the pause.
const SPAN_PART: u32 = 2;
/// Least time between two samples of the rate. A shorter one would measure single trains.
const SHORTEST_SPAN: Duration = Duration::from_millis(10);

/// The bytes that have left, and their rate.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    /// `None` for a driver that does not know it.
    left: Option<u64>,
    begun: Instant,
    /// Two earlier samples, at least one span apart.
    marks: [(Instant, u64); 2],
    /// Bytes per second of the last one to two spans.
    rate: f64,
}

impl Backlog {
    /// Since the start, `left` bytes have left.
    pub(super) fn sample(&mut self, now: Instant, left: u64) {
        if self.left.is_none() {
            self.begun = now;
            self.marks = [(now, left); 2];
        }
        // Counts of whole packets may go back by the padding of the last one.
        let left = left.max(self.left.unwrap_or(0));
        self.left = Some(left);
        let [(since, before), (middle, _)] = self.marks;
        let time = now.saturating_since(since).as_secs_f64();
        if time > 0.0 {
            self.rate = left.saturating_sub(before) as f64 / time;
        }
        let span = (now.saturating_since(self.begun) / SPAN_PART).max(SHORTEST_SPAN);
        if now.saturating_since(middle) >= span {
            self.marks = [self.marks[1], (now, left)];
        }
    }

    /// Whether the bytes that wait need all of the `rest` of the time. `spent` is the time before it, in which `written`
    /// bytes were written.
    pub(super) fn fills(&self, rest: Duration, spent: Duration, written: u64) -> bool {
        let Some(left) = self.left else { return false };
        let waiting = written.saturating_sub(left);
        if left == 0 {
            return waiting >= FIRST;
        }
        // The mean bridges pauses of the protocol, and the present rate follows a rate that grows.
        let mean = left as f64 / spent.as_secs_f64().max(f64::MIN_POSITIVE);
        waiting > 0 && waiting as f64 >= self.rate.max(mean) * rest.as_secs_f64()
    }
}
