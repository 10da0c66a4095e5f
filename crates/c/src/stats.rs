//! Figures of a connection.

use std::mem::MaybeUninit;
use std::time::Duration;

use farhaul::Stats;

use crate::border::tell;
use crate::connection::{FarhaulConnection, common};
use crate::error::FarhaulError;
use crate::result::FarhaulResult;

/// Counters since the connection was opened, and present estimates. Zero where a protocol does not tell.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct FarhaulStats {
    /// Microseconds since the connection was opened.
    pub elapsed_us: u64,
    /// Data packets sent, retransmissions included.
    pub packets_sent: u64,
    /// Data packets received, duplicates included.
    pub packets_received: u64,
    /// Data packets sent again.
    pub packets_retransmitted: u64,
    /// Packets that the peer reported lost.
    pub packets_lost: u64,
    /// Bytes taken from the program.
    pub bytes_written: u64,
    /// Bytes that the peer has acknowledged.
    pub bytes_acknowledged: u64,
    /// Bytes that arrived.
    pub bytes_received: u64,
    /// Bytes given to the program.
    pub bytes_read: u64,
    /// The smoothed round-trip time in microseconds.
    pub rtt_us: u64,
    /// The smallest one of the last ten to twenty seconds.
    pub min_rtt_us: u64,
    /// The congestion window in packets.
    pub congestion_window: u32,
    /// Packets sent and not acknowledged.
    pub in_flight: u32,
    /// Free room for writing, in bytes.
    pub send_buffer_free: u64,
    /// Free room for what arrives, in bytes.
    pub recv_buffer_free: u64,
    /// Payload of a full packet in bytes.
    pub payload_size: u32,
    /// The cap of the send rate in bits per second; zero without one.
    pub max_rate: u64,
}

impl FarhaulStats {
    fn of(stats: &Stats) -> Self {
        let totals = &stats.totals;
        Self {
            elapsed_us: micros(stats.elapsed),
            packets_sent: totals.packets_sent,
            packets_received: totals.packets_received,
            packets_retransmitted: totals.packets_retransmitted,
            packets_lost: totals.packets_lost_sending,
            bytes_written: totals.bytes_written,
            bytes_acknowledged: totals.bytes_acked,
            bytes_received: totals.bytes_received,
            bytes_read: totals.bytes_read,
            rtt_us: micros(stats.rtt),
            min_rtt_us: micros(stats.min_rtt),
            congestion_window: stats.cwnd,
            in_flight: stats.in_flight,
            send_buffer_free: stats.send_buffer_free,
            recv_buffer_free: stats.recv_buffer_free,
            payload_size: stats.payload_size,
            max_rate: stats.max_rate.map_or(0, farhaul::Rate::bits_per_second),
        }
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// Reads the figures of a connection.
#[unsafe(no_mangle)]
pub extern "C" fn farhaul_connection_stats(
    connection: Option<&FarhaulConnection>,
    stats: Option<&mut MaybeUninit<FarhaulStats>>,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    tell(stats, error, || Ok(FarhaulStats::of(&common(connection)?.stats()?)))
}
