//! Silence: when to send a keep-alive, when to resend everything, when to give the peer up.

use farhaul_units::{Duration, Instant, Rng};

use crate::consts::SYN_INTERVAL;
use crate::timer::Timer;

/// Shortest expiration interval, times the number of expirations in a row. Source: libudt 4.11 (UDT4 wire, §8).
const MIN_INTERVAL: Duration = Duration::from_millis(300);
/// Keep-alives and expirations vary by this share, so that connections do not synchronise (attack B15).
const JITTER: f64 = 0.2;
/// Grid for the keep-alives of an endpoint. A thousand idle connections wake both hosts ten times per second instead of
/// a hundred times. The grid shifts an interval of 10 s by at most 1 %.
const TOGETHER: Duration = Duration::from_millis(100);
/// For shorter intervals the grid is the interval divided by this number.
const TOGETHER_PART: u32 = 64;
/// A caller that passed the cookie check but then stayed silent is forgotten after this time (attack A6).
const UNHEARD_TIMEOUT: Duration = Duration::from_secs(10);

/// Questions to a silent peer before it is given up. The keep-alives of a peer keep to its own interval, which may be
/// longer than this side's patience.
const QUESTIONS: u32 = 4;
/// The first question comes after this part of the patience, the others a quarter of it apart.
const FIRST_QUESTION_PART: u32 = 2;

/// Watches over the silence of the peer and our own.
#[derive(Debug)]
pub struct Expiry {
    timer: Timer,
    /// Expirations in a row plus one.
    count: u32,
    last_heard: Instant,
    /// The later of the last expiration and the peer's last packet. The next expiration counts from here.
    silent_since: Instant,
    /// Random factor of the present expiration interval. The first one in a row is not varied.
    stretch: f64,
    /// Whether a valid packet arrived from the peer since the handshake.
    heard: bool,
    /// Questions asked since then.
    asked: u32,
    last_sent: Instant,
    peer_timeout: Duration,
    keep_alive: Duration,
    /// This connection's present keep-alive interval, varied.
    next_keep_alive: Duration,
    /// The controller's setting in place of the expiration interval.
    rto: Option<Duration>,
    rng: Rng,
}

/// The action that silence requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SilenceAction {
    /// The peer may still answer.
    Nothing,
    /// Send a keep-alive.
    KeepAlive,
    /// Have the peer say something.
    Ask,
    /// Data in flight must be assumed lost; this is the given expiration in a row.
    Expired(u32),
    /// No packet came from the peer for this long.
    Silent(Duration),
}

impl Expiry {
    /// The peer was heard at `now`.
    pub fn new(now: Instant, peer_timeout: Duration, keep_alive: Duration, rng: Rng) -> Self {
        let mut expiry = Self {
            timer: Timer::at(now + MIN_INTERVAL),
            count: 1,
            last_heard: now,
            silent_since: now,
            stretch: 1.0,
            heard: false,
            asked: 0,
            last_sent: now,
            peer_timeout,
            keep_alive,
            next_keep_alive: keep_alive,
            rto: None,
            rng,
        };
        expiry.next_keep_alive = expiry.vary(keep_alive);
        expiry
    }

    /// A valid packet came from the peer.
    #[inline]
    pub fn on_heard(&mut self, now: Instant) {
        self.last_heard = now;
        self.silent_since = now;
        self.heard = true;
        self.asked = 0;
        self.count = 1;
        self.stretch = 1.0;
    }

    /// A packet was sent to the peer.
    #[inline]
    pub fn on_sent(&mut self, now: Instant) {
        self.last_sent = now;
    }

    /// When the last valid packet came from the peer.
    pub(crate) const fn last_heard(&self) -> Instant {
        self.last_heard
    }

    /// Time since the last valid packet from the peer.
    pub(crate) fn silence(&self, now: Instant) -> Duration {
        now.saturating_since(self.last_heard)
    }

    /// Whether the peer has sent anything since the handshake.
    pub const fn was_heard(&self) -> bool {
        self.heard
    }

    pub(crate) fn set_rto(&mut self, rto: Option<Duration>) {
        self.rto = rto;
    }

    /// Checks the timer. `in_flight` is whether data is unacknowledged.
    pub(crate) fn handle_timeout(&mut self, now: Instant, in_flight: bool, round_trip: Duration) -> SilenceAction {
        if !self.timer.fires(now) {
            return SilenceAction::Nothing;
        }
        let action = self.judge(now, in_flight, round_trip);
        self.schedule(now, in_flight, round_trip);
        action
    }

