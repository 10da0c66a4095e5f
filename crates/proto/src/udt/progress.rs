//! Whether the peer takes this side's data, and how long this side puts up with one that does not (attack B10).

use farhaul_units::{Duration, Instant};

use crate::config::MinProgress;
use crate::error::ConnectionLost;
use crate::transport::earliest;

/// How long a peer that said that it cannot store data may take none before it is taken at its word. A reader that is
/// merely slow takes some in this time, if only the packet that makes room for the next window.
const COMPLAINT_PATIENCE: Duration = Duration::from_secs(5);

/// Watches over the acknowledgement of this side's data. Its clocks run only while some is outstanding.
#[derive(Debug)]
pub(crate) struct Progress {
    /// When data was last acknowledged, or there was none to acknowledge.
    last: Instant,
    /// Longest time without any.
    patience: Option<Duration>,
    floor: Option<MinProgress>,
    /// Start of the present period of the floor, and bytes acknowledged since.
    period: (Instant, u64),
    /// The error that the peer is said to have reported.
    complaint: Option<u32>,
}

impl Progress {
    pub(crate) const fn new(now: Instant, patience: Option<Duration>, floor: Option<MinProgress>) -> Self {
        Self { last: now, patience, floor, period: (now, 0), complaint: None }
    }

    /// Data was acknowledged: this much.
    pub(crate) fn on_acknowledged(&mut self, now: Instant, bytes: u64) {
        self.last = now;
        self.period.1 += bytes;
    }

    /// Nothing is outstanding, or the time so far is not to count.
    pub(crate) fn restart(&mut self, now: Instant) {
        self.last = now;
        self.period = (now, 0);
    }

    /// From now on, `patience` is the longest time without any progress.
    pub(crate) fn set_patience(&mut self, now: Instant, patience: Duration) {
        self.last = now;
        self.patience = Some(patience);
    }

    /// The peer is said to have reported an error. True the first time.
    pub(crate) fn on_complaint(&mut self, now: Instant, code: u32) -> bool {
        let first = self.complaint.is_none();
        if first {
            self.last = now;
            self.complaint = Some(code);
        }
        first
    }

    /// Whether this side gives up.
    pub(crate) fn check(&mut self, now: Instant) -> Option<ConnectionLost> {
        if let Some(patience) = self.patience().filter(|&patience| now - self.last >= patience) {
            return Some(self.explain(ConnectionLost::NoProgress(patience)));
        }
        let floor = self.floor.filter(|floor| now - self.period.0 >= floor.time)?;
        let (_, bytes) = std::mem::replace(&mut self.period, (now, 0));
        let too_slow = ConnectionLost::TooSlow { bytes, time: floor.time };
        (bytes < floor.bytes).then(|| self.explain(too_slow))
    }

    /// Why a connection is over that the peer, or nobody, ended: what it reported before is then the better reason.
    pub(crate) fn explain(&self, reason: ConnectionLost) -> ConnectionLost {
        use ConnectionLost::{Aborted, NoProgress, PeerError, PeerSilent, TooSlow};
        match (self.complaint, reason) {
            (Some(code), Aborted | NoProgress(_) | PeerSilent(_) | TooSlow { .. }) => PeerError(code),
            _ => reason,
        }
    }

    /// When [`check`](Self::check) is to be called, while data is outstanding.
    pub(crate) fn deadline(&self) -> Option<Instant> {
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
    fn each_byte_buys_the_patience_anew() {
        let mut progress = Progress::new(at(0), Some(Duration::from_secs(10)), None);
        progress.on_acknowledged(at(9), 1);
        assert_eq!(progress.check(at(18)), None);
        assert_eq!(progress.deadline(), Some(at(19)));
        assert_eq!(progress.check(at(19)), Some(ConnectionLost::NoProgress(Duration::from_secs(10))));
    }

    #[test]
    fn a_floor_wants_its_bytes_in_each_period() {
        let mut progress = Progress::new(at(0), None, Some(FLOOR));
        progress.on_acknowledged(at(59), 1_000);
        assert_eq!(progress.check(at(60)), None);
        progress.on_acknowledged(at(61), 999);
        assert_eq!((progress.check(at(119)), progress.deadline()), (None, Some(at(120))));
        assert_eq!(progress.check(at(120)), Some(ConnectionLost::TooSlow { bytes: 999, time: FLOOR.time }));
    }

    #[test]
    fn a_complaint_shortens_the_patience_and_names_the_reason() {
        let mut progress = Progress::new(at(0), None, None);
        assert!(progress.on_complaint(at(100), 4000));
        assert!(!progress.on_complaint(at(104), 1), "the first counts, and a flood gains no time");
        assert_eq!(progress.check(at(104)), None);
        assert_eq!(progress.check(at(105)), Some(ConnectionLost::PeerError(4000)));
        assert_eq!(progress.explain(ConnectionLost::Aborted), ConnectionLost::PeerError(4000));
        assert_eq!(progress.explain(ConnectionLost::ClosedLocally), ConnectionLost::ClosedLocally);
    }
}
