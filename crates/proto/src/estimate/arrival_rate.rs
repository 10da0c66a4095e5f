//! Arrival rate of packets, for the peer's controller.
//!
//! libudt takes the median of 16 gaps between packets. With receive offloads, gaps have no meaning, because all packets
//! of one call arrive at once. So this side counts packets over at least one SYN interval.
//!
//! Like the median, it ignores pauses. A sender may pause because its window is full or its application idle, without
//! being slower. UDT's window follows this rate. If the rate followed pauses caused by the window, both would shrink.

use farhaul_units::{Duration, Instant, PacketRate};

use crate::consts::SYN_INTERVAL;

/// Fewest packets for a measurement. libudt needs more than eight valid gaps of sixteen.
const MIN_PACKETS: u64 = 8;
/// Longest measuring time for a slow flow.
const MAX_WINDOW: Duration = Duration::from_millis(500);

/// A gap of this length between two arrivals is a pause of the sender …
const PAUSE: Duration = SYN_INTERVAL;
/// … unless gaps are usually that long. Then a pause has this many times the mean gap. Source: 2004 paper §3.4, which
/// discards gaps beyond eight medians.
const PAUSE_RATIO: u32 = 8;

/// Packets counted since the last measurement.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ArrivalRate {
    /// When packets last arrived.
    last: Option<Instant>,
    /// Time in which the packets arrived, without pauses.
    busy: Duration,
    packets: u64,
    latest: Option<PacketRate>,
}

impl ArrivalRate {
    /// `packets` packets arrived.
    pub(crate) fn on_arrival(&mut self, now: Instant, packets: u64) {
        // The first packets only start the clock, because the gap before them is unknown.
        if let Some(last) = self.last.replace(now) {
            let gap = now - last;
            if gap < self.pause() {
                self.busy += gap;
                self.packets += packets;
            }
        }
    }

    /// The shortest gap that counts as a pause.
    fn pause(&self) -> Duration {
        match self.latest {
            Some(rate) => PAUSE.max(rate.send_period().time_for(u64::from(PAUSE_RATIO))),
            None => MAX_WINDOW,
        }
    }

    /// The last measurement.
    pub(crate) const fn latest(&self) -> Option<PacketRate> {
        self.latest
    }

    /// The rate since the last measurement if enough packets arrived, otherwise the last measurement. `None` without
    /// one, or if no packet came for long.
    pub(crate) fn measure(&mut self, now: Instant) -> Option<PacketRate> {
        let last = self.last?;
        if self.busy >= SYN_INTERVAL && self.packets >= MIN_PACKETS {
            self.latest = PacketRate::from_packets_in(self.packets, self.busy);
            self.busy = Duration::ZERO;
            self.packets = 0;
        } else if now - last > MAX_WINDOW {
            *self = Self::default();
        }
        self.latest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_in_one_call_counts_over_the_time_it_took() {
        let mut rate = ArrivalRate::default();
        let mut now = Instant::ZERO;
        for _ in 0..11 {
            rate.on_arrival(now, 40);
            now += Duration::from_millis(1);
        }
        let measured = rate.measure(Instant::ZERO + Duration::from_millis(10)).unwrap();
        assert!((measured.packets_per_second() - 40_000.0).abs() < 1.0, "{measured}");
    }

    #[test]
    fn a_pause_of_the_sender_does_not_lower_its_rate() {
        let mut rate = ArrivalRate::default();
        let mut now = Instant::ZERO;
        let mut measured = None;
        for burst in 0..8 {
            for _ in 0..50 {
                rate.on_arrival(now, 2);
                now += Duration::from_micros(400);
                measured = rate.measure(now);
            }
            now += Duration::from_millis(if burst == 0 { 0 } else { 90 });
        }
        let measured = measured.unwrap().packets_per_second();
        assert!((measured - 5_000.0).abs() < 50.0, "{measured}");
    }

    #[test]
    fn the_gaps_of_a_slow_flow_are_no_pauses() {
        let mut rate = ArrivalRate::default();
        let mut now = Instant::ZERO;
        for _ in 0..100 {
            rate.on_arrival(now, 1);
            now += Duration::from_millis(25);
        }
        assert!((rate.measure(now).unwrap().packets_per_second() - 40.0).abs() < 1e-6);
        for _ in 0..100 {
            rate.on_arrival(now, 1);
            now += Duration::from_millis(60);
        }
        assert!((rate.measure(now).unwrap().packets_per_second() - 1e3 / 60.0).abs() < 0.2, "also when it slows down");
    }

    #[test]
    fn there_is_no_rate_before_enough_packets_arrived() {
        let mut rate = ArrivalRate::default();
        rate.on_arrival(Instant::ZERO, 1);
        assert_eq!(rate.measure(Instant::ZERO + Duration::from_millis(10)), None);
    }
}
