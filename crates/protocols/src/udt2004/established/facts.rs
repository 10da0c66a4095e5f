//! A connection's values for its controller and its statistics.

use farhaul_cc::Path;
use farhaul_units::Instant;

use super::Udt2004Connection;
use farhaul_proto::stats::Stats;

impl Udt2004Connection {
    /// The measurements for the controller.
    pub(super) fn path(&self, now: Instant) -> Path {
        let mut path = Path::default();
        path.now = now;
        path.mss = self.mtu;
        path.rtt = self.rtt_of_peer();
        path.rtt_var = self.rtt.variation();
        path.min_rtt = self.rtt.min();
        path.latest_rtt = self.rtt.latest();
        path.arrival_rate = self.congestion.arrival_speed();
        path.capacity = self.congestion.bandwidth();
        path.in_flight = self.sender.in_flight();
        path.flow_window = self.sender.max_window();
        path.max_window = self.sender.max_window();
        path.next_seq = self.sender.next();
        path.packets_sent = self.sender.sent;
        path.application_limited = self.sender.is_application_limited();
        path
    }

    /// Fills in the values that this part has.
    pub(super) fn fill(&self, now: Instant, stats: &mut Stats) {
        let (sender, receiver) = (&self.sender, &self.receiver);
        let payload = sender.buffer().payload_size();
        stats.totals = self.counts;
        let totals = &mut stats.totals;
        totals.packets_sent = sender.sent;
        totals.packets_retransmitted = sender.retransmitted;
        totals.packets_received = receiver.packets;
        totals.packets_duplicate = receiver.duplicates;
        totals.packets_lost_receiving = receiver.naks.lost;
        totals.acks_sent = receiver.acks.sent;
        totals.naks_sent = receiver.naks.sent;
        totals.delay_warnings_sent = receiver.warnings_sent;
        totals.bytes_received = receiver.bytes;
        sender.limits().fill(now, totals);
        stats.send_period = self.congestion.send_period();
        stats.flow_window = sender.max_window();
        stats.cwnd = self.congestion.controller.control().cwnd.map_or(u32::MAX, |cwnd| cwnd as u32);
        stats.in_flight = sender.in_flight();
        stats.rtt = if sender.sent > receiver.packets { self.rtt_of_peer() } else { self.rtt.smoothed() };
        stats.rtt_var = self.rtt.variation();
        stats.min_rtt = self.rtt.min().unwrap_or_default();
        stats.capacity = self.congestion.bandwidth().or(receiver.capacity()).unwrap_or_default();
        stats.arrival_rate = self.congestion.arrival_speed().unwrap_or_default();
        stats.send_buffer_free = sender.room();
        stats.recv_buffer_free = u64::from(receiver.buffer.free()) * payload as u64;
        stats.send_buffer_packets = sender.buffer().packets();
        stats.recv_buffer_packets = receiver.buffer.readable_packets();
        stats.payload_size = payload as u32;
        stats.memory = (sender.memory() + receiver.memory()) as u64;
    }
}
