//! Events for single data packets, for controllers that ask for them.

use farhaul_cc::ReceivedEvent;
use farhaul_units::Instant;

use super::UdtConnection;
use crate::sent_packets::SentPackets;

impl UdtConnection {
    /// Begins to list packets if the controller asks for them, or ceases to.
    pub(super) fn follow_packets(&mut self) {
        if self.congestion.controller.wants_packets() {
            self.receiver.hear(self.numbered);
        } else {
            self.receiver.hear_nothing();
            self.sent_packets = SentPackets::default();
        }
    }

    /// Reports the last burst to the controller.
    pub(super) fn report_sent(&mut self, now: Instant) {
        let Some(event) = self.sent_packets.event() else { return };
        let path = self.path(now);
        self.congestion.controller.on_sent(&path, &event);
        self.sent_packets.forget();
        self.apply_control();
    }

    /// Reports the packets of the batch that ended.
    pub(super) fn report_received(&mut self, now: Instant) {
        let (packets, arrived) = (self.receiver.take_heard(), self.receiver.arrived());
        self.notify_controller(now, |congestion, path| {
            if !packets.is_empty() {
                congestion.controller.on_received(path, &ReceivedEvent::new(&packets, arrived));
            }
        });
        self.receiver.give_back(packets);
    }
}
