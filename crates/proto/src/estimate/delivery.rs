//! Delivery rate of this side's packets, from the progress of acknowledgements.
//!
//! Each acknowledgement names a packet, and the packet carries its send time. Two acknowledgements therefore show the
//! same packets at both ends of the path: their send rate and their delivery rate. If the send rate was much higher,
//! the delivery rate is the bottleneck's capacity.

use std::collections::VecDeque;

use farhaul_cc::DeliverySample;
use farhaul_units::{Duration, Instant, PacketRate, SeqNo};
use farhaul_wire::udt4::Timestamp;

use crate::consts::SYN_INTERVAL;

/// Acknowledgements remembered.
const WINDOW: usize = 128;
/// Fewest packets of a sample: those of one light acknowledgement, less stragglers.
const MIN_PACKETS: u32 = 48;
/// Fewest packets of a sample that lasts a SYN interval. Scheduling matters less then.
const FEW_PACKETS: u32 = 8;
/// Acknowledgements examined in search of the start of a train.
const MAX_TRAIN_MARKS: usize = 32;
/// A step of a train was sent in less than this share of its delivery time. Otherwise the sender paused, and so may
/// have the bottleneck.
const GAP_SHARE: f64 = 0.8;
/// Shortest time of a sample. Shorter ones measure the scheduling of two computers.
const MIN_TIME: Duration = Duration::from_micros(200);

/// The history of acknowledgement progress.
#[derive(Clone, Debug, Default)]
pub(crate) struct Delivery {
    marks: VecDeque<Mark>,
    rate: Option<PacketRate>,
}

/// Everything before `seq` had arrived by the news of time `at`. Its last packet was sent at `left`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    pub(crate) seq: SeqNo,
    pub(crate) at: Instant,
    pub(crate) left: Timestamp,
    /// A light acknowledgement, sent because of the number of packets. Those sent by timer may leave long after the
    /// last packet of a train and would make it look slow.
    pub(crate) light: bool,
}

impl Delivery {
    /// An acknowledgement made progress. `clean` is whether no packet in flight was lost. Otherwise progress jumps when
    /// gaps are filled, and measures nothing.
    pub(crate) fn on_ack(&mut self, mark: Mark, clean: bool, round_trip: Duration) -> Option<DeliverySample> {
        let sample = if clean && mark.light { self.longest_train(mark) } else { None };
        let round_ago =
            self.marks.iter().rev().find(|base| mark.at - base.at >= round_trip.max(2 * SYN_INTERVAL)).copied();
        self.update_rate(mark, round_ago.or(self.marks.front().copied()), round_trip);
        self.push(mark, round_trip);
        sample
    }

    /// The delivery rate of about the last RTT.
    pub(crate) const fn rate(&self) -> Option<PacketRate> {
        self.rate
    }

    /// Packets have another size from now on. Of what was one packet before, `factor` are needed.
    pub(crate) fn rescale(&mut self, factor: f64) {
        self.marks.clear();
        self.rate = self.rate.map(|rate| PacketRate::new(rate.packets_per_second() * factor));
    }

    /// The sender had nothing to send, so earlier acknowledgements say nothing about the path.
    pub(crate) fn restart(&mut self) {
        self.marks.clear();
    }

    /// The sample up to `mark` that spans the longest train. It goes back step by step while packets were sent faster
    /// than delivered. Longer trains reduce the effect of scheduling. Without a train, it is the shortest sample that
    /// is long enough.
    fn longest_train(&self, mark: Mark) -> Option<DeliverySample> {
        let (mut longest, mut newer, mut is_train) = (None, mark, true);
        for base in self.marks.iter().rev().filter(|base| base.light).take(MAX_TRAIN_MARKS) {
            is_train &= base.sent_before(newer) <= (newer.at - base.at).mul_f64(GAP_SHARE) + MIN_TIME / 2;
            if longest.is_some() && !is_train {
                break;
            }
            newer = *base;
            let (packets, time) = (mark.seq.distance_from(base.seq).unsigned_abs(), mark.at - base.at);
            let is_enough = if time >= SYN_INTERVAL { FEW_PACKETS } else { MIN_PACKETS };
            if packets >= is_enough && time >= MIN_TIME {
                longest = base.sample_to(mark);
            }
        }
        longest
    }

