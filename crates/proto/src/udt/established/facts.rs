//! A connection's values for its controller and its statistics.

use farhaul_cc::Path;
use farhaul_units::Instant;

use super::UdtConnection;
use crate::stats::{Stats, Totals};

impl UdtConnection {
    /// The measurements for the controller.
    pub(super) fn path(&self, now: Instant) -> Path {
        let mut path = Path::default();
        let scale = self.congestion.scale();
        path.now = now;
        path.mss = self.first_mss;
        path.rtt = self.rtt.smoothed();
        path.rtt_var = self.rtt.variation();
        path.min_rtt = self.rtt.min();
        path.latest_rtt = self.rtt.latest();
        path.arrival_rate = self.congestion.arrival_rate();
        path.capacity = self.congestion.capacity();
        path.delivery_rate = self.sender.delivery_rate().map(|rate| scale.rate(rate));
        path.in_flight = self.sender.in_flight_of_first_size();
        path.outstanding = self.sender.outstanding_of_first_size();
        path.sampling_application = self.sender.is_sampling_application();
        path.flow_window = scale.sent(self.sender.flow_window());
        path.max_window = scale.sent(self.max_window);
        path.next_seq = self.sender.next();
        path.packets_sent = self.sender.sent_of_first_size();
        path.application_limited = self.sender.is_application_limited();
        path
    }

    /// Fills in the values that this part has.
    pub(super) fn fill(&self, now: Instant, stats: &mut Stats) {
        let (sender, receiver) = (&self.sender, &self.receiver);
        let payload = sender.buffer().payload_size();
        let shown = |rate| self.congestion.scale().shown(rate);
        stats.silence = Some(self.liveness.expiry.silence(now));
        stats.totals = Totals {
            packets_sent: sender.sent,
            packets_retransmitted: sender.retransmitted,
            packets_received: receiver.packets,
            packets_duplicate: receiver.duplicates,
            packets_lost_receiving: receiver.naks.lost,
            acks_sent: receiver.acks.sent,
            light_acks_sent: receiver.acks.light_sent,
            naks_sent: receiver.naks.sent,
            bytes_received: receiver.bytes,
            messages_dropped: sender.messages_dropped,
            ..self.counts
        };
        sender.limits().fill(now, &mut stats.totals);
        stats.send_period = self.congestion.send_period();
        stats.max_rate = self.max_rate;
        stats.flow_window = sender.flow_window();
        stats.cwnd = self.congestion.control().cwnd.map_or(u32::MAX, |cwnd| cwnd as u32);
        stats.in_flight = sender.in_flight();
        stats.rtt = self.rtt.smoothed();
        stats.rtt_var = self.rtt.variation();
        stats.min_rtt = self.rtt.min().unwrap_or_default();
        stats.capacity = self.congestion.capacity().map(shown).or(receiver.capacity(now)).unwrap_or_default();
        stats.arrival_rate = self.congestion.arrival_rate().map(shown).unwrap_or_default();
        stats.send_buffer_free = sender.room();
        stats.recv_buffer_free = u64::from(receiver.buffer.free()) * payload as u64;
        stats.send_buffer_packets = sender.buffer().packets();
        stats.recv_buffer_packets = receiver.buffer.readable_packets();
        stats.payload_size = payload as u32;
        stats.packet_size = self.packet_size() + self.margin;
        stats.memory = (sender.memory() + receiver.memory()) as u64;
    }
}
