//! Events for single data packets, for controllers that ask for them.

use farhaul_cc::{DataPacket, ReceivedEvent, SentEvent};
use farhaul_proto::buffer::Run;
use farhaul_units::{Instant, SeqNo};
use farhaul_wire::udt2004::HEADER_LEN;

use super::Udt2004Connection;

/// The last burst, until the controller has heard of it. Empty if the controller asks for no packets.
#[derive(Debug, Default)]
pub(super) struct Departed {
    packets: Vec<DataPacket>,
    retransmission: bool,
    at: Instant,
}

impl Departed {
    /// The packets of `run`, of which `first` is the first, leave now.
    pub(super) fn list(&mut self, run: &Run<'_>, first: SeqNo, retransmission: bool, now: Instant) {
        self.packets.clear();
        let sizes = run.bytes.chunks(run.segment_size).map(|datagram| (datagram.len() - HEADER_LEN) as u32);
        self.packets.extend((0..).zip(sizes).map(|(index, payload)| DataPacket::new(first.plus(index), None, payload)));
        (self.retransmission, self.at) = (retransmission, now);
    }
}

impl Udt2004Connection {
    /// Reports the last burst to the controller, if it asks for packets.
    pub(super) fn report_sent(&mut self, now: Instant) {
        if self.departed.packets.is_empty() {
            return;
        }
        let path = self.path(now);
        let Departed { packets, retransmission, at } = &self.departed;
        self.congestion.on_sent(&path, &SentEvent::new(packets, *retransmission, *at));
        self.departed.packets.clear();
        self.apply_control();
    }

    /// Reports the packets of the batch that ended.
    pub(super) fn report_received(&mut self, now: Instant) {
        let path = self.path(now);
        let heard = self.receiver.heard();
        if heard.is_empty() {
            return;
        }
        self.congestion.on_received(&path, &ReceivedEvent::new(heard, self.receiver.arrived()));
        self.receiver.forget_heard();
        self.apply_control();
    }
}
