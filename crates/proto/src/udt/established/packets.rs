//! Events for single data packets, for controllers that ask for them.

use farhaul_cc::ReceivedEvent;
use farhaul_units::Instant;

use super::UdtConnection;
use crate::departed::Departed;

impl UdtConnection {
    /// Begins to list packets if the controller asks for them, or ceases to.
    pub(super) fn follow_packets(&mut self) {
        if self.congestion.wants_packets() {
            self.receiver.hear(self.numbered);
        } else {
            self.receiver.hear_nothing();
            self.departed = Departed::default();
        }
    }

    /// Reports the last burst to the controller.
    pub(super) fn report_sent(&mut self, now: Instant) {
        let Some(event) = self.departed.event() else { return };
        let path = self.path(now);
        self.congestion.on_sent(&path, &event);
        self.departed.forget();
        self.apply_control();
    }

    /// Reports the packets of the batch that ended.
    pub(super) fn report_received(&mut self, now: Instant) {
        let path = self.path(now);
        let packets = self.receiver.take_heard();
        if !packets.is_empty() {
            self.congestion.on_received(&path, &ReceivedEvent::new(&packets, self.receiver.arrived()));
        }
        self.receiver.give_back(packets);
        self.apply_control();
    }
}