    /// This computer was suspended. The peer was not silent, so all times start again.
    pub fn on_suspended(&mut self, now: Instant) {
        self.last_heard = now;
        self.asked = 0;
        self.silent_since = now;
    }

    fn judge(&mut self, now: Instant, in_flight: bool, round_trip: Duration) -> SilenceAction {
        let silence = now - self.last_heard;
        if silence >= self.patience() {
            return SilenceAction::Silent(self.patience());
        }
        if in_flight && now - self.silent_since >= self.interval(round_trip) {
            let count = self.count;
            self.count += 1;
            self.silent_since = now;
            self.stretch = self.variation();
            return SilenceAction::Expired(count);
        }
        if self.question_due().is_some_and(|due| due <= now) {
            self.asked += 1;
            return SilenceAction::Ask;
        }
        if now >= self.keep_alive_due() {
            self.next_keep_alive = self.vary(self.keep_alive);
            return SilenceAction::KeepAlive;
        }
        SilenceAction::Nothing
    }

    /// Data is now in flight, so expirations start to count.
    pub(crate) fn watch(&mut self, now: Instant, round_trip: Duration) {
        self.silent_since = self.silent_since.max(now);
        let deadline = self.silent_since + self.interval(round_trip);
        if self.timer.deadline().is_none_or(|set| set > deadline) {
            self.timer.set(deadline);
        }
    }

    fn schedule(&mut self, now: Instant, in_flight: bool, round_trip: Duration) {
        let mut next = (self.last_heard + self.patience()).min(self.keep_alive_due());
        if in_flight {
            next = next.min(self.silent_since + self.interval(round_trip));
        }
        next = self.question_due().map_or(next, |due| next.min(due));
        self.timer.set(next.max(now + SYN_INTERVAL));
    }

    /// When a silent peer is asked next. One that was never heard is not: a caller with a forged address must not make this
    /// side send more than its answer.
    fn question_due(&self) -> Option<Instant> {
        let first = self.peer_timeout / FIRST_QUESTION_PART;
        let due = self.last_heard + first + first / QUESTIONS * self.asked;
        (self.heard && self.asked < QUESTIONS).then_some(due)
    }

    /// When silence is broken if nothing else is sent: rounded towards the mean, so that the interval stays within its
    /// variation.
    fn keep_alive_due(&self) -> Instant {
        let step = TOGETHER.min(self.keep_alive / TOGETHER_PART).as_nanos().max(1) as u64;
        let due = (self.last_sent + self.next_keep_alive).as_nanos();
        let earlier = due - due % step;
        let rounded = if self.next_keep_alive < self.keep_alive { earlier.saturating_add(step) } else { earlier };
        Instant::from_nanos(rounded)
    }

    fn patience(&self) -> Duration {
        if self.heard { self.peer_timeout } else { self.peer_timeout.min(UNHEARD_TIMEOUT) }
    }

    /// Source: libudt 4.11 (UDT4 wire, §8).
    fn interval(&self, round_trip: Duration) -> Duration {
        let base = self.rto.unwrap_or((round_trip * self.count + SYN_INTERVAL).max(MIN_INTERVAL * self.count));
        scale(base, self.stretch)
    }

    fn vary(&mut self, duration: Duration) -> Duration {
        scale(duration, self.variation())
    }

    fn variation(&mut self) -> f64 {
        1.0 - JITTER + 2.0 * JITTER * self.rng.unit()
    }

    /// When to check next.
    pub const fn deadline(&self) -> Option<Instant> {
        self.timer.deadline()
    }
}

