//! Counters and estimates of a connection: every figure of UDT's `perfmon`, and more.

use farhaul_units::{Duration, PacketRate, Rate, SendPeriod};

/// A snapshot of one connection. Totals count since it was opened; a rate over an interval is the difference of two
/// snapshots, which is what UDT's "clear" does without disturbing other readers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// Time since the connection was opened (`msTimeStamp`).
    pub elapsed: Duration,
    /// Totals (`pkt…Total`, `usSndDurationTotal`).
    pub totals: Totals,
    /// Time between packets now (`usPktSndPeriod`).
    pub send_period: SendPeriod,
    /// Receiver's free buffer as last advertised, packets (`pktFlowWindow`).
    pub flow_window: u32,
    /// Congestion window, packets (`pktCongestionWindow`).
    pub cwnd: u32,
    /// Packets sent and not acknowledged (`pktFlightSize`).
    pub in_flight: u32,
    /// Smoothed round-trip time (`msRTT`).
    pub rtt: Duration,
    /// Mean deviation of the round-trip time.
    pub rtt_var: Duration,
    /// Smallest round-trip time of the last ten to twenty seconds in which any was measured; zero before that.
    pub min_rtt: Duration,
    /// Link capacity from probe pairs of the peer's data and of ours (`mbpsBandwidth`), unknown is zero.
    pub capacity: PacketRate,
    /// Arrival speed that the peer reports of our packets; unknown is zero.
    pub arrival_rate: PacketRate,
    /// Free space of the send buffer, bytes (`byteAvailSndBuf`).
    pub send_buffer_free: u64,
    /// Free space of the receive buffer, bytes (`byteAvailRcvBuf`).
    pub recv_buffer_free: u64,
    /// Packets that lie in the send buffer (UDT_SNDDATA).
    pub send_buffer_packets: u32,
    /// Packets that can be read (UDT_RCVDATA).
    pub recv_buffer_packets: u32,
    /// Payload bytes per full packet.
    pub payload_size: u32,
    /// Memory of both buffers and lists, bytes.
    pub memory: u64,
}

/// What was counted since the connection was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Totals {
    /// Data packets sent, retransmissions included.
    pub packets_sent: u64,
    /// Data packets received, duplicates included.
    pub packets_received: u64,
    /// Packets that the peer reported lost.
    pub packets_lost_sending: u64,
    /// Packets that this side found missing.
    pub packets_lost_receiving: u64,
    /// Data packets sent again.
    pub packets_retransmitted: u64,
    /// Data packets that had arrived before.
    pub packets_duplicate: u64,
    /// Datagrams that could not be parsed, or that no legitimate peer sends.
    pub packets_invalid: u64,
    /// Full and medium acknowledgements sent.
    pub acks_sent: u64,
    /// Light acknowledgements sent.
    pub light_acks_sent: u64,
    /// Full and medium acknowledgements received.
    pub acks_received: u64,
    /// Light acknowledgements received.
    pub light_acks_received: u64,
    /// Loss reports sent.
    pub naks_sent: u64,
    /// Loss reports received.
    pub naks_received: u64,
    /// Delay warnings sent (type 4); only the protocol of the 2004 paper has them.
    pub delay_warnings_sent: u64,
    /// Delay warnings received.
    pub delay_warnings_received: u64,
    /// Error signals received (type 8).
    pub error_signals_received: u64,
    /// Expirations: times when nothing was heard while data was unacknowledged.
    pub timeouts: u64,
    /// Payload bytes taken from the application.
    pub bytes_written: u64,
    /// Payload bytes acknowledged by the peer.
    pub bytes_acked: u64,
    /// Payload bytes that arrived for the first time.
    pub bytes_received: u64,
    /// Payload bytes given to the application.
    pub bytes_read: u64,
    /// Messages dropped because their time to live was over.
    pub messages_dropped: u64,
    /// Time during which there was something to send or unacknowledged.
    pub send_duration: Duration,
    /// Time during which the application gave nothing although packets could have left.
    pub limited_by_application: Duration,
    /// Time during which the receiver's flow window held the sender.
    pub limited_by_flow_window: Duration,
    /// Time during which congestion window or pacing held the sender.
    pub limited_by_congestion: Duration,
}

impl Stats {
    /// Rate of data packets sent since `earlier`, full payloads counted as UDT does (`mbpsSendRate`).
    pub fn send_rate_since(&self, earlier: &Self) -> Rate {
        let packets = self.totals.packets_sent.saturating_sub(earlier.totals.packets_sent);
        self.payload_rate(packets, earlier)
    }

    /// Rate of data packets received since `earlier` (`mbpsRecvRate`).
    pub fn recv_rate_since(&self, earlier: &Self) -> Rate {
        let packets = self.totals.packets_received.saturating_sub(earlier.totals.packets_received);
        self.payload_rate(packets, earlier)
    }

    /// Packets sent again as a share of all packets sent; zero if none were sent.
    pub fn retransmission_ratio(&self) -> f64 {
        if self.totals.packets_sent == 0 {
            return 0.0;
        }
        self.totals.packets_retransmitted as f64 / self.totals.packets_sent as f64
    }

    fn payload_rate(&self, packets: u64, earlier: &Self) -> Rate {
        let time = self.elapsed.saturating_sub(earlier.elapsed);
        Rate::from_bytes_in(packets * u64::from(self.payload_size), time).unwrap_or(Rate::ZERO)
    }
}
