//! What BBR knows of the path, each signal with its filter (draft-ietf-ccwg-bbr §5.5).

use farhaul_units::{Duration, Instant, PacketRate};

use crate::controller::{DeliveryEvent, RateSample};

/// Rounds over which the aggregation of acknowledgements is remembered (`BBR.ExtraAckedFilterLen`); one in start-up.
const EXTRA_ACKED_ROUNDS: usize = 10;
/// Age at which the RTT without a queue is no longer valid (`BBR.MinRTTFilterLen`).
const MIN_RTT_AGE: Duration = Duration::from_secs(10);
/// Time after which the window falls to measure it (`BBR.ProbeRTTInterval`).
pub(super) const PROBE_RTT_INTERVAL: Duration = Duration::from_secs(5);
/// The rate must grow by this factor in a round, or the pipe may be full.
const FULL_PIPE_GROWTH: f64 = 1.25;
/// Rounds without that growth after which it is.
const FULL_PIPE_ROUNDS: u32 = 3;

/// Largest rate, packets/s: beyond any host, and far from infinity.
const MOST: f64 = 1e9;

/// Counts packet-timed rounds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rounds {
    next_delivered: f64,
    pub(super) count: u64,
    /// Whether this acknowledgement began a round.
    pub(super) began: bool,
}

impl Rounds {
    pub(super) fn update(&mut self, sample: &RateSample, delivered: f64) {
        self.began = sample.prior_delivered >= self.next_delivered;
        if self.began {
            self.restart(delivered);
            self.count += 1;
        }
    }

    /// Begins a round without counting it.
    pub(super) const fn restart(&mut self, delivered: f64) {
        self.next_delivered = delivered;
    }
}

/// The largest delivery rate of the present and of the last cycle of probes, packets/s.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MaxBandwidth {
    last: f64,
    present: f64,
}

impl MaxBandwidth {
    /// The rate that another law has reached.
    pub(super) fn begin(&mut self, rate: PacketRate) {
        self.present = rate.packets_per_second().min(MOST);
    }

    pub(super) fn update(&mut self, sample: &RateSample) {
        let Some(rate) = sample.rate.map(|rate| rate.packets_per_second().min(MOST)) else { return };
        if rate >= self.get() || !sample.application_limited {
            self.present = self.present.max(rate);
        }
    }

    /// A cycle has ended.
    pub(super) const fn advance(&mut self) {
        (self.last, self.present) = (self.present, 0.0);
    }

    pub(super) const fn get(&self) -> f64 {
        self.last.max(self.present)
    }
}

/// Whether the pipe is full: the delivery rate has stopped to grow.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullPipe {
    /// It was full once, so start-up is over.
    pub(super) reached: bool,
    /// It is full now.
    pub(super) now: bool,
    bandwidth: f64,
    rounds: u32,
}

impl FullPipe {
    /// A round began with this sample.
    pub(super) fn check(&mut self, round_began: bool, sample: &RateSample) {
        let Some(rate) = sample.rate.map(|rate| rate.packets_per_second()) else { return };
        if self.now || !round_began || sample.application_limited {
            return;
        }
        if rate >= self.bandwidth * FULL_PIPE_GROWTH {
            self.restart(rate);
            return;
        }
        self.rounds += 1;
        self.now = self.rounds >= FULL_PIPE_ROUNDS;
        self.reached |= self.now;
    }

    /// The test begins again. The rate has to grow beyond `bandwidth`.
    pub(super) const fn restart(&mut self, bandwidth: f64) {
        (self.bandwidth, self.rounds, self.now) = (bandwidth, 0, false);
    }
}

/// The RTT without a queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MinRtt {
    min: Option<Duration>,
    stamp: Instant,
    /// The minimum since the window last fell, and its time.
    probe: Option<Duration>,
    pub(super) probe_stamp: Instant,
    /// It is time to let the window fall.
    pub(super) expired: bool,
}

impl MinRtt {
    /// With the RTT of the handshake as the first sample, if there is one.
    pub(super) const fn new(rtt: Option<Duration>, now: Instant) -> Self {
        Self { min: rtt, stamp: now, probe: rtt, probe_stamp: now, expired: false }
    }

    pub(super) fn update(&mut self, delivery: &DeliveryEvent, now: Instant) {
        self.expired = now > self.probe_stamp + PROBE_RTT_INTERVAL;
        if let Some(rtt) = delivery.rtt
            && (self.expired || self.probe.is_none_or(|probe| rtt < probe))
        {
            (self.probe, self.probe_stamp) = (Some(rtt), now);
        }
        let is_old = now > self.stamp + MIN_RTT_AGE;
        if let Some(probe) = self.probe
            && (is_old || self.min.is_none_or(|min| probe < min))
        {
            (self.min, self.stamp) = (Some(probe), self.probe_stamp);
        }
    }

    pub(super) const fn get(&self) -> Option<Duration> {
        self.min
    }
}

/// How many packets are acknowledged at once beyond what the bandwidth explains.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ExtraAcked {
    start: Instant,
    delivered: f64,
    /// The maximum of each of the last rounds, the present one at `place`.
    rounds: [f64; EXTRA_ACKED_ROUNDS],
    place: usize,
}

