//! Liveness of a channel: pings for the RTT, and the silence of the peer.

use farhaul_units::{Duration, Instant};

use super::engine::RoundTrips;
use farhaul_proto::estimate::Rtt;

/// Time between two pings while data moves.
const BUSY: Duration = Duration::from_millis(500);
/// After this silence of the channel a sender of datagrams stops, because nobody may be there to receive them (attack
/// C2).
const STOP_AFTER: Duration = Duration::from_secs(3);

/// Measures the RTT and the silence.
#[derive(Debug)]
pub(super) struct ChannelLiveness {
    pub(super) rtt: Rtt,
    /// The mean deviation of the samples from the smoothed RTT. That of [`Rtt`] begins at half of the first sample, which
    /// is right for timers and says nothing of the path.
    deviation: Duration,
    heard: Instant,
    next: Instant,
    idle: Duration,
    timeout: Duration,
    /// The number of the last ping, and when it left; `None` once it was answered.
    asked: Option<Instant>,
    number: u64,
}

impl ChannelLiveness {
    /// Begins with the RTT of the channel's opening. `idle` is the time between pings without data, and `timeout` the
    /// silence that ends the connection.
    pub(super) fn new(now: Instant, first: Option<Duration>, idle: Duration, timeout: Duration) -> Self {
        let mut rtt = Rtt::default();
        if let Some(sample) = first {
            rtt.sample(sample, now);
        }
        Self { rtt, deviation: Duration::ZERO, heard: now, next: now, idle, timeout, asked: None, number: 0 }
    }

    /// Something came on the channel.
    pub(super) fn on_heard(&mut self, now: Instant) {
        self.heard = now;
    }

    /// The ping to send now. `busy` is whether data moves.
    pub(super) fn poll_ping(&mut self, now: Instant, busy: bool) -> Option<u64> {
        if now < self.due(busy) || self.asked.is_some_and(|at| now - at < self.timeout) {
            return None;
        }
        self.number += 1;
        self.asked = Some(now);
        self.next = now;
        Some(self.number)
    }

    /// The peer's answer. Returns the sample, if it answers the last ping.
    pub(super) fn on_echo(&mut self, now: Instant, number: u64) -> Option<Duration> {
        if number != self.number {
            return None;
        }
        let sample = now - self.asked.take()?;
        if self.rtt.min().is_some() {
            self.deviation = (self.deviation * 3 + self.rtt.smoothed().abs_diff(sample)) / 4;
        }
        self.rtt.sample(sample, now);
        Some(sample)
    }

    /// The RTTs so far.
    pub(super) fn round_trips(&self) -> RoundTrips {
        let smoothed = self.rtt.smoothed();
        RoundTrips { least: self.rtt.min().unwrap_or(smoothed), smoothed, variation: self.deviation }
    }

    /// Whether a sender of datagrams must pause.
    pub(super) fn is_stalled(&self, now: Instant) -> bool {
        now - self.heard >= STOP_AFTER && self.asked.is_some()
    }

    /// The silence of the peer, if it is long enough to end the connection.
    pub(super) fn is_silent(&self, now: Instant) -> Option<Duration> {
        (now - self.heard >= self.timeout).then_some(self.timeout)
    }

    /// Time since the peer was heard.
    pub(super) fn silence(&self, now: Instant) -> Duration {
        now - self.heard
    }

    /// This computer was suspended, so silence counts from now.
    pub(super) fn on_suspended(&mut self, now: Instant) {
        self.heard = now;
        self.asked = None;
    }

    /// When to look again. A ping needs a channel that is `ready` for bytes.
    pub(super) fn deadline(&self, busy: bool, ready: bool) -> Instant {
        let silent = self.heard + self.timeout;
        if self.asked.is_some() || !ready { silent } else { self.due(busy).min(silent) }
    }

    fn due(&self, busy: bool) -> Instant {
        // Two pings of a busy channel are an RTT apart, so that a sample never waits behind another.
        let idle = self.idle.min(self.timeout / 3);
        self.next + if busy { BUSY.max(self.rtt.smoothed()).min(idle.max(BUSY)) } else { idle }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(1_000_000_000) + Duration::from_millis(millis)
    }

    fn liveness() -> ChannelLiveness {
        ChannelLiveness::new(at(0), Some(Duration::from_millis(40)), Duration::from_secs(10), Duration::from_secs(30))
    }

    #[test]
    fn an_answered_ping_is_a_sample_and_an_old_answer_is_none() {
        let mut liveness = liveness();
        assert_eq!(liveness.poll_ping(at(499), true), None);
        assert_eq!(liveness.poll_ping(at(500), true), Some(1));
        assert_eq!(liveness.poll_ping(at(1_100), true), None, "the first is not answered");
        assert_eq!(liveness.on_echo(at(540), 1), Some(Duration::from_millis(40)));
        assert_eq!(liveness.on_echo(at(541), 1), None);
        assert_eq!(liveness.poll_ping(at(1_000), true), Some(2));
    }

    #[test]
    fn round_trips_vary_by_what_was_seen_alone() {
        let mut liveness = liveness();
        liveness.poll_ping(at(500), true);
        liveness.on_echo(at(540), 1);
        assert_eq!(liveness.round_trips().variation, Duration::ZERO);
        liveness.poll_ping(at(1_000), true);
        liveness.on_echo(at(1_048), 2);
        assert_eq!(liveness.round_trips().variation, Duration::from_millis(2));
    }

    #[test]
    fn a_ping_is_no_reason_to_wake_while_the_channel_takes_no_bytes() {
        let liveness = liveness();
        assert_eq!(liveness.deadline(true, true), at(500));
        assert_eq!(liveness.deadline(true, false), at(30_000), "only the peer's silence is");
    }

    #[test]
    fn c2_a_sender_stops_after_three_seconds_without_the_channel() {
        let mut liveness = liveness();
        assert!(!liveness.is_stalled(at(5_000)), "no question is open");
        liveness.poll_ping(at(1_000), true);
        assert!(!liveness.is_stalled(at(2_999)) && liveness.is_stalled(at(3_000)));
        liveness.on_heard(at(3_001));
        assert!(!liveness.is_stalled(at(3_002)));
        assert_eq!(liveness.is_silent(at(33_000)), None);
        assert_eq!(liveness.is_silent(at(33_001)), Some(Duration::from_secs(30)));
    }
}
