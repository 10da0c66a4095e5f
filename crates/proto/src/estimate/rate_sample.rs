//! Delivery-rate samples: what each news of arrivals says about the path (draft-ietf-ccwg-bbr §4.1).
//!
//! Every burst remembers the count of delivered packets at that time. Once one of its packets has arrived, the growth of that count
//! in between is a sample. Its interval is the longer one of the times in which those packets left and arrived, so neither a burst of
//! departures nor one of acknowledgements overstates the path.
//!
//! Counts are packets of the connection's first size. Packets are remembered by bursts, as in the draft's recommendation for senders with
//! segmentation offload.

use std::collections::VecDeque;

use farhaul_cc::{LostFlight, RateSample};
use farhaul_units::{Duration, Instant, PacketRate, SeqNo, SeqRange};

/// The state of all deliveries of a connection.
#[derive(Debug, Default)]
pub(crate) struct RateSampler {
    /// Bursts of first transmissions, from the oldest that has unacknowledged packets.
    bursts: VecDeque<Burst>,
    /// Packets delivered, and when the last of them was.
    delivered: f64,
    delivered_at: Instant,
    /// The same when last all arrivals were known, and whether some may not be known now: behind a gap, libudt tells none.
    known: (f64, Instant),
    lags: bool,
    /// When the packet left that was the newest at the last sample.
    first_sent_at: Instant,
    /// Packets reported lost.
    lost: f64,
    /// Samples are of the application until so many packets are delivered; `None` if they are of the path.
    application_limited_until: Option<f64>,
}

/// A burst, and the state when it left.
#[derive(Clone, Copy, Debug)]
struct Burst {
    range: SeqRange,
    at: Instant,
    first_sent_at: Instant,
    delivered: f64,
    known: (f64, Instant),
    lost: f64,
    /// Packets in flight, these included.
    in_flight: f64,
    application_limited: bool,
}

impl RateSampler {
    /// New packets leave while `in_flight` others are unacknowledged. They weigh `weight` in all.
    pub(crate) fn on_sent(&mut self, range: SeqRange, weight: f64, in_flight: f64, now: Instant) {
        if in_flight <= 0.0 {
            (self.first_sent_at, self.delivered_at, self.known) = (now, now, (self.delivered, now));
        }
        self.bursts.push_back(Burst {
            range,
            at: now,
            first_sent_at: self.first_sent_at,
            delivered: self.delivered,
            known: self.known,
            lost: self.lost,
            in_flight: in_flight + weight,
            application_limited: self.application_limited_until.is_some(),
        });
    }

    /// Packets were reported lost that weigh `weight` and belong to `range`. `again` is whether retransmissions of them were lost, whose
    /// bursts are not remembered.
    pub(crate) fn on_lost(&mut self, range: SeqRange, weight: f64, again: bool) -> Option<LostFlight> {
        self.lost += weight;
        let burst = self.find(range.last).filter(|_| !again)?;
        Some(LostFlight {
            packets: weight,
            in_flight: burst.in_flight,
            lost: self.lost - burst.lost,
            application_limited: burst.application_limited,
        })
    }

    /// Whether packets may have arrived that the next news does not tell.
    pub(crate) const fn set_lag(&mut self, lags: bool) {
        self.lags = lags;
    }

    /// Packets that weigh `weight` are known to have arrived. The news of the last of them reached this side at `at`. `latest` is the
    /// one among them that left last, unless that is unknown.
    ///
    /// Returns the sample, and the time from that packet's departure to `at`. No interval below `least_round_trip` is a sample.
    pub(crate) fn on_delivered(
        &mut self,
        weight: f64,
        latest: Option<SeqNo>,
        at: Instant,
        least_round_trip: Duration,
    ) -> Option<(RateSample, Duration)> {
        self.delivered += weight;
        self.delivered_at = self.delivered_at.max(at);
        if !self.lags {
            self.known = (self.delivered, self.delivered_at);
        }
        if self.application_limited_until.is_some_and(|until| self.delivered > until) {
            self.application_limited_until = None;
        }
        let burst = *self.find(latest?)?;
        if burst.at < self.first_sent_at || at <= burst.at {
            // It was overtaken by the packet of an earlier sample, or the delay is a lie.
            return None;
        }
        self.first_sent_at = burst.at;
        let (known, known_at) = burst.known;
        let interval = (burst.at - burst.first_sent_at).max(self.delivered_at - known_at);
        let delivered = self.delivered - burst.delivered;
        let rate = (self.delivered - known) / interval.as_secs_f64();
        let is_long = !interval.is_zero() && interval >= least_round_trip && delivered > 0.0;
        let sample = RateSample {
            prior_delivered: burst.delivered,
            delivered,
            rate: is_long.then(|| PacketRate::new(rate)),
            in_flight: burst.in_flight,
            lost: self.lost - burst.lost,
            application_limited: burst.application_limited,
        };
        Some((sample, at - burst.at))
    }

