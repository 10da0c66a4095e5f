//! Figures of a connection in the form of libudt's perfmon.

use std::time::Duration;

use farhaul::Stats;
use farhaul::units::PacketRate;

use crate::controller::callback;

/// Bytes of a full packet that are headers of IP, UDP and UDT.
pub(crate) const HEADERS: u32 = 44;

/// `CPerfMon`: totals, the same since the last clear, and the present.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub(crate) struct Figures {
    ms_time_stamp: i64,
    total: Counts,
    us_send_duration_total: i64,
    since: Counts,
    mbps_send_rate: f64,
    mbps_recv_rate: f64,
    us_send_duration: i64,
    us_send_period: f64,
    flow_window: i32,
    window: i32,
    in_flight: i32,
    ms_rtt: f64,
    mbps_bandwidth: f64,
    bytes_send_buffer_free: i32,
    bytes_recv_buffer_free: i32,
}

/// Counts of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
struct Counts {
    sent: i64,
    received: i64,
    lost_sending: i32,
    lost_receiving: i32,
    retransmitted: i32,
    acks_sent: i32,
    acks_received: i32,
    naks_sent: i32,
    naks_received: i32,
}

/// The figures at the last clear.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Trace(Stats);

impl Trace {
    /// The figures now. `clear` begins a new interval.
    pub(crate) fn figures(&mut self, now: Stats, clear: bool) -> Figures {
        let figures = Figures::between(&self.0, &now);
        if clear {
            self.0 = now;
        }
        figures
    }
}

impl Figures {
    fn between(before: &Stats, now: &Stats) -> Self {
        let mss = u64::from(now.payload_size + HEADERS);
        let whole = |bytes: u64| small(bytes / u64::from(now.payload_size.max(1)) * mss);
        let duration = now.totals.send_duration;
        Self {
            ms_time_stamp: now.elapsed.as_millis() as i64,
            total: Counts::between(&Stats::default(), now),
            us_send_duration_total: micros(duration),
            since: Counts::between(before, now),
            mbps_send_rate: megabits(now.send_rate_since(before)),
            mbps_recv_rate: megabits(now.recv_rate_since(before)),
            us_send_duration: micros(duration.saturating_sub(before.totals.send_duration)),
            us_send_period: now.send_period.as_micros(),
            flow_window: small(u64::from(now.flow_window)),
            window: small(u64::from(now.cwnd)),
            in_flight: small(u64::from(now.in_flight)),
            ms_rtt: now.rtt.as_secs_f64() * 1e3,
            mbps_bandwidth: of_packets(now.capacity, now.payload_size),
            bytes_send_buffer_free: whole(now.send_buffer_free),
            bytes_recv_buffer_free: whole(now.recv_buffer_free),
        }
    }

    /// The figures of the connection whose controller runs on this thread. `None` if none runs. Counts of this side as a
    /// receiver are left out, except that of packets.
    pub(crate) fn of_callback() -> Option<Self> {
        let (path, counts) = callback::facts()?;
        let payload = path.mss.saturating_sub(HEADERS);
        let total = Counts {
            sent: path.packets_sent as i64,
            received: counts.received as i64,
            lost_sending: small(counts.lost),
            retransmitted: small(counts.retransmitted),
            acks_received: small(counts.acks),
            naks_received: small(counts.naks),
            ..Counts::default()
        };
        let elapsed = counts.begun.map_or(Duration::ZERO, |begun| path.now.saturating_since(begun));
        Some(Self {
            ms_time_stamp: elapsed.as_millis() as i64,
            total,
            since: total,
            us_send_period: counts.period,
            flow_window: small(u64::from(path.flow_window)),
            window: counts.window as i32,
            in_flight: small(u64::from(path.in_flight)),
            ms_rtt: path.rtt.as_secs_f64() * 1e3,
            mbps_bandwidth: path.capacity.map_or(0.0, |capacity| of_packets(capacity, payload)),
            ..Self::default()
        })
    }
}

impl Counts {
    fn between(before: &Stats, now: &Stats) -> Self {
        let (before, now) = (&before.totals, &now.totals);
        let long = |before: u64, now: u64| now.saturating_sub(before) as i64;
        let count = |before: u64, now: u64| small(now.saturating_sub(before));
        Self {
            sent: long(before.packets_sent, now.packets_sent),
            received: long(before.packets_received, now.packets_received),
            lost_sending: count(before.packets_lost_sending, now.packets_lost_sending),
            lost_receiving: count(before.packets_lost_receiving, now.packets_lost_receiving),
            retransmitted: count(before.packets_retransmitted, now.packets_retransmitted),
            acks_sent: count(before.acks_sent, now.acks_sent),
            acks_received: count(before.acks_received, now.acks_received),
            naks_sent: count(before.naks_sent, now.naks_sent),
            naks_received: count(before.naks_received, now.naks_received),
        }
    }
}

fn small(number: u64) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

fn megabits(rate: farhaul::Rate) -> f64 {
    rate.bits_per_second() as f64 / 1e6
}

/// Full packets a second as megabits of payload.
fn of_packets(rate: PacketRate, payload: u32) -> f64 {
    rate.packets_per_second() * f64::from(payload) * 8.0 / 1e6
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    #[test]
    fn the_layout_is_that_of_cperfmon() {
        assert_eq!(size_of::<Figures>(), 184);
        let offsets = [
            offset_of!(Figures, us_send_duration_total),
            offset_of!(Figures, since),
            offset_of!(Figures, mbps_send_rate),
            offset_of!(Figures, us_send_period),
            offset_of!(Figures, ms_rtt),
            offset_of!(Figures, bytes_send_buffer_free),
        ];
        assert_eq!(offsets, [56, 64, 112, 136, 160, 176]);
    }

    #[test]
    fn an_interval_counts_from_the_last_clear() {
        let mut before = Stats::default();
        before.elapsed = Duration::from_secs(1);
        before.totals.packets_sent = 1_000;
        let mut now = before;
        now.payload_size = 1456;
        now.elapsed = Duration::from_secs(2);
        now.totals.packets_sent = 1_500;
        let figures = Figures::between(&before, &now);
        assert_eq!((figures.total.sent, figures.since.sent), (1_500, 500));
        assert!((figures.mbps_send_rate - 500.0 * 1456.0 * 8.0 / 1e6).abs() < 1e-9);
    }
}
