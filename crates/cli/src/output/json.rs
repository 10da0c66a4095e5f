//! The NDJSON records that scripts read: `start`, `interval`, `file`, `warning`, `end`.
//!
//! The name of each number has its unit. No number can be NaN or infinite: rates are whole bits per second, and shares come
//! from [`share`](crate::limit::share).

use std::time::Duration;

use farhaul::Stream;
use farhaul_units::Rate;
use serde::Serialize;

use crate::exit::Fault;
use crate::limit::Limit;
use crate::session::file::Ledger;
use crate::sys::CpuSeconds;

/// One line of `--json`.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Record {
    Start(Box<Start>),
    Interval(Interval),
    File(FileRecord),
    Warning {
        message: String,
    },
    /// The answer to SIGUSR1, if stderr carries records.
    State {
        message: String,
    },
    End(Box<End>),
}

/// All effective settings, before anything happens.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Start {
    pub(crate) verb: &'static str,
    pub(crate) version: &'static str,
    pub(crate) protocol: String,
    /// `tls1.3`, or `none`.
    pub(crate) security: &'static str,
    /// Fingerprint of this side's key, of a listener with encryption.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<String>,
    pub(crate) process_id: u32,
    /// The address of this side's UDP port, once it is open.
    pub(crate) local: Option<String>,
    pub(crate) peer: Option<String>,
    pub(crate) controller: String,
    /// Cap on the sending rate; null for none.
    pub(crate) rate_bps: Option<u64>,
    /// The rate with which the search for the rate begins, if an earlier profile of the path told one.
    pub(crate) first_rate: Option<FirstRate>,
    /// The user's packet size; null if it is found by probes.
    pub(crate) mtu_bytes: Option<u32>,
    /// Cap on each buffer; null for automatic.
    pub(crate) buffer_bytes: Option<u64>,
    pub(crate) timeout_seconds: f64,
    pub(crate) connect_timeout_seconds: f64,
    /// The file of `--trace`.
    pub(crate) trace: Option<String>,
    /// This side only sends data. Small answers need no large receive buffer.
    #[serde(skip)]
    pub(crate) only_sends: bool,
    /// People read what it says, too.
    #[serde(skip)]
    pub(crate) for_people: bool,
    /// Settings of this verb alone.
    pub(crate) settings: serde_json::Map<String, serde_json::Value>,
}

impl Start {
    /// The record of `verb`, without settings.
    pub(crate) fn of(verb: &'static str) -> Self {
        Self {
            verb,
            version: env!("CARGO_PKG_VERSION"),
            security: "none",
            process_id: std::process::id(),
            ..Self::default()
        }
    }
}

/// The first rate of a sender, from a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct FirstRate {
    /// Headers of IP and UDP included.
    pub(crate) rate_bps: u64,
    /// When the path was profiled.
    pub(crate) measured_unix_seconds: u64,
}

/// Changes since the last interval.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Interval {
    /// Numbers the sessions of a listener.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) session: Option<u64>,
    /// Numbers the flows of a measurement with several. Absent for their sum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) flow: Option<u64>,
    pub(crate) start_seconds: f64,
    pub(crate) end_seconds: f64,
    /// Payload bytes that the peer acknowledged, or that arrived here.
    pub(crate) bytes: u64,
    pub(crate) bytes_total: u64,
    pub(crate) goodput_bps: u64,
    pub(crate) packets_sent: u64,
    pub(crate) packets_retransmitted: u64,
    pub(crate) packets_received: u64,
    pub(crate) rtt_us: u64,
    pub(crate) cwnd_packets: u32,
    pub(crate) in_flight_packets: u32,
}

/// One finished or failed file.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct FileRecord {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) session: Option<u64>,
    /// Printable, with escapes.
    pub(crate) path: String,
    /// The bytes of the path in hexadecimal digits, if they are not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path_hex: Option<String>,
    pub(crate) status: FileStatus,
    pub(crate) bytes: u64,
    /// BLAKE3, as `b3sum` prints it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) digest: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FileStatus {
    Verified,
    /// Received as a whole, by a protocol without digests.
    Copied,
    /// Sent to a client of such a protocol, which does not say whether it has all of it.
    Given,
    /// An entry of a server's list.
    Listed,
    Made,
    Failed,
}

