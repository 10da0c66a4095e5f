//! Events for single data packets, for controllers that ask for them.

use farhaul_cc::{DataPacket, ReceivedEvent};
use farhaul_proto::buffer::Run;
use farhaul_units::{Instant, SeqNo};
use farhaul_wire::udt2004::HEADER_LEN;

use super::Udt2004Connection;

/// The packets of `run`, of which `first` is the first.
pub(super) fn packets_of(run: &Run<'_>, first: SeqNo) -> impl Iterator<Item = DataPacket> {
    let sizes = run.bytes.chunks(run.segment_size).map(|datagram| (datagram.len() - HEADER_LEN) as u32);
    (0..).zip(sizes).map(move |(index, payload)| DataPacket::new(first.plus(index), None, payload))
}

impl Udt2004Connection {
    /// Reports the last burst to the controller, if it asks for packets.
    pub(super) fn report_sent(&mut self, now: Instant) {
        let Some(event) = self.sent_packets.event() else { return };
        let path = self.path(now);
        self.congestion.controller.on_sent(&path, &event);
        self.sent_packets.forget();
        self.apply_control();
    }

    /// Reports the packets of the batch that ended.
    pub(super) fn report_received(&mut self, now: Instant) {
        let heard = self.receiver.heard();
        if heard.is_empty() {
            return;
        }
        let path = self.path(now);
        self.congestion.controller.on_received(&path, &ReceivedEvent::new(heard, self.receiver.arrived()));
        self.receiver.forget_heard();
        self.apply_control();
    }
}
