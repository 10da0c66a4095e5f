//! The report of a copy or of another session: amounts, times, rates, and what limited it.
//!
//! The name of each number has its unit. No number can be NaN or infinite: rates are whole bits per second, and shares come
//! from [`share`](crate::limit::share).

mod ledger;

use std::time::Duration;

use farhaul_units::Rate;
use serde::Serialize;

pub use self::ledger::Ledger;
use crate::limit::Limit;
pub use crate::processor::CpuSeconds;

/// What a session did: a copy, one session of a server, a measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(not(feature = "internal"), non_exhaustive)]
pub struct Report {
    #[serde(skip_serializing_if = "Option::is_none")]
    /// Numbers the sessions of a server.
    pub session: Option<u64>,
    /// The address of the other side.
    pub address: Option<String>,
    /// Direction of the data, seen from this side.
    pub direction: Option<Direction>,
    /// Bytes of payload.
    pub bytes: u64,
    /// Numbers of files, directories and failures; null if no files are copied.
    pub files: Option<u64>,
    /// Files that the target had already, and their bytes; null as for `files`.
    pub kept: Option<u64>,
    /// Bytes of these files.
    pub kept_bytes: Option<u64>,
    /// Directories that were made or completed.
    pub directories: Option<u64>,
    /// Symbolic and hard links that were made.
    pub links: Option<u64>,
    /// Entries of the target that were removed.
    pub deleted: Option<u64>,
    /// Bytes of content that crossed the network, and those that did not, because the target had them or they are holes.
    pub moved_bytes: Option<u64>,
    /// Bytes of content that did not cross the network.
    pub spared_bytes: Option<u64>,
    /// Chunks of 1 MiB that arrived damaged and came again.
    pub repaired_chunks: Option<u64>,
    /// Files and directories that were not copied, or requests that failed.
    pub failed: Option<u64>,
    /// Requests of a session of the file service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
    /// From connecting to the last confirmation.
    pub seconds: f64,
    /// Payload rate at the receiver, from its first to its last byte; null if no time passed.
    pub goodput_bps: Option<u64>,
    /// Data packets, retransmissions included.
    pub packets_sent: u64,
    /// Data packets that were sent again.
    pub packets_retransmitted: u64,
    /// Data packets that arrived.
    pub packets_received: u64,
    /// Data packets that died in the buffer of this host's socket, because the program was too slow to take them; none if that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packets_dropped: Option<u64>,
    /// The last size of full packets, headers of IP included; null if the protocol does not tell.
    pub mtu_bytes: Option<u32>,
    /// The flows that carried the data, where they were several.
    #[serde(skip)]
    pub flows: Vec<FlowReport>,
    /// Packets reported lost, as a share of those sent.
    pub loss_ratio: f64,
    /// Round-trip times in microseconds.
    pub rtt_us: RttMicros,
    /// Processor time of this process.
    pub cpu_seconds: CpuSeconds,
    /// The other side's report; null if it cannot send one.
    pub peer: Option<Peer>,
    /// The congestion controller with its options.
    pub controller: String,
    /// The wire protocol with its options.
    pub protocol: String,
    /// Null if unknown: the transfer was too short, or the sender does not report.
    pub limited_by: Option<Limit>,
    /// Share of the time for which the limit held.
    pub limited_by_share: Option<f64>,
    /// Goodput that the analytic model of the sender's protocol predicts; only RBUDP has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_bps: Option<u64>,
    /// The control stream beside the transfer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_stream: Option<ControlReport>,
    /// Whether both sides compared digests.
    pub verified: bool,
    /// The digest over all verified files, for the comparison of both ends.
    #[serde(skip)]
    pub ledger: Ledger,
    /// `tls1.3`, `ssh` of a copy that began through ssh, or `none`. Null if that was never decided: the command line cannot be read.
    pub security: Option<&'static str>,
    /// Key exchange and cipher of the connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suite: Option<String>,
    /// Fingerprint of the peer's key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer_key: Option<String>,
}

