//! The link between a connection and its controller: the controller's input, and bounds on its output.

use farhaul_cc::{AckEvent, LossEvent, Path, Supervised};
use farhaul_units::{Duration, Instant, PacketRate, SendPeriod};

use farhaul_proto::estimate::SentRate;

/// Weight of the old estimate. Source: paper:udt-2004 §3.5.2 eq. (3).
const BANDWIDTH_WEIGHT: f64 = 0.875;
/// A warning lengthens the period by this factor if the controller does not handle it. Source: paper eq. (4).
const WARNING: f64 = 1.125;

/// A controller with its settings and the peer's reports.
#[derive(Debug)]
pub(super) struct Congestion {
    /// Its own events go straight to it. Those below pass here.
    pub(super) controller: Supervised,
    /// Shortest period that the rate cap permits.
    min_period: SendPeriod,
    /// AS of the paper, as last reported.
    arrival_speed: Option<PacketRate>,
    /// B of the paper.
    bandwidth: Option<PacketRate>,
    sent: SentRate,
    /// A warning arrived that the controller did not handle, and it has made no decision since.
    warned: bool,
}

impl Congestion {
    pub(super) fn new(controller: Supervised, min_period: SendPeriod, now: Instant) -> Self {
        Self { controller, min_period, arrival_speed: None, bandwidth: None, sent: SentRate::new(now), warned: false }
    }

    /// Sets the shortest period that the rate cap permits.
    pub(super) fn set_min_period(&mut self, period: SendPeriod) {
        self.min_period = period;
    }

    /// Counts sent packets.
    pub(super) fn note_sent(&mut self, now: Instant, packets: u32) {
        self.sent.note(now, packets);
    }

    /// Takes the peer's measurements from an acknowledgement. Zero means no measurement, and the last one stays.
    pub(super) fn on_report(&mut self, now: Instant, arrival_speed: u32, capacity: u32, rtt: Duration) {
        let bound = self.sent.at_most(now, rtt);
        if let Some(speed) = PacketRate::from_wire(arrival_speed) {
            self.arrival_speed = Some(if speed > bound { bound } else { speed });
        }
        if let Some(estimate) = PacketRate::from_wire(capacity) {
            self.bandwidth = Some(smooth(self.bandwidth, estimate));
        }
    }

    pub(super) fn on_ack(&mut self, path: &Path, ack: &AckEvent) {
        self.warned = false;
        self.controller.on_ack(path, ack);
    }

    pub(super) fn on_loss(&mut self, path: &Path, loss: &LossEvent<'_>) {
        self.warned = false;
        self.controller.on_loss(path, loss);
    }

    pub(super) fn on_warning(&mut self, path: &Path) {
        self.warned = !self.controller.on_warning(path);
    }

    /// The controller's period, or the period of the rate cap if that is longer.
    pub(super) fn send_period(&self) -> SendPeriod {
        if self.is_capped() { self.min_period } else { self.wanted_period() }
    }

    /// Whether the rate cap permits less than the controller.
    pub(super) fn is_capped(&self) -> bool {
        self.wanted_period() < self.min_period
    }

    /// How many times more than the cap the controller permits, if the cap holds.
    pub(super) fn beyond_cap(&self) -> Option<f64> {
        self.is_capped().then(|| self.min_period.as_micros() / self.wanted_period().as_micros())
    }

    fn wanted_period(&self) -> SendPeriod {
        let period = self.controller.control().send_period;
        if self.warned { period.scaled(WARNING) } else { period }
    }

    pub(super) const fn arrival_speed(&self) -> Option<PacketRate> {
        self.arrival_speed
    }

    pub(super) const fn bandwidth(&self) -> Option<PacketRate> {
        self.bandwidth
    }
}

/// B after one more estimate. The first one counts in full (departure D1).
//= paper:udt-2004 §3.5.2 eq. (3)
fn smooth(old: Option<PacketRate>, estimate: PacketRate) -> PacketRate {
    let Some(old) = old else { return estimate };
    let weighted = old.packets_per_second() * BANDWIDTH_WEIGHT;
    PacketRate::new(weighted + estimate.packets_per_second() * (1.0 - BANDWIDTH_WEIGHT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bandwidth_is_a_weighted_average_of_which_the_newest_is_an_eighth() {
        let first = smooth(None, PacketRate::new(8_000.0));
        assert_eq!(first, PacketRate::new(8_000.0));
        assert!((smooth(Some(first), PacketRate::new(16_000.0)).packets_per_second() - 9_000.0).abs() < 1e-9);
    }

    /// Attack B9.
    #[test]
    fn the_arrival_speed_is_at_most_twice_the_send_rate() {
        let spec: farhaul_cc::Spec = "udt-2004".parse().expect("it is registered");
        let controller = Supervised::new(|| spec.build(1));
        let mut congestion = Congestion::new(controller, SendPeriod::UNPACED, Instant::ZERO);
        let now = Instant::ZERO + Duration::from_millis(40);
        congestion.note_sent(now, 10);
        congestion.on_report(now, u32::MAX, 0, Duration::from_millis(20));
        assert_eq!(congestion.arrival_speed(), Some(PacketRate::new(2_000.0)));
        congestion.on_report(now, 0, 0, Duration::from_millis(20));
        assert_eq!(congestion.arrival_speed(), Some(PacketRate::new(2_000.0)), "zero says nothing");
    }
}
