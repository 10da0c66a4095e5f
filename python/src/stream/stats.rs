//! Counters and estimates of a connection.

use farhaul::Stats as Figures;
use pyo3::prelude::*;

/// Counters and estimates of a connection. The name of each has its unit.
#[pyclass(module = "farhaul", frozen, get_all)]
pub(crate) struct Stats {
    /// Time since the connection was opened.
    seconds: f64,
    /// Smoothed round-trip time.
    rtt_seconds: f64,
    /// Minimum round-trip time of the last ten to twenty seconds; zero before the first.
    min_rtt_seconds: f64,
    /// Payload bytes taken from the program.
    bytes_written: u64,
    /// Payload bytes that the peer has acknowledged.
    bytes_acked: u64,
    /// Payload bytes received.
    bytes_received: u64,
    /// Payload bytes given to the program.
    bytes_read: u64,
    /// Data packets sent, retransmissions included.
    packets_sent: u64,
    /// Data packets sent again.
    packets_retransmitted: u64,
    /// Packets that the peer reported lost.
    packets_lost_sending: u64,
    /// Data packets received.
    packets_received: u64,
    /// Packets that this side found missing.
    packets_lost_receiving: u64,
    /// Congestion window.
    window_packets: u32,
    /// Packets sent and not acknowledged.
    in_flight_packets: u32,
    /// Size of a full packet, headers of IP included; zero if unknown.
    packet_size_bytes: u32,
    /// Memory of the buffers of this side.
    memory_bytes: u64,
}

impl Stats {
    pub(crate) fn of(figures: &Figures) -> Self {
        let totals = &figures.totals;
        Self {
            seconds: figures.elapsed.as_secs_f64(),
            rtt_seconds: figures.rtt.as_secs_f64(),
            min_rtt_seconds: figures.min_rtt.as_secs_f64(),
            bytes_written: totals.bytes_written,
            bytes_acked: totals.bytes_acked,
            bytes_received: totals.bytes_received,
            bytes_read: totals.bytes_read,
            packets_sent: totals.packets_sent,
            packets_retransmitted: totals.packets_retransmitted,
            packets_lost_sending: totals.packets_lost_sending,
            packets_received: totals.packets_received,
            packets_lost_receiving: totals.packets_lost_receiving,
            window_packets: figures.cwnd,
            in_flight_packets: figures.in_flight,
            packet_size_bytes: figures.packet_size,
            memory_bytes: figures.memory,
        }
    }
}

#[pymethods]
impl Stats {
    fn __repr__(&self) -> String {
        let Self { bytes_acked, bytes_read, packets_retransmitted, rtt_seconds, .. } = self;
        format!(
            "<farhaul.Stats: {bytes_acked} bytes acknowledged, {bytes_read} read, {packets_retransmitted} packets sent again, \
             RTT {:.1} ms>",
            rtt_seconds * 1e3
        )
    }
}
