//! How long the receiver has been silent: EXP, and no more data to a receiver that says nothing.

use farhaul_units::{Duration, Instant};

use farhaul_proto::timer::Timer;

/// Silence of acknowledgements and reports after which everything counts as lost.
const EXPIRATION: Duration = Duration::from_secs(1);
/// On a long path an answer takes two RTTs and the interval of acknowledgements (departure D304).
const ANSWER: (u32, Duration) = (2, Duration::from_millis(100));
/// Without any record for so long, only one packet leaves per expiration. So nobody can aim a rate at an address that
/// never asked for it (attack C2).
const TRUST: Duration = Duration::from_secs(3);

/// When the receiver was last heard.
#[derive(Debug)]
pub(super) struct Silence {
    expiration: Duration,
    /// EXP; runs while packets are in flight.
    timer: Timer,
    /// When the last record came, of any kind; before the first, when the first packet left.
    heard: Option<Instant>,
    /// When the first packet left, and whether the receiver has reported an arrival since.
    began: Option<Instant>,
    reached: bool,
    /// When the next single packet may leave.
    probe: Instant,
}

impl Silence {
    pub(super) fn new(round_trip: Duration) -> Self {
        let mut silence = Self {
            expiration: EXPIRATION,
            timer: Timer::stopped(),
            heard: None,
            began: None,
            reached: false,
            probe: Instant::ZERO,
        };
        silence.set_round_trip(round_trip);
        silence
    }

    pub(super) fn set_round_trip(&mut self, round_trip: Duration) {
        self.expiration = EXPIRATION.max(round_trip * ANSWER.0 + ANSWER.1);
    }

    /// Packets left. `first` is whether none was in flight before: the receiver had nothing to say then.
    pub(super) fn on_sent(&mut self, now: Instant, first: bool) {
        self.began.get_or_insert(now);
        if first {
            self.heard = Some(now);
            self.timer.set(now + self.expiration);
        }
        if self.is_silent(now) {
            self.probe = now + self.expiration;
        }
    }

    fn is_silent(&self, now: Instant) -> bool {
        self.heard.is_some_and(|heard| now - heard >= TRUST)
    }

    /// A record came. `arrived` is whether it tells of arrivals.
    pub(super) fn on_heard(&mut self, now: Instant, arrived: bool) {
        self.heard = self.heard.map(|_| now);
        self.probe = Instant::ZERO;
        self.reached |= arrived;
    }

    /// An acknowledgement or a report came.
    pub(super) fn on_progress(&mut self, now: Instant) {
        if self.timer.deadline().is_some() {
            self.timer.set(now + self.expiration);
        }
    }

    /// Whether the receiver was silent for too long. The next expiration begins.
    pub(super) fn expires(&mut self, now: Instant, in_flight: bool) -> bool {
        if !in_flight {
            self.timer.stop();
            return false;
        }
        if !self.timer.fires(now) {
            return false;
        }
        self.timer.set(now + self.expiration);
        true
    }

    /// Packets that may leave as far as the receiver's silence permits.
    pub(super) fn allowance(&self, now: Instant, in_flight: bool) -> u32 {
        if in_flight && self.is_silent(now) { u32::from(now >= self.probe) } else { u32::MAX }
    }

    /// Nothing leaves before then.
    pub(super) const fn not_before(&self) -> Instant {
        self.probe
    }

    pub(super) const fn deadline(&self) -> Option<Instant> {
        self.timer.deadline()
    }

    /// Whether the receiver has told of no arrival yet.
    pub(super) const fn is_unheard(&self) -> bool {
        !self.reached
    }

    /// Whether packets have left for so long without any sign of an arrival.
    pub(super) fn never_reached(&self, now: Instant) -> bool {
        !self.reached && self.began.is_some_and(|began| now - began >= TRUST)
    }
}