    fn update_rate(&mut self, mark: Mark, base: Option<Mark>, round_trip: Duration) {
        if let Some(base) = base {
            let elapsed = mark.at - base.at;
            if elapsed >= round_trip.min(SYN_INTERVAL) {
                let packets = mark.seq.distance_from(base.seq).unsigned_abs();
                self.rate = PacketRate::from_packets_in(u64::from(packets), elapsed).or(self.rate);
            }
        }
    }

    fn push(&mut self, mark: Mark, round_trip: Duration) {
        // Marks closer together than this would displace those of an RTT ago.
        let spacing = round_trip / WINDOW as u32 * 2;
        let crowded =
            self.marks.len() >= WINDOW / 2 && self.marks.back().is_some_and(|newest| mark.at - newest.at < spacing);
        if crowded {
            return;
        }
        if self.marks.len() == WINDOW {
            self.marks.pop_front();
        }
        self.marks.push_back(mark);
    }
}

impl Mark {
    /// How long before `later` its packet was sent.
    fn sent_before(self, later: Self) -> Duration {
        Duration::from_micros(u64::from(later.left.value().wrapping_sub(self.left.value())))
    }

    fn sample_to(self, later: Self) -> Option<DeliverySample> {
        let packets = later.seq.distance_from(self.seq).unsigned_abs();
        let sent_in = self.sent_before(later);
        // The time stamps' resolution is one microsecond.
        let sent = PacketRate::from_packets_in(u64::from(packets), sent_in.max(Duration::from_micros(1)))?;
        let delivered = PacketRate::from_packets_in(u64::from(packets), later.at - self.at)?;
        Some(DeliverySample { packets, sent, delivered })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    fn at(micros: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(micros)
    }

    fn mark(micros: u64, seq: u32, left: u32) -> Mark {
        Mark { seq: SeqNo::new(seq), at: at(micros), left: Timestamp::new(left), light: true }
    }

    #[test]
    fn a_train_shows_the_capacity_of_the_bottleneck() {
        let mut delivery = Delivery::default();
        // 128 packets left within 100 µs; a gigabit link delivers 64 of them in 768 µs.
        assert!(delivery.on_ack(mark(0, 64, 50), true, RTT).is_none());
        let sample = delivery.on_ack(mark(768, 128, 100), true, RTT).unwrap();
        assert!((sample.delivered.packets_per_second() - 83_333.0).abs() < 1.0);
        assert!(sample.sent > sample.delivered);
    }

    #[test]
    fn progress_over_filled_holes_is_no_sample() {
        let mut delivery = Delivery::default();
        delivery.on_ack(mark(0, 64, 0), true, RTT);
        assert!(delivery.on_ack(mark(1_000, 5_000, 900), false, RTT).is_none());
    }

    #[test]
    fn the_rate_is_that_of_a_round_trip_while_holes_are_filled_too() {
        let mut delivery = Delivery::default();
        // Start-up for two RTTs, then a steady rate with nine of ten acknowledgements over gaps.
        delivery.on_ack(mark(0, 0, 0), true, RTT);
        delivery.on_ack(mark(200_000, 100, 200_000), true, RTT);
        for i in 1..=30u32 {
            delivery.on_ack(mark(200_000 + u64::from(i) * 10_000, 100 + i * 500, 0), i % 10 == 1, RTT);
        }
        let rate = delivery.rate().unwrap().packets_per_second();
        assert!((rate - 50_000.0).abs() < 10.0, "{rate}");
    }

    #[test]
    fn the_rate_is_that_of_a_round_trip() {
        let mut delivery = Delivery::default();
        for i in 0..100u32 {
            delivery.on_ack(mark(u64::from(i) * 10_000, i * 500, i * 10_000), true, RTT);
        }
        let rate = delivery.rate().unwrap().packets_per_second();
        assert!((rate - 50_000.0).abs() < 10.0, "{rate}");
    }
}