    /// Everything before `seq` has arrived.
    pub(crate) fn acknowledge(&mut self, seq: SeqNo) {
        while self.bursts.front().is_some_and(|burst| burst.range.last.is_before(seq)) {
            self.bursts.pop_front();
        }
    }

    /// Whether a burst of this packet is remembered.
    pub(crate) fn knows(&self, seq: SeqNo) -> bool {
        self.find(seq).is_some()
    }

    /// The path is another one, so what left before says nothing about it.
    pub(crate) fn restart(&mut self, now: Instant) {
        self.bursts.clear();
        (self.first_sent_at, self.delivered_at, self.known) = (now, now, (self.delivered, now));
    }

    /// Frees memory that is kept for reuse only.
    pub(crate) fn shrink(&mut self) {
        self.bursts.shrink_to_fit();
    }

    /// The sender has nothing to send with `in_flight` packets unacknowledged.
    pub(crate) fn on_application_limited(&mut self, in_flight: f64) {
        self.application_limited_until = Some((self.delivered + in_flight).max(1.0));
    }

    /// Packets delivered since the connection began.
    pub(crate) const fn delivered(&self) -> f64 {
        self.delivered
    }

    /// Whether samples are of the application.
    pub(crate) const fn is_application_limited(&self) -> bool {
        self.application_limited_until.is_some()
    }

    pub(crate) fn memory(&self) -> usize {
        self.bursts.capacity() * size_of::<Burst>()
    }

