//! Proof that datagrams get through, in both directions.
//!
//! Firewalls that let TCP pass and drop UDP are common. Both sides send small probes until the other says that one
//! arrived. A side whose probes nobody sees within 3 s names the fault.

use farhaul_units::{Duration, Instant};

/// Time after which UDP counts as blocked. Source: the command-line contract.
pub(super) const PATIENCE: Duration = Duration::from_secs(3);
/// Time between two probes.
const SPACING: Duration = Duration::from_millis(250);
/// Time between two probes on an open path without datagrams. Home routers forget a UDP flow after 30 s.
const REFRESH: Duration = Duration::from_secs(15);

/// The paths of this side's datagrams and the peer's.
#[derive(Debug)]
pub(super) struct PathValidation {
    /// This side called, so it knows the peer's address. The other side learns it from the first datagram.
    called: bool,
    /// The peer has said that one of this side's arrived.
    open: bool,
    /// A datagram of the peer has arrived, and whether the peer was told.
    heard: bool,
    told: bool,
    next: Instant,
    deadline: Instant,
}

impl PathValidation {
    /// Both paths. `called` is whether this side called.
    pub(super) fn new(called: bool, now: Instant) -> Self {
        let (open, heard, told, deadline) = (false, false, false, now + PATIENCE);
        Self { called, open, heard, told, next: now, deadline }
    }

    /// Whether this side knows where to send datagrams.
    pub(super) const fn can_send(&self) -> bool {
        self.called || self.heard
    }

    /// A datagram of the peer came.
    pub(super) fn on_datagram(&mut self) {
        self.heard = true;
    }

    /// The peer says that a datagram of this side arrived.
    pub(super) fn on_open(&mut self) {
        self.open = true;
    }

    /// Whether to tell the peer that its datagrams arrive.
    pub(super) fn poll_told(&mut self) -> bool {
        self.heard && !std::mem::replace(&mut self.told, self.heard)
    }

    /// Whether to send a probe now.
    pub(super) fn poll_probe(&mut self, now: Instant) -> bool {
        if !self.can_send() || now < self.next {
            return false;
        }
        self.next = now + if self.open { REFRESH } else { SPACING };
        true
    }

    /// A datagram left, so no probe is needed for a while.
    pub(super) fn on_sent(&mut self, now: Instant) {
        if self.open {
            self.next = now + REFRESH;
        }
    }

    /// Whether both ways are open.
    pub(super) const fn is_open(&self) -> bool {
        self.open && self.heard
    }

    /// Whether UDP is blocked: the time is over, and a direction is not open.
    pub(super) fn is_blocked(&self, now: Instant) -> bool {
        !self.is_open() && now >= self.deadline
    }

    /// This computer was suspended for `gap`.
    pub(super) fn on_suspended(&mut self, gap: Duration) {
        self.deadline += gap;
    }

    /// When to call [`poll_probe`](Self::poll_probe) or [`is_blocked`](Self::is_blocked).
    pub(super) fn deadline(&self) -> Instant {
        match (self.is_open(), self.can_send()) {
            (true, _) => self.next,
            (false, true) => self.next.min(self.deadline),
            (false, false) => self.deadline,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Instant = Instant::from_nanos(1_000_000_000);

    #[test]
    fn a_path_without_answers_is_blocked_after_three_seconds_of_probes() {
        let mut path = PathValidation::new(true, START);
        let (mut now, mut probes) = (START, 0);
        while !path.is_blocked(now) {
            probes += u32::from(path.poll_probe(now));
            now = path.deadline();
        }
        assert_eq!((now - START, probes), (PATIENCE, 12));
    }

    #[test]
    fn an_open_path_is_kept_open_and_told_once() {
        let mut path = PathValidation::new(true, START);
        assert!(path.poll_probe(START) && !path.poll_told());
        path.on_datagram();
        assert!(path.poll_told() && !path.poll_told());
        path.on_open();
        assert!(path.is_open() && !path.is_blocked(START + Duration::from_secs(60)));
        path.on_sent(START);
        assert_eq!(path.deadline(), START + REFRESH);
    }
}
