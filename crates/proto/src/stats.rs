//! Counters and estimates of a connection: every figure of UDT's `perfmon`, and more.

use farhaul_units::{Duration, PacketRate, Rate, SendPeriod};

/// A snapshot of one connection.
///
/// Totals count since it was opened. The difference of two snapshots gives a rate over an interval. Unlike UDT's
/// "clear", this does not disturb other readers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// Time since the connection was opened (`msTimeStamp`).
    pub elapsed: Duration,
    /// Time since the last valid packet from the peer; `None` before the handshake ends, and for protocols that do not
    /// watch it.
    pub silence: Option<Duration>,
    /// Totals (`pkt…Total`, `usSndDurationTotal`).
    pub totals: Totals,
    /// Current time between packets (`usPktSndPeriod`).
    pub send_period: SendPeriod,
    /// Cap on the sending rate (`UDT_MAXBW`); `None` without one.
    pub max_rate: Option<Rate>,
    /// Receiver's free buffer as last advertised, packets (`pktFlowWindow`).
    pub flow_window: u32,
    /// Congestion window, packets (`pktCongestionWindow`).
    pub cwnd: u32,
    /// Packets sent and not acknowledged (`pktFlightSize`).
    pub in_flight: u32,
    /// Smoothed RTT (`msRTT`).
    pub rtt: Duration,
    /// Mean deviation of the RTT.
    pub rtt_var: Duration,
    /// Minimum RTT of the last ten to twenty seconds with samples; zero before the first.
    pub min_rtt: Duration,
    /// Capacity estimate from probe pairs of both directions (`mbpsBandwidth`); zero if unknown.
    pub capacity: PacketRate,
    /// Arrival rate of this side's packets as reported by the peer; zero if unknown.
    pub arrival_rate: PacketRate,
    /// Goodput that the analytic model of the protocol predicts at the present rate, RTT and loss; `None` without a model.
    /// Only RBUDP has one.
    pub model: Option<Rate>,
    /// Free space of the send buffer, bytes (`byteAvailSndBuf`).
    pub send_buffer_free: u64,
    /// Free space of the receive buffer, bytes (`byteAvailRcvBuf`).
    pub recv_buffer_free: u64,
    /// Packets in the send buffer (UDT_SNDDATA).
    pub send_buffer_packets: u32,
    /// Packets ready to be read (UDT_RCVDATA).
    pub recv_buffer_packets: u32,
    /// Payload bytes per full packet.
    pub payload_size: u32,
    /// Bytes of a full packet on the path, headers of IP and packet protection included: of those that this side sends, or that arrive if it
    /// has sent none. Zero in other protocols than UDT4.
    pub packet_size: u32,
    /// Memory of both buffers and lists, bytes.
    pub memory: u64,
}

/// Totals since the connection was opened.
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
    /// Of these, packets that died in the full receive buffer of this side's socket, because the program was too slow to take them, and not
    /// on the path. An estimate, where packets are also lost on the path in the second after.
    pub packets_dropped: u64,
    /// Data packets retransmitted.
    pub packets_retransmitted: u64,
    /// Duplicate data packets received.
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
    /// Expirations: no packet came from the peer for the expiration time while data was unacknowledged.
    pub timeouts: u64,
    /// Payload bytes taken from the application.
    pub bytes_written: u64,
    /// Payload bytes acknowledged by the peer.
    pub bytes_acked: u64,
    /// Payload bytes received, duplicates not counted.
    pub bytes_received: u64,
    /// Payload bytes given to the application.
    pub bytes_read: u64,
    /// Messages dropped because their time to live expired.
    pub messages_dropped: u64,
    /// Time with data waiting or unacknowledged.
    pub send_duration: Duration,
    /// Time in which packets could have left but the application supplied none.
    pub limited_by_application: Duration,
    /// Time in which the receiver's flow window limited the sender.
    pub limited_by_flow_window: Duration,
    /// Time in which the congestion window or pacing limited the sender.
    pub limited_by_congestion: Duration,
    /// Time in which the user's cap on the rate limited the sender.
    pub limited_by_rate_cap: Duration,
}

impl Stats {
    /// Rate of data packets sent since `earlier` (`mbpsSendRate`). Every packet counts as full, as in UDT.
    pub fn send_rate_since(&self, earlier: &Self) -> Rate {
        let packets = self.totals.packets_sent.saturating_sub(earlier.totals.packets_sent);
        self.payload_rate(packets, earlier)
    }

    /// Rate of data packets received since `earlier` (`mbpsRecvRate`). Every packet counts as full.
    pub fn recv_rate_since(&self, earlier: &Self) -> Rate {
        let packets = self.totals.packets_received.saturating_sub(earlier.totals.packets_received);
        self.payload_rate(packets, earlier)
    }

    /// Retransmissions as a share of all packets sent, 0 to 1; zero if none were sent.
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
