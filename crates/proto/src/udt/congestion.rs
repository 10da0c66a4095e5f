//! Between the connection and its controller: what the controller is told, and within what bounds it is obeyed.

use farhaul_cc::{AckEvent, Control, Controller, LossEvent, Path, TimeoutEvent};
use farhaul_units::{Instant, PacketRate, SendPeriod};

use super::consts::SYN_INTERVAL;

/// Weight of the old value in the filters of reported rates. Source: libudt 4.11, §4 of the algorithms sheet.
const FILTER: f64 = 7.0 / 8.0;
/// A receiver cannot see packets arrive faster than this multiple of the rate they were sent at (attack B9).
const MAX_ARRIVAL_RATIO: f64 = 2.0;
/// Packets over which libudt takes the arrival speed. Until as many have arrived it reports what it began with, one or two
/// packets a second, and a rate taken from that would need minutes to recover.
const ARRIVAL_WINDOW: u64 = 16;

/// A controller with its settings and the reports of the peer.
pub(crate) struct Congestion {
    controller: Box<dyn Controller>,
    control: Control,
    /// Shortest period that the rate cap allows.
    min_period: SendPeriod,
    arrival_rate: Option<PacketRate>,
    capacity: Option<PacketRate>,
    /// Packets acknowledged so far.
    acked: u64,
    /// Packets sent at a recent moment: bounds what the peer can claim to have received since.
    sent_mark: (Instant, u64),
    sent_rate: f64,
}

impl Congestion {
    pub(crate) fn new(controller: Box<dyn Controller>, min_period: SendPeriod, now: Instant) -> Self {
        Self {
            controller,
            control: Control::initial(),
            min_period,
            arrival_rate: None,
            capacity: None,
            acked: 0,
            sent_mark: (now, 0),
            sent_rate: 0.0,
        }
    }

    pub(crate) const fn control(&self) -> &Control {
        &self.control
    }

    /// The controller's period, or the cap's if that is longer.
    pub(crate) fn send_period(&self) -> SendPeriod {
        if self.control.send_period < self.min_period { self.min_period } else { self.control.send_period }
    }

    pub(crate) const fn arrival_rate(&self) -> Option<PacketRate> {
        self.arrival_rate
    }

    pub(crate) const fn capacity(&self) -> Option<PacketRate> {
        self.capacity
    }

    /// A full acknowledgement brought the peer's measurements; `sent` packets have left so far.
    pub(crate) fn on_report(&mut self, now: Instant, arrival_rate: u32, capacity: u32, sent: u64) {
        let (since, before) = self.sent_mark;
        if now - since >= SYN_INTERVAL {
            let rate = (sent - before) as f64 / (now - since).as_secs_f64();
            // Packets of the interval before may be among those reported now.
            self.sent_rate = rate.max(self.sent_rate / 2.0);
            self.sent_mark = (now, sent);
        }
        let bound = PacketRate::new(self.sent_rate * MAX_ARRIVAL_RATIO);
        let measured = self.acked >= ARRIVAL_WINDOW;
        if let Some(rate) = PacketRate::from_wire(arrival_rate).filter(|_| measured) {
            let rate = if rate > bound { bound } else { rate };
            self.arrival_rate = Some(filter(self.arrival_rate, rate));
        }
        if let Some(rate) = PacketRate::from_wire(capacity) {
            self.capacity = Some(filter(self.capacity, rate));
        }
    }

    pub(crate) fn on_connect(&mut self, path: &Path) {
        self.controller.on_connect(path, &mut self.control);
    }

    pub(crate) fn on_ack(&mut self, path: &Path, ack: &AckEvent) {
        self.acked += u64::from(ack.newly_acked);
        self.controller.on_ack(path, ack, &mut self.control);
    }

    pub(crate) fn on_loss(&mut self, path: &Path, loss: &LossEvent<'_>) {
        self.controller.on_loss(path, loss, &mut self.control);
    }

    pub(crate) fn on_timeout(&mut self, path: &Path, timeout: &TimeoutEvent) {
        self.controller.on_timeout(path, timeout, &mut self.control);
    }

    pub(crate) fn on_custom_message(&mut self, path: &Path, kind: u16, body: &[u8]) {
        if self.controller.wants_custom_messages() {
            self.controller.on_custom_message(path, kind, body, &mut self.control);
        }
    }

    /// The peer asks to slow down (type 4): one ninth less, until the controller decides anew. Source: libudt 4.11.
    pub(crate) fn on_warning(&mut self) {
        self.control.send_period = self.control.send_period.scaled(1.125);
    }

    pub(crate) fn on_close(&mut self) {
        self.controller.on_close();
    }
}

impl std::fmt::Debug for Congestion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Congestion")
            .field("controller", &self.controller.name())
            .field("control", &self.control)
            .field("capacity", &self.capacity)
            .finish_non_exhaustive()
    }
}

fn filter(old: Option<PacketRate>, new: PacketRate) -> PacketRate {
    match old {
        None => new,
        Some(old) => PacketRate::new(old.packets_per_second() * FILTER + new.packets_per_second() * (1.0 - FILTER)),
    }
}

#[cfg(test)]
mod tests {
    use farhaul_cc::Spec;
    use farhaul_units::Duration;

    use super::*;

    #[test]
    fn a_peer_that_has_received_hardly_anything_has_measured_nothing() {
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let controller = Spec::default().build(1);
        let mut congestion = Congestion::new(controller, SendPeriod::UNPACED, Instant::ZERO);
        let mut ack = AckEvent::default();
        ack.newly_acked = 15;
        congestion.on_report(at(20), 2, 1_000, 16);
        congestion.on_ack(&Path::default(), &ack);
        congestion.on_report(at(40), 2, 1_000, 32);
        assert_eq!(congestion.arrival_rate(), None);
        congestion.on_ack(&Path::default(), &ack);
        congestion.on_report(at(60), 500, 1_000, 48);
        assert_eq!(congestion.arrival_rate(), Some(PacketRate::new(500.0)));
    }
}