impl Report {
    /// The protection of the connection in words.
    pub fn protection(&self) -> String {
        match (&self.suite, &self.peer_key) {
            (Some(suite), Some(key)) => format!("{suite}, key {key}"),
            (Some(suite), None) => suite.clone(),
            (None, _) if self.security == Some("none") => "not encrypted".to_owned(),
            (None, _) if self.security == Some("ssh") => "encrypted by ssh".to_owned(),
            (None, _) => "encrypted".to_owned(),
        }
    }
}

/// One of several flows that carried the data together.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(not(feature = "internal"), non_exhaustive)]
pub struct FlowReport {
    /// Bytes of payload: acknowledged ones of a sender, those that arrived at a receiver.
    pub bytes: u64,
    /// Since its connection was opened.
    pub seconds: f64,
    /// Data packets, retransmissions included.
    pub packets_sent: u64,
    /// Data packets that were sent again.
    pub packets_retransmitted: u64,
    /// Data packets that arrived.
    pub packets_received: u64,
    /// Packets reported lost, as a share of those sent.
    pub loss_ratio: f64,
    /// The last round-trip time, and the minimum, in microseconds.
    pub rtt_us: RttMicros,
}

/// A stable control stream beside a transfer. Goodput and delays count from its convergence on.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(not(feature = "internal"), non_exhaustive)]
pub struct ControlReport {
    /// The goodput to keep.
    pub target_bps: u64,
    /// Null if it did not settle.
    pub goodput_bps: Option<u64>,
    /// Whether the goodput is within 2 % of the target.
    pub kept: bool,
    /// Time until the goodput reached the target.
    pub converged_after_seconds: Option<f64>,
    /// Datagrams that left.
    pub datagrams_sent: u64,
    /// Datagrams that arrived.
    pub datagrams_acknowledged: u64,
    /// Standard deviation of the round trips as a share of their mean; null without round trips.
    pub jitter: Option<f64>,
    /// Round-trip times in microseconds: mean, deviation, quantiles.
    pub delay_us: serde_json::Value,
    /// The last ceiling of the transfer, headers of IP and UDP included; null if nobody answered the stream.
    pub ceiling_bps: Option<u64>,
}

/// The other side's figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(not(feature = "internal"), non_exhaustive)]
pub struct Peer {
    /// Bytes of payload.
    pub bytes: u64,
    /// From its first to its last byte.
    pub seconds: f64,
    /// Data packets that left it.
    pub packets_sent: Option<u64>,
    /// Data packets that it sent again.
    pub packets_retransmitted: Option<u64>,
    /// Data packets that reached it.
    pub packets_received: Option<u64>,
    /// Data packets that it missed.
    pub packets_lost: Option<u64>,
    /// Of these, those that died in the buffer of its socket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packets_dropped: Option<u64>,
    /// Round-trip times in microseconds.
    pub rtt_us: Option<RttMicros>,
    /// Its processor time.
    pub cpu_seconds: Option<CpuSeconds>,
    /// Time that its session waited for the disk.
    pub disk_seconds: Option<f64>,
}

/// A summary of round-trip times, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(not(feature = "internal"), non_exhaustive)]
pub struct RttMicros {
    /// The shortest.
    pub min: u64,
    /// The mean.
    pub mean: u64,
    /// The 99th percentile.
    pub p99: u64,
}

/// The direction of the data, seen from this side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// This side sent.
    Sent,
    /// This side received.
    Received,
    /// Both sides sent, or the data moved between two other hosts.
    Both,
}

/// Bits per second; zero if no time passed.
pub fn bits_per_second(bytes: u64, time: Duration) -> u64 {
    Rate::from_bytes_in(bytes, time).map_or(0, Rate::bits_per_second)
}

/// Bits per second of a transfer; `None` if nothing moved, or no time passed between its first and last byte.
pub fn goodput(bytes: u64, time: Duration) -> Option<u64> {
    Rate::from_bytes_in(bytes, time).filter(|_| bytes > 0).map(Rate::bits_per_second)
}

/// Whole microseconds.
pub fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
