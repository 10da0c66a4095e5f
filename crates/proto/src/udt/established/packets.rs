//! Events for single data packets, for controllers that ask for them.

use farhaul_cc::{DataPacket, ReceivedEvent, SentEvent};
use farhaul_units::Instant;

use super::UdtConnection;
use crate::udt::sender::{Sender, Transmission};

/// The last burst, until the controller has heard of it. Empty if the controller asks for no packets.
#[derive(Debug, Default)]
pub(super) struct Departed {
    packets: Vec<DataPacket>,
    retransmission: bool,
    at: Instant,
}

impl Departed {
    /// The packets of `transmission` leave now.
    pub(super) fn list(&mut self, sender: &Sender, transmission: &Transmission, now: Instant) {
        self.packets.clear();
        sender.list(transmission, &mut self.packets);
        (self.retransmission, self.at) = (transmission.is_again(), now);
    }

    /// Only the first `packets` of them did.
    pub(super) fn keep(&mut self, packets: u32) {
        self.packets.truncate(packets as usize);
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    pub(super) fn forget(&mut self) {
        self.packets.clear();
    }
}

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
        let path = self.path(now);
        let Departed { packets, retransmission, at } = &self.departed;
        self.congestion.on_sent(&path, &SentEvent::new(packets, *retransmission, *at));
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
