//! UDT's congestion window, and the first sending period derived from it (paper:udt-2004 §3.5.1, as in UDT4).
//!
//! ```text
//! Slow start, per ACK:   W ← W + packets newly acknowledged                    (1)
//! At its end:            P ← 1/R,  or (RTT + SYN)/W without an R               (2)
//! Afterwards, per ACK:   W ← R·(RTT + SYN) + 16                                (3)
//! ```
//!
//! | paper | UDT4 | here | unit |
//! | --- | --- | --- | --- |
//! | AS | R | `Path::arrival_rate` | packets/s |
//! | W | cwnd | `Control::cwnd` | packets |
//! | I | P | `Control::send_period` | µs |
//!
//! Departures (docs/papers/departures.md): D1 R is unknown before the first sample. D2 the right way up in (2). D8 (1)
//! counts exactly. D9 application-limited samples never lower. D10 bounds of the window.

use farhaul_units::{Duration, PacketRate, SendPeriod, SeqNo};

use super::period::{bounded, shorter};
use super::syn::SYN_INTERVAL;
use crate::controller::{Control, Path};

/// Packets beyond those that the measured rate fills, so that a limited flow can grow again. Source: UDT2 and later.
pub(super) const HEADROOM: f64 = 16.0;
/// The smallest window. Below two packets neither a probe pair nor a loss report can occur.
const MIN_CWND: f64 = 2.0;

/// Growth of the window from acknowledged packets, until a loss or the largest window ends it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SlowStart {
    /// Everything before this packet has been counted.
    counted: SeqNo,
}

impl SlowStart {
    /// Slow start of a connection whose first packet is `first`.
    pub(super) fn new(first: SeqNo) -> Self {
        Self { counted: first }
    }

    /// The window after everything before `acked` was acknowledged, (1).
    pub(super) fn grow(&mut self, cwnd: f64, acked: SeqNo) -> f64 {
        let news = acked.distance_from(self.counted);
        if news <= 0 {
            return cwnd;
        }
        self.counted = acked;
        cwnd + f64::from(news)
    }
}

/// R: the arrival rate reported by the receiver. Before the first report, the delivery rate measured by the sender.
/// `None` before both.
pub(super) fn measured_rate(path: &Path) -> Option<PacketRate> {
    [path.arrival_rate, path.delivery_rate].into_iter().flatten().find(|rate| *rate > PacketRate::default())
}

/// The first sending period, when slow start ends with a window of `cwnd`, (2).
pub(super) fn start_period(path: &Path, cwnd: f64) -> SendPeriod {
    let from_window = bounded((path.rtt + SYN_INTERVAL).as_secs_f64() * 1e6 / cwnd);
    match measured_rate(path).map(|rate| bounded(1e6 / rate.packets_per_second())) {
        Some(from_rate) if path.application_limited => shorter(from_rate, from_window),
        Some(from_rate) => from_rate,
        None => from_window,
    }
}

/// The window after slow start, (3), if it was `cwnd`.
pub(super) fn next_window(path: &Path, cwnd: f64) -> f64 {
    match measured_rate(path).map(|rate| window(rate, path.rtt)) {
        Some(window) if path.application_limited => window.max(cwnd),
        Some(window) => window,
        None => cwnd,
    }
}

/// Packets that fill the path and one interval at the measured rate; `None` before the first measurement.
pub(super) fn fill(path: &Path) -> Option<f64> {
    measured_rate(path).map(|rate| rate.packets_in(path.rtt.saturating_add(SYN_INTERVAL)))
}

/// Packets that fill the path at `rate`, plus headroom, (3).
fn window(rate: PacketRate, rtt: Duration) -> f64 {
    rate.packets_in(rtt + SYN_INTERVAL) + HEADROOM
}

/// A law takes over a connection: it goes on with the window, and with the pace or a first one.
pub(super) fn take_over(path: &Path, control: &mut Control) {
    set_cwnd(path, control, cwnd(control));
    if control.send_period.is_unpaced() {
        control.send_period = start_period(path, cwnd(control));
    }
}

/// The current window, packets.
pub(crate) fn cwnd(control: &Control) -> f64 {
    control.cwnd.unwrap_or(Control::INITIAL_CWND)
}

/// Sets the window to `cwnd`, within the bounds of the connection.
pub(crate) fn set_cwnd(path: &Path, control: &mut Control, cwnd: f64) {
    control.cwnd = Some(cwnd.min(f64::from(path.max_window)).max(MIN_CWND));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(arrival_rate: Option<f64>) -> Path {
        Path {
            rtt: Duration::from_millis(90),
            arrival_rate: arrival_rate.map(PacketRate::new),
            max_window: 25_600,
            ..Path::default()
        }
    }

    #[test]
    fn slow_start_counts_every_packet_once_and_across_the_wrap() {
        let mut slow_start = SlowStart::new(SeqNo::MAX.minus(9));
        assert!((slow_start.grow(16.0, SeqNo::MAX) - 25.0).abs() < 1e-9);
        assert!((slow_start.grow(25.0, SeqNo::MAX) - 25.0).abs() < 1e-9, "the same number again");
        assert!((slow_start.grow(25.0, SeqNo::MAX.minus(5)) - 25.0).abs() < 1e-9, "an older one");
        assert!((slow_start.grow(25.0, SeqNo::new(4)) - 30.0).abs() < 1e-9);
    }

    #[test]
    fn the_window_fills_a_round_trip_and_an_interval() {
        assert!((window(PacketRate::new(10_000.0), Duration::from_millis(90)) - 1_016.0).abs() < 1e-9);
    }

    #[test]
    fn without_a_sample_the_window_sets_the_first_period_the_right_way_up() {
        // 100 ms for 50 packets are 2 ms each; UDT4 has 50 / 100 ms = 0.0005 us.
        assert!((start_period(&path(None), 50.0).as_micros() - 2_000.0).abs() < 1e-9);
        assert!((start_period(&path(Some(1_000.0)), 50.0).as_micros() - 1_000.0).abs() < 1e-9);
    }

    #[test]
    fn application_limited_samples_never_lower() {
        let limited = Path { application_limited: true, ..path(Some(100.0)) };
        assert!((start_period(&limited, 50.0).as_micros() - 2_000.0).abs() < 1e-9, "not 10 ms");
        assert!((next_window(&limited, 50.0) - 50.0).abs() < 1e-9);
        let raising = Path { arrival_rate: Some(PacketRate::new(10_000.0)), ..limited };
        assert!((next_window(&raising, 50.0) - 1_016.0).abs() < 1e-9);
    }

    #[test]
    fn the_window_stays_within_two_packets_and_the_largest() {
        let mut control = Control::initial();
        set_cwnd(&path(None), &mut control, 0.5);
        assert_eq!(control.cwnd, Some(2.0));
        set_cwnd(&path(None), &mut control, f64::INFINITY);
        assert_eq!(control.cwnd, Some(25_600.0));
    }
}