    fn find(&self, seq: SeqNo) -> Option<&Burst> {
        let place = self.bursts.partition_point(|burst| burst.range.last.is_before(seq));
        self.bursts.get(place).filter(|burst| !seq.is_before(burst.range.first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(micros)
    }

    fn range(first: u32, last: u32) -> SeqRange {
        SeqRange::new(SeqNo::new(first), SeqNo::new(last))
    }

    /// A sampler with 100 packets sent at 60 ms and delivered at 100 ms, and packet 900 sent at 104 ms.
    fn sampler() -> RateSampler {
        let mut sampler = RateSampler::default();
        sampler.on_sent(range(0, 99), 100.0, 0.0, at(60_000));
        sampler.on_sent(range(100, 499), 400.0, 100.0, at(61_000));
        sampler.on_delivered(100.0, Some(SeqNo::new(99)), at(100_000), Duration::ZERO);
        sampler.on_sent(range(900, 900), 1.0, 400.0, at(104_000));
        sampler
    }

    #[test]
    fn the_longer_one_of_sending_and_arriving_is_the_interval() {
        // Sheet E2: 400 packets in max(44, 46) ms.
        let (sample, rtt) =
            sampler().on_delivered(400.0, Some(SeqNo::new(900)), at(146_000), Duration::from_millis(40)).unwrap();
        assert!((sample.rate.unwrap().packets_per_second() - 400.0 / 0.046).abs() < 1.0);
        assert_eq!((sample.prior_delivered, sample.delivered, sample.in_flight), (100.0, 400.0, 401.0));
        assert_eq!(rtt, Duration::from_millis(42));
        // Acknowledgements in a burst.
        let (sample, _) = sampler().on_delivered(600.0, Some(SeqNo::new(900)), at(110_000), Duration::ZERO).unwrap();
        assert!((sample.rate.unwrap().packets_per_second() - 600.0 / 0.044).abs() < 1.0);
    }

    #[test]
    fn an_interval_below_the_round_trip_is_no_rate_but_counts() {
        let mut sampler = RateSampler::default();
        sampler.on_sent(range(0, 9), 10.0, 0.0, at(0));
        let (sample, _) =
            sampler.on_delivered(10.0, Some(SeqNo::new(9)), at(30_000), Duration::from_millis(40)).unwrap();
        assert_eq!((sample.rate, sample.delivered, sampler.delivered()), (None, 10.0, 10.0));
    }

    #[test]
    fn after_an_empty_flight_the_pause_does_not_count() {
        let mut sampler = RateSampler::default();
        sampler.on_sent(range(0, 9), 10.0, 0.0, at(0));
        sampler.on_delivered(10.0, Some(SeqNo::new(9)), at(40_000), Duration::ZERO);
        sampler.on_sent(range(10, 19), 10.0, 0.0, at(5_000_000));
        let (sample, _) = sampler.on_delivered(10.0, Some(SeqNo::new(19)), at(5_040_000), Duration::ZERO).unwrap();
        assert!((sample.rate.unwrap().packets_per_second() - 250.0).abs() < 1e-6);
    }

    #[test]
    fn samples_of_the_application_are_marked_until_its_packets_are_delivered() {
        let mut sampler = RateSampler::default();
        sampler.on_sent(range(0, 9), 10.0, 0.0, at(0));
        sampler.on_application_limited(10.0);
        sampler.on_sent(range(10, 19), 10.0, 10.0, at(1_000));
        sampler.on_delivered(10.0, Some(SeqNo::new(9)), at(40_000), Duration::ZERO);
        assert!(sampler.is_application_limited(), "ten are of the application");
        let (sample, _) = sampler.on_delivered(1.0, Some(SeqNo::new(10)), at(41_000), Duration::ZERO).unwrap();
        assert!(sample.application_limited && !sampler.is_application_limited());
    }

    #[test]
    fn a_lost_packet_tells_what_was_in_flight_with_it() {
        let mut sampler = RateSampler::default();
        sampler.on_sent(range(0, 39), 40.0, 0.0, at(0));
        sampler.on_sent(range(40, 79), 40.0, 40.0, at(1_000));
        assert_eq!(sampler.on_lost(range(3, 4), 2.0, false).unwrap().in_flight, 40.0);
        let lost = sampler.on_lost(range(50, 52), 3.0, false).unwrap();
        assert_eq!((lost.packets, lost.in_flight, lost.lost), (3.0, 80.0, 5.0));
        assert!(sampler.on_lost(range(3, 4), 2.0, true).is_none());
        sampler.acknowledge(SeqNo::new(40));
        assert!(sampler.on_lost(range(3, 4), 1.0, false).is_none(), "it is forgotten");
    }

    /// Sheet E3: 10 000 packets/s and 40 ms. Packets 1000 and 1010 are lost, and their repairs arrive within 1 ms.
    #[test]
    fn what_arrived_behind_a_gap_before_a_packet_left_does_not_count_as_its_delivery() {
        let mut sampler = RateSampler::default();
        sampler.on_sent(range(0, 998), 999.0, 0.0, at(0));
        sampler.on_sent(range(999, 1_410), 412.0, 400.0, at(60_000));
        sampler.on_delivered(1_000.0, Some(SeqNo::new(999)), at(100_000), Duration::ZERO);
        sampler.set_lag(true);
        sampler.on_delivered(10.0, None, at(140_100), Duration::ZERO);
        sampler.on_sent(range(1_411, 1_800), 390.0, 400.0, at(140_100));
        sampler.set_lag(false);
        sampler.on_delivered(401.0, None, at(141_100), Duration::ZERO);
        let least = Duration::from_millis(40);
        let (sample, _) = sampler.on_delivered(390.0, Some(SeqNo::new(1_800)), at(180_100), least).unwrap();
        let rate = sample.rate.unwrap().packets_per_second();
        assert!((rate - 801.0 / 0.0801).abs() < 1.0 && (rate / 10_000.0 - 1.0).abs() < 0.001, "{rate}");
    }

    #[test]
    fn an_overtaken_packet_makes_no_sample() {
        let mut sampler = RateSampler::default();
        sampler.on_sent(range(0, 9), 10.0, 0.0, at(0));
        sampler.on_sent(range(10, 19), 10.0, 10.0, at(5_000));
        assert!(sampler.on_delivered(10.0, Some(SeqNo::new(19)), at(50_000), Duration::ZERO).is_some());
        assert!(sampler.on_delivered(10.0, Some(SeqNo::new(9)), at(51_000), Duration::ZERO).is_none());
        assert_eq!(sampler.delivered(), 20.0);
    }
}