fn scale(duration: Duration, factor: f64) -> Duration {
    Duration::from_nanos((duration.as_nanos() as f64 * factor) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(40);

    fn expiry() -> Expiry {
        Expiry::new(Instant::ZERO, Duration::from_secs(30), Duration::from_secs(10), Rng::new(1))
    }

    /// Runs the timer for `seconds`. Returns each action with its time in milliseconds.
    fn run(expiry: &mut Expiry, seconds: u64, in_flight: bool) -> Vec<(u64, SilenceAction)> {
        let mut actions = Vec::new();
        while let Some(at) = expiry.deadline().filter(|&at| at <= Instant::ZERO + Duration::from_secs(seconds)) {
            let action = expiry.handle_timeout(at, in_flight, RTT);
            if action != SilenceAction::Nothing {
                actions.push((at.as_nanos() / 1_000_000, action));
            }
            if action == SilenceAction::KeepAlive {
                expiry.on_sent(at);
            }
            if matches!(action, SilenceAction::Silent(_)) {
                break;
            }
        }
        actions
    }

    #[test]
    fn expirations_widen_and_the_peer_is_given_up_after_its_time() {
        let mut expiry = expiry();
        expiry.on_heard(Instant::ZERO);
        let actions = run(&mut expiry, 60, true);
        let times: Vec<u64> = actions
            .iter()
            .filter(|(_, action)| matches!(action, SilenceAction::Expired(_)))
            .map(|(at, _)| *at)
            .collect();
        assert_eq!(times[0], 300);
        // Each interval is 300 ms longer, varied by a fifth. About 13 fit into half a minute.
        let gaps: Vec<u64> = times.windows(2).map(|w| w[1] - w[0]).collect();
        for (i, gap) in gaps.iter().enumerate() {
            let plain = 300 * (i as u64 + 2);
            assert!((plain * 8 / 10..=plain * 12 / 10).contains(gap), "{gaps:?}");
        }
        assert!((10..=15).contains(&times.len()), "{times:?}");
        assert_eq!(actions.last(), Some(&(30_000, SilenceAction::Silent(Duration::from_secs(30)))));
    }

    #[test]
    fn an_idle_connection_sends_a_keep_alive_every_ten_seconds() {
        let mut expiry = expiry();
        let mut keep_alives = Vec::new();
        for _ in 0..20 {
            let at = expiry.deadline().unwrap();
            expiry.on_heard(at);
            if expiry.handle_timeout(at, false, RTT) == SilenceAction::KeepAlive {
                keep_alives.push(at);
                expiry.on_sent(at);
            }
        }
        let gaps: Vec<Duration> = keep_alives.windows(2).map(|w| w[1] - w[0]).collect();
        assert!(gaps.len() > 3);
        assert!(gaps.iter().all(|gap| (8_000..=12_000).contains(&gap.as_millis())), "{gaps:?}");
    }

    #[test]
    fn the_keep_alives_of_an_endpoint_leave_together() {
        let mut times = std::collections::BTreeSet::new();
        for seed in 0..200 {
            let start = Instant::from_nanos(seed * 7_654_321);
            let (patience, interval) = (Duration::from_secs(30), Duration::from_secs(10));
            let mut expiry = Expiry::new(start, patience, interval, Rng::new(seed));
            expiry.on_heard(start);
            let actions = run(&mut expiry, 14, false);
            assert!(matches!(actions[..], [(_, SilenceAction::KeepAlive)]), "{actions:?}");
            times.insert(actions[0].0);
        }
        assert!(times.len() < 60, "200 connections speak at few times: {times:?}");
        assert!(times.iter().all(|time| time % 100 == 0), "{times:?}");
    }

    #[test]
    fn a_silent_peer_is_asked_before_it_is_given_up() {
        let mut expiry = expiry();
        expiry.on_heard(Instant::ZERO);
        let actions = run(&mut expiry, 60, false);
        let asked: Vec<u64> =
            actions.iter().filter(|(_, action)| *action == SilenceAction::Ask).map(|(at, _)| *at).collect();
        assert_eq!(asked, [15_000, 18_750, 22_500, 26_250]);
        assert_eq!(actions.last(), Some(&(30_000, SilenceAction::Silent(Duration::from_secs(30)))));
    }

    #[test]
    fn a_caller_that_was_never_heard_is_asked_nothing() {
        let actions = run(&mut expiry(), 60, false);
        assert!(actions.iter().all(|(_, action)| *action != SilenceAction::Ask), "{actions:?}");
    }

    #[test]
    fn a_caller_that_never_speaks_again_is_forgotten_early() {
        let actions = run(&mut expiry(), 60, false);
        assert_eq!(actions.last(), Some(&(10_000, SilenceAction::Silent(Duration::from_secs(10)))));
    }

    #[test]
    fn a_suspended_computer_does_not_blame_the_peer() {
        let mut expiry = expiry();
        expiry.on_heard(Instant::ZERO);
        let awake = Instant::ZERO + Duration::from_secs(600);
        expiry.on_suspended(awake);
        assert!(!matches!(expiry.handle_timeout(awake, true, RTT), SilenceAction::Silent(_)));
        let next = expiry.deadline().unwrap();
        assert!(!matches!(expiry.handle_timeout(next, true, RTT), SilenceAction::Silent(_)));
    }
}
