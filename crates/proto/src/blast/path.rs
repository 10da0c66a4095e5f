//! Proof that datagrams get through, in both directions.
//!
//! Firewalls that let TCP pass and drop UDP are common. Both sides send small probes until the other says that one
//! arrived. A side whose probes nobody sees within 3 s names the fault.
//!
//! The side that was called learns where to send datagrams from the first one with its tag. It must come from the host
//! at the other end of the channel (attack C2).

use core::net::{IpAddr, SocketAddr};

use farhaul_units::{Duration, Instant};

/// Time after which UDP counts as blocked. Source: the command-line contract.
pub(super) const PATIENCE: Duration = Duration::from_secs(3);
/// Time between two probes.
const SPACING: Duration = Duration::from_millis(250);
/// Time between two probes on an open path without datagrams. Home routers forget a UDP flow after 30 s.
const REFRESH: Duration = Duration::from_secs(15);

/// The ways of this side's datagrams and the peer's.
#[derive(Debug)]
pub(super) struct Way {
    host: IpAddr,
    /// Where this side's datagrams go; `None` until the peer's first datagram.
    peer: Option<SocketAddr>,
    /// The peer has said that one of this side's arrived.
    open: bool,
    /// A datagram of the peer has arrived, and whether the peer was told.
    heard: bool,
    told: bool,
    next: Instant,
    deadline: Instant,
}

impl Way {
    /// The way to a peer whose channel leads to `peer`. `called` is whether this side called, so that it knows the
    /// peer's port.
    pub(super) fn new(peer: SocketAddr, called: bool, now: Instant) -> Self {
        let (open, heard, told, deadline) = (false, false, false, now + PATIENCE);
        Self { host: peer.ip(), peer: called.then_some(peer), open, heard, told, next: now, deadline }
    }

    /// Where this side's datagrams go.
    pub(super) fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    /// A datagram with this side's tag came. Returns false if it may not be the peer's.
    pub(super) fn on_datagram(&mut self, from: SocketAddr) -> bool {
        let expected = match self.peer {
            Some(peer) => peer == from,
            None => from.ip() == self.host,
        };
        if expected {
            self.peer = Some(from);
            self.heard = true;
        }
        expected
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
        if self.peer.is_none() || now < self.next {
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

    /// Whether UDP is blocked: the time is over, and a way is not open.
    pub(super) fn is_blocked(&self, now: Instant) -> bool {
        !self.is_open() && now >= self.deadline
    }

    /// This computer was suspended for `gap`.
    pub(super) fn on_suspended(&mut self, gap: Duration) {
        self.deadline += gap;
    }

    /// When to call [`poll_probe`](Self::poll_probe) or [`is_blocked`](Self::is_blocked).
    pub(super) fn deadline(&self) -> Instant {
        match (self.is_open(), self.peer) {
            (true, _) => self.next,
            (false, Some(_)) => self.next.min(self.deadline),
            (false, None) => self.deadline,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Instant = Instant::from_nanos(1_000_000_000);

    fn address(host: u8, port: u16) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, host], port))
    }

    #[test]
    fn c2_only_the_host_of_the_channel_may_send_datagrams() {
        let mut way = Way::new(address(1, 40_000), false, START);
        assert!(!way.on_datagram(address(2, 9_000)) && way.peer().is_none());
        assert!(way.on_datagram(address(1, 9_000)));
        assert_eq!(way.peer(), Some(address(1, 9_000)), "its datagrams come from another port than its channel");
        assert!(!way.on_datagram(address(1, 9_001)), "one port for the whole connection");
    }

    #[test]
    fn a_way_without_answers_is_blocked_after_three_seconds_of_probes() {
        let mut way = Way::new(address(1, 9_000), true, START);
        let (mut now, mut probes) = (START, 0);
        while !way.is_blocked(now) {
            probes += u32::from(way.poll_probe(now));
            now = way.deadline();
        }
        assert_eq!((now - START, probes), (PATIENCE, 12));
    }

    #[test]
    fn an_open_way_is_kept_open_and_told_once() {
        let mut way = Way::new(address(1, 9_000), true, START);
        assert!(way.poll_probe(START) && !way.poll_told());
        assert!(way.on_datagram(address(1, 9_000)) && way.poll_told() && !way.poll_told());
        way.on_open();
        assert!(way.is_open() && !way.is_blocked(START + Duration::from_secs(60)));
        way.on_sent(START);
        assert_eq!(way.deadline(), START + REFRESH);
    }
}
