//! Progress of this side's data, and the limits after which this side gives up the peer (attack B10).

use farhaul_units::{Duration, Instant};

use crate::config::MinProgress;
use crate::error::ConnectionLost;
use crate::transport::earliest;

/// Time without progress after which a peer's reported error is accepted. A slow reader makes some progress in this
/// time, if only the packet that opens the next window.
const COMPLAINT_PATIENCE: Duration = Duration::from_secs(5);

/// Watches the acknowledgements of this side's data. Its clocks run only while data is outstanding.
#[derive(Debug)]
pub struct Progress {
    /// The last time that data was acknowledged or nothing was outstanding.
    last: Instant,
    /// Longest time without progress.
    patience: Option<Duration>,
    floor: Option<MinProgress>,
    /// Start of the present period of `floor`, and bytes acknowledged since.
    period: (Instant, u64),
    /// The error code that the peer, or a forger, reported.
    complaint: Option<u32>,
}

impl Progress {
    /// Bounds from now on: none without `patience` and `floor`.
    pub const fn new(now: Instant, patience: Option<Duration>, floor: Option<MinProgress>) -> Self {
        Self { last: now, patience, floor, period: (now, 0), complaint: None }
    }

    /// Data was acknowledged.
    pub fn on_acknowledged(&mut self, now: Instant, bytes: u64) {
        self.last = now;
        self.period.1 += bytes;
    }

    /// Starts all times again, because nothing is outstanding or the time does not count.
    pub fn restart(&mut self, now: Instant) {
        self.last = now;
        self.period = (now, 0);
    }

    /// From now on, `patience` is the longest time without progress.
    pub fn set_patience(&mut self, now: Instant, patience: Duration) {
        self.last = now;
        self.patience = Some(patience);
    }

    /// An error signal arrived. Returns whether it is the first.
    pub(crate) fn on_complaint(&mut self, now: Instant, code: u32) -> bool {
        let first = self.complaint.is_none();
        if first {
            self.last = now;
            self.complaint = Some(code);
        }
        first
    }

    /// The reason to give up, if a limit was exceeded.
    pub fn check(&mut self, now: Instant) -> Option<ConnectionLost> {
        if let Some(patience) = self.patience().filter(|&patience| now - self.last >= patience) {
            return Some(self.explain(ConnectionLost::NoProgress(patience)));
        }
        let floor = self.floor.filter(|floor| now - self.period.0 >= floor.time)?;
        let (_, bytes) = std::mem::replace(&mut self.period, (now, 0));
        let too_slow = ConnectionLost::TooSlow { bytes, time: floor.time };
        (bytes < floor.bytes).then(|| self.explain(too_slow))
    }

    /// The reason of the end. An error that the peer reported earlier explains an end without a clear reason.
    pub(crate) fn explain(&self, reason: ConnectionLost) -> ConnectionLost {
        use ConnectionLost::{Aborted, NoProgress, PeerError, PeerSilent, TooSlow};
        match (self.complaint, reason) {
            (Some(code), Aborted | NoProgress(_) | PeerSilent(_) | TooSlow { .. }) => PeerError(code),
            _ => reason,
        }
    }

    /// When to call [`check`](Self::check), while data is outstanding.
    pub fn deadline(&self) -> Option<Instant> {
        let patience = self.patience().map(|patience| self.last + patience);
        earliest(patience, self.floor.map(|floor| self.period.0 + floor.time))
    }

    fn patience(&self) -> Option<Duration> {
        let complained = self.complaint.map(|_| COMPLAINT_PATIENCE);
        self.patience.into_iter().chain(complained).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    const FLOOR: MinProgress = MinProgress { bytes: 1_000, time: Duration::from_secs(60) };

    #[test]
    fn without_a_limit_nothing_is_too_slow() {
        let mut progress = Progress::new(at(0), None, None);
        assert_eq!((progress.deadline(), progress.check(at(1_000_000))), (None, None));
    }

    #[test]
    fn each_byte_restarts_the_time_limit() {
        let mut progress = Progress::new(at(0), Some(Duration::from_secs(10)), None);
        progress.on_acknowledged(at(9), 1);
        assert_eq!(progress.check(at(18)), None);
        assert_eq!(progress.deadline(), Some(at(19)));
        assert_eq!(progress.check(at(19)), Some(ConnectionLost::NoProgress(Duration::from_secs(10))));
    }

    #[test]
    fn minimum_progress_requires_its_bytes_in_each_period() {
        let mut progress = Progress::new(at(0), None, Some(FLOOR));
        progress.on_acknowledged(at(59), 1_000);
        assert_eq!(progress.check(at(60)), None);
        progress.on_acknowledged(at(61), 999);
        assert_eq!((progress.check(at(119)), progress.deadline()), (None, Some(at(120))));
        assert_eq!(progress.check(at(120)), Some(ConnectionLost::TooSlow { bytes: 999, time: FLOOR.time }));
    }

    #[test]
    fn an_error_signal_shortens_the_time_limit_and_becomes_the_reason() {
        let mut progress = Progress::new(at(0), None, None);
        assert!(progress.on_complaint(at(100), 4000));
        assert!(!progress.on_complaint(at(104), 1), "the first counts, and a flood gains no time");
        assert_eq!(progress.check(at(104)), None);
        assert_eq!(progress.check(at(105)), Some(ConnectionLost::PeerError(4000)));
        assert_eq!(progress.explain(ConnectionLost::Aborted), ConnectionLost::PeerError(4000));
        assert_eq!(progress.explain(ConnectionLost::ClosedLocally), ConnectionLost::ClosedLocally);
    }
}
