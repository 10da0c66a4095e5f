//! The burst that left last, for controllers that ask for single packets.

use farhaul_cc::{DataPacket, SentEvent};
use farhaul_units::Instant;

/// The last burst, until the controller has heard of it. Empty if the controller asks for no packets.
#[derive(Debug, Default)]
pub struct SentPackets {
    packets: Vec<DataPacket>,
    retransmission: bool,
    at: Instant,
}

impl SentPackets {
    /// These packets leave now.
    pub fn list(&mut self, packets: impl Iterator<Item = DataPacket>, retransmission: bool, now: Instant) {
        self.packets.clear();
        self.packets.extend(packets);
        (self.retransmission, self.at) = (retransmission, now);
    }

    /// Only the first `packets` of them did.
    pub fn keep(&mut self, packets: u32) {
        self.packets.truncate(packets as usize);
    }

    /// What the controller is to hear; `None` if it has heard all.
    pub fn event(&self) -> Option<SentEvent<'_>> {
        let Self { packets, retransmission, at } = self;
        (!packets.is_empty()).then(|| SentEvent::new(packets, *retransmission, *at))
    }

    /// The controller has heard of it, or never will.
    pub fn forget(&mut self) {
        self.packets.clear();
    }
}