impl ExtraAcked {
    /// Packets beyond the bandwidth since the present interval began, at most `cwnd`.
    pub(super) fn update(&mut self, newly: f64, bandwidth: f64, cwnd: f64, now: Instant, round_began: bool) {
        if round_began {
            self.place = (self.place + 1) % EXTRA_ACKED_ROUNDS;
            self.rounds[self.place] = 0.0;
        }
        let mut expected = bandwidth * (now - self.start).as_secs_f64();
        if self.delivered <= expected {
            (self.start, self.delivered, expected) = (now, 0.0, 0.0);
        }
        self.delivered += newly;
        let extra = (self.delivered - expected).min(cwnd);
        self.rounds[self.place] = self.rounds[self.place].max(extra);
    }

    /// Sending resumes after a pause.
    pub(super) const fn restart(&mut self, now: Instant) {
        self.start = now;
    }

    /// The maximum of ten rounds, or of one before the pipe was full.
    pub(super) fn get(&self, full_pipe_reached: bool) -> f64 {
        if full_pipe_reached { self.rounds.iter().copied().fold(0.0, f64::max) } else { self.rounds[self.place] }
    }
}

#[cfg(test)]
mod tests {
    use farhaul_units::PacketRate;

    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn rate(rate: f64) -> RateSample {
        RateSample { rate: Some(PacketRate::new(rate)), ..RateSample::default() }
    }

    #[test]
    fn a_round_begins_with_a_packet_that_left_after_the_last_one_began() {
        let mut rounds = Rounds::default();
        let sample = |prior_delivered| RateSample { prior_delivered, ..RateSample::default() };
        rounds.update(&sample(0.0), 10.0);
        assert_eq!((rounds.count, rounds.began), (1, true));
        rounds.update(&sample(9.0), 20.0);
        assert_eq!((rounds.count, rounds.began), (1, false));
        rounds.update(&sample(10.0), 30.0);
        assert_eq!((rounds.count, rounds.began), (2, true));
    }

    /// Sheet E15.
    #[test]
    fn the_maximum_is_that_of_two_cycles() {
        let mut max = MaxBandwidth::default();
        max.update(&rate(10_000.0));
        max.advance();
        assert_eq!(max.get(), 10_000.0);
        max.update(&rate(9_000.0));
        assert_eq!(max.get(), 10_000.0);
        max.advance();
        max.update(&rate(1_000.0));
        assert_eq!(max.get(), 9_000.0);
        max.advance();
        assert_eq!(max.get(), 1_000.0);
    }

    #[test]
    fn samples_of_the_application_raise_the_maximum_only() {
        let mut max = MaxBandwidth::default();
        max.update(&rate(1_000.0));
        max.advance();
        max.update(&RateSample { application_limited: true, ..rate(500.0) });
        max.advance();
        assert_eq!(max.get(), 0.0, "the lower one did not count");
        max.update(&RateSample { application_limited: true, ..rate(500.0) });
        assert_eq!(max.get(), 500.0);
    }

    /// Sheet E4.
    #[test]
    fn three_rounds_without_growth_fill_the_pipe() {
        let check = |limited: Option<usize>, rates: &[f64]| {
            let mut pipe = FullPipe::default();
            for (index, sample) in rates.iter().enumerate() {
                pipe.check(true, &RateSample { application_limited: limited == Some(index), ..rate(*sample) });
            }
            pipe.reached
        };
        let rates = [1_000.0, 2_000.0, 4_000.0, 8_000.0, 9_000.0, 9_500.0, 9_900.0];
        assert!(check(None, &rates) && !check(None, &rates[..6]));
        assert!(!check(None, &[1_000.0, 2_000.0, 4_000.0, 8_000.0, 9_000.0, 9_500.0, 10_000.0]));
        assert!(!check(Some(5), &rates), "the sample of the application does not count");
    }

    #[test]
    fn a_rejected_sample_is_no_round_without_growth() {
        let mut pipe = FullPipe::default();
        pipe.check(true, &rate(1_000.0));
        (0..5).for_each(|_| pipe.check(true, &RateSample::default()));
        assert!(!pipe.reached);
    }

    /// Sheet E13.
    #[test]
    fn the_minimum_expires_after_five_seconds_and_is_replaced_after_ten() {
        let mut min = MinRtt::new(Some(Duration::from_millis(40)), at(10_000));
        let sample = |rtt| DeliveryEvent { rtt: Some(Duration::from_millis(rtt)), ..DeliveryEvent::default() };
        min.update(&sample(44), at(14_990));
        assert!(!min.expired);
        min.update(&sample(44), at(15_010));
        assert_eq!((min.expired, min.get()), (true, Some(Duration::from_millis(40))));
        min.update(&sample(44), at(20_020));
        assert_eq!(min.get(), Some(Duration::from_millis(44)));
        min.update(&sample(39), at(20_030));
        assert_eq!(min.get(), Some(Duration::from_millis(39)));
    }

    /// Sheet E12.
    #[test]
    fn acknowledgements_in_clumps_are_extra() {
        let mut extra = ExtraAcked::default();
        for step in 1..=5 {
            extra.update(64.0, 8_000.0, 800.0, at(8 * step), step == 1);
            assert_eq!(extra.get(true), 64.0);
        }
        extra.update(64.0, 8_000.0, 800.0, at(41), false);
        assert_eq!(extra.get(true), 120.0);
        let mut reset = ExtraAcked::default();
        reset.update(64.0, 8_000.0, 800.0, at(8), true);
        reset.update(200.0, 8_000.0, 800.0, at(28), true);
        assert_eq!(reset.get(false), 200.0);
    }
}
