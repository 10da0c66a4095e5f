//! How fast packets arrive, for the peer's controller.
//!
//! libudt takes the median of 16 gaps between packets. Receive offloads make gaps meaningless (all packets of one call
//! arrive "at once"), so this side counts packets over time instead, one SYN interval at least. What the median does beside,
//! it does too: a sender that stops for a while, since its window is full or its application idle, has not become slower,
//! so pauses do not count. UDT's window follows this speed; would the speed follow the window's stops, both would shrink.

use farhaul_units::{Duration, Instant, PacketRate};

use crate::udt::consts::SYN_INTERVAL;

/// Fewest packets that make a measurement; libudt needs more than eight valid gaps of sixteen.
const MIN_PACKETS: u64 = 8;
/// A slow flow is measured over at most this long.
const MAX_WINDOW: Duration = Duration::from_millis(500);

/// A gap this long between two arrivals is a pause of the sender, not its speed …
const PAUSE: Duration = SYN_INTERVAL;
/// … unless gaps are that long anyway: this many times the mean one. Source: 2004 paper §3.4, which discards gaps beyond
/// eight medians.
const PAUSE_RATIO: u32 = 8;

/// Packets counted since the last measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArrivalRate {
    /// When packets came last.
    last: Option<Instant>,
    /// The time over which the packets came, pauses left out.
    busy: Duration,
    packets: u64,
    latest: Option<PacketRate>,
}

impl ArrivalRate {
    pub(crate) const fn new() -> Self {
        Self { last: None, busy: Duration::ZERO, packets: 0, latest: None }
    }

    /// `packets` packets arrived.
    pub(crate) fn on_arrival(&mut self, now: Instant, packets: u64) {
        // The first packets only start the clock: when those before them would have come is not known.
        if let Some(last) = self.last.replace(now) {
            let gap = now - last;
            if gap < self.pause() {
                self.busy += gap;
                self.packets += packets;
            }
        }
    }

    /// The shortest gap that is a pause.
    fn pause(&self) -> Duration {
        match self.latest {
            Some(rate) => PAUSE.max(rate.send_period().time_for(u64::from(PAUSE_RATIO))),
            None => MAX_WINDOW,
        }
    }

    /// The speed since the last measurement if enough arrived; otherwise the last one. `None` when there never was one,
    /// or nothing came for long.
    pub(crate) fn measure(&mut self, now: Instant) -> Option<PacketRate> {
        let last = self.last?;
        if self.busy >= SYN_INTERVAL && self.packets >= MIN_PACKETS {
            self.latest = PacketRate::from_packets_in(self.packets, self.busy);
            self.busy = Duration::ZERO;
            self.packets = 0;
        } else if now - last > MAX_WINDOW {
            *self = Self::new();
        }
        self.latest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_in_one_call_counts_over_the_time_it_took() {
        let mut rate = ArrivalRate::new();
        let mut now = Instant::ZERO;
        for _ in 0..11 {
            rate.on_arrival(now, 40);
            now += Duration::from_millis(1);
        }
        let measured = rate.measure(Instant::ZERO + Duration::from_millis(10)).unwrap();
        assert!((measured.packets_per_second() - 40_000.0).abs() < 1.0, "{measured}");
    }

    #[test]
    fn a_pause_of_the_sender_does_not_make_it_slower() {
        let mut rate = ArrivalRate::new();
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
    fn a_slow_flow_is_slow_and_not_pausing() {
        let mut rate = ArrivalRate::new();
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
    fn nothing_is_known_before_enough_arrived() {
        let mut rate = ArrivalRate::new();
        rate.on_arrival(Instant::ZERO, 1);
        assert_eq!(rate.measure(Instant::ZERO + Duration::from_millis(10)), None);
    }
}