/// The result of a session. Fields without `skip_serializing_if` are always present.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct End {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) session: Option<u64>,
    /// The address of the other side.
    pub(crate) address: Option<String>,
    /// Direction of the data, seen from this side.
    pub(crate) direction: Option<Direction>,
    pub(crate) bytes: u64,
    /// Numbers of files, directories and failures; null if no files are copied.
    pub(crate) files: Option<u64>,
    pub(crate) directories: Option<u64>,
    pub(crate) failed: Option<u64>,
    /// From connecting to the last confirmation.
    pub(crate) seconds: f64,
    /// Payload rate at the receiver, from its first to its last byte; null if no time passed.
    pub(crate) goodput_bps: Option<u64>,
    /// Data packets, retransmissions included.
    pub(crate) packets_sent: u64,
    pub(crate) packets_retransmitted: u64,
    pub(crate) packets_received: u64,
    /// The last size of full packets, headers of IP included; null if the protocol does not tell.
    pub(crate) mtu_bytes: Option<u32>,
    /// Packets reported lost, as a share of those sent.
    pub(crate) loss_ratio: f64,
    pub(crate) rtt_us: RttMicros,
    pub(crate) cpu_seconds: CpuSeconds,
    /// The other side's report; null if it cannot send one.
    pub(crate) peer: Option<Peer>,
    pub(crate) controller: String,
    pub(crate) protocol: String,
    /// Null if unknown: the transfer was too short, or the sender does not report.
    pub(crate) limited_by: Option<Limit>,
    /// Share of the time for which the limit held.
    pub(crate) limited_by_share: Option<f64>,
    /// Goodput that the analytic model of the sender's protocol predicts; only RBUDP has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model_bps: Option<u64>,
    /// The flows of a measurement with several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) flows: Vec<Flow>,
    /// The control stream beside the transfer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) control_stream: Option<ControlRecord>,
    /// Whether both sides compared digests.
    pub(crate) verified: bool,
    /// The digest over all verified files, for the comparison of both ends.
    #[serde(skip)]
    pub(crate) ledger: Ledger,
    /// `tls1.3`, or `none`. Null if that was never decided: the command line cannot be read.
    pub(crate) security: Option<&'static str>,
    /// Key exchange and cipher of the connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) suite: Option<String>,
    /// Fingerprint of the peer's key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) peer_key: Option<String>,
    pub(crate) exit_code: u8,
    pub(crate) error: Option<ErrorRecord>,
}

impl End {
    /// Notes the protection of the connection.
    pub(crate) fn protected_by(&mut self, stream: &Stream) {
        if stream.is_plain().is_ok_and(|is_plain| is_plain) {
            self.security = Some("none");
        }
        if let Ok(Some(protection)) = stream.protection() {
            self.peer_key = protection.peer_key.map(|key| key.fingerprint());
            self.suite = Some(protection.suite);
        }
    }

    /// The protection of the connection in words.
    pub(crate) fn protection(&self) -> String {
        match (&self.suite, &self.peer_key) {
            (Some(suite), Some(key)) => format!("{suite}, key {key}"),
            (Some(suite), None) => suite.clone(),
            (None, _) if self.security == Some("none") => "not encrypted".to_owned(),
            (None, _) => "encrypted".to_owned(),
        }
    }
}

/// A stable control stream beside a transfer. Goodput and delays count from its convergence on.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ControlRecord {
    pub(crate) target_bps: u64,
    /// Null if it did not settle.
    pub(crate) goodput_bps: Option<u64>,
    /// Whether the goodput is within 2 % of the target.
    pub(crate) kept: bool,
    pub(crate) converged_after_seconds: Option<f64>,
    pub(crate) datagrams_sent: u64,
    pub(crate) datagrams_acknowledged: u64,
    /// Standard deviation of the round trips as a share of their mean; null without round trips.
    pub(crate) jitter: Option<f64>,
    pub(crate) delay_us: serde_json::Value,
    /// The last ceiling of the transfer, headers of IP and UDP included; null if nobody answered the stream.
    pub(crate) ceiling_bps: Option<u64>,
}

/// One flow of several.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Flow {
    pub(crate) flow: u64,
    pub(crate) bytes: u64,
    pub(crate) seconds: f64,
    pub(crate) goodput_bps: Option<u64>,
    pub(crate) packets_sent: u64,
    pub(crate) packets_retransmitted: u64,
    pub(crate) packets_received: u64,
    pub(crate) loss_ratio: f64,
    pub(crate) rtt_us: RttMicros,
    pub(crate) peer: Option<Peer>,
    pub(crate) limited_by: Option<Limit>,
    pub(crate) limited_by_share: Option<f64>,
    pub(crate) error: Option<ErrorRecord>,
}

/// The other side's figures.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Peer {
    pub(crate) bytes: u64,
    pub(crate) seconds: f64,
    pub(crate) packets_sent: Option<u64>,
    pub(crate) packets_retransmitted: Option<u64>,
    pub(crate) packets_received: Option<u64>,
    pub(crate) packets_lost: Option<u64>,
    pub(crate) rtt_us: Option<RttMicros>,
    pub(crate) cpu_seconds: Option<CpuSeconds>,
    /// Time that its session waited for the disk.
    pub(crate) disk_seconds: Option<f64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct RttMicros {
    pub(crate) min: u64,
    pub(crate) mean: u64,
    pub(crate) p99: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Direction {
    Sent,
    Received,
    Both,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct ErrorRecord {
    pub(crate) code: &'static str,
    pub(crate) message: String,
}

impl From<&Fault> for ErrorRecord {
    fn from(fault: &Fault) -> Self {
        Self { code: fault.code.symbol(), message: fault.message.clone() }
    }
}

/// Bits per second; zero if no time passed.
pub(crate) fn bits_per_second(bytes: u64, time: Duration) -> u64 {
    Rate::from_bytes_in(bytes, time).map_or(0, Rate::bits_per_second)
}

/// Bits per second of a transfer; `None` if nothing moved, or no time passed between its first and last byte.
pub(crate) fn goodput(bytes: u64, time: Duration) -> Option<u64> {
    Rate::from_bytes_in(bytes, time).filter(|_| bytes > 0).map(Rate::bits_per_second)
}

/// Whole microseconds.
pub(crate) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
