//! The NDJSON records that scripts read: `start`, `interval`, `file`, `warning`, `end`.
//!
//! The name of each number has its unit. No number can be NaN or infinite: rates are whole bits per second, and shares come
//! from [`share`](farhaul_transfer::internal::limit::share).

use std::time::Duration;

use farhaul_session::{Change, EntryKind, FileInfo, NodeKind, escape};
use farhaul_transfer::Error;
use farhaul_transfer::internal::Limit;
use farhaul_transfer::internal::report::{FlowReport, Peer, Report, RttMicros, goodput};
use serde::Serialize;
use serde_json::{Value, json};

use crate::exit::words;

/// One line of `--json`.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Record {
    Start(Box<Start>),
    Interval(Interval),
    File(FileRecord),
    Entry(EntryRecord),
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
    /// The address of the other side.
    pub(crate) address: Option<String>,
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
    /// `file`, `directory`, `link` or `hard_link`, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) kind: Option<&'static str>,
    /// What the copy changed of the entry at the target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) change: Option<&'static str>,
    pub(crate) bytes: u64,
    /// BLAKE3, as `b3sum` prints it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) digest: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

impl FileRecord {
    /// The record of the file at `path`, without digest and error.
    pub(crate) fn of(session: Option<u64>, path: &[u8], status: FileStatus, bytes: u64) -> Self {
        Self {
            session,
            path: escape(path),
            path_hex: hex_of_other_bytes(path),
            status,
            kind: None,
            change: None,
            bytes,
            digest: None,
            error: None,
        }
    }
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
    /// A directory or a link.
    Made,
    /// The target had it.
    Kept,
    /// It would be copied.
    Planned,
    /// The source lacks it.
    Deleted,
    /// No copy can have it: a device, pipe or socket.
    LeftOut,
    Removed,
    /// It has this path now.
    Renamed,
    Failed,
}

/// The word for a kind of entries, in records.
pub(crate) const fn kind(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::File => "file",
        EntryKind::Directory => "directory",
        EntryKind::Symlink => "link",
        EntryKind::HardLink => "hard_link",
    }
}

/// The word for the change of an entry, in records.
pub(crate) const fn change(change: Change) -> &'static str {
    match change {
        Change::None => "none",
        Change::Properties => "properties",
        Change::Content => "content",
        Change::New => "new",
    }
}

/// An entry of a directory of another host.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct EntryRecord {
    /// Printable, with escapes.
    path: String,
    /// The bytes of the path in hexadecimal digits, if they are not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    path_hex: Option<String>,
    kind: &'static str,
    bytes: u64,
    /// Permission bits in octal digits, as chmod takes them.
    mode: String,
    mtime_unix_seconds: i64,
    mtime_nanoseconds: u32,
    /// The target of a symbolic link.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target_hex: Option<String>,
    /// Numbers and names of user and group, as far as the server tells them.
    #[serde(skip_serializing_if = "Option::is_none")]
    uid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<String>,
}

impl EntryRecord {
    /// The record of the entry at `path`.
    pub(crate) fn of(path: &[u8], info: &FileInfo) -> Self {
        let kind = match info.kind {
            NodeKind::File => "file",
            NodeKind::Directory => "directory",
            NodeKind::Link => "link",
            NodeKind::Other => "other",
        };
        let (target, owner) = (info.target.as_deref(), info.owner.as_ref());
        let name = |name: &[u8]| (!name.is_empty()).then(|| escape(name));
        Self {
            path: escape(path),
            path_hex: hex_of_other_bytes(path),
            kind,
            bytes: info.size,
            mode: format!("{:04o}", info.mode),
            mtime_unix_seconds: info.mtime.seconds,
            mtime_nanoseconds: info.mtime.nanos,
            target: target.map(escape),
            target_hex: target.and_then(hex_of_other_bytes),
            uid: owner.map(|owner| owner.uid),
            gid: owner.map(|owner| owner.gid),
            user: owner.and_then(|owner| name(&owner.user)),
            group: owner.and_then(|owner| name(&owner.group)),
        }
    }
}

/// The hexadecimal digits of bytes that are not UTF-8.
fn hex_of_other_bytes(bytes: &[u8]) -> Option<String> {
    let hex = || bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    std::str::from_utf8(bytes).is_err().then(hex)
}

/// One flow of several.
#[derive(Clone, Debug, Default, Serialize)]
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

impl Flow {
    /// The flow of this number among those of one stream.
    pub(crate) fn of((flow, report): (u64, &FlowReport)) -> Self {
        let seconds = Duration::try_from_secs_f64(report.seconds).unwrap_or_default();
        Self {
            flow,
            bytes: report.bytes,
            seconds: report.seconds,
            goodput_bps: goodput(report.bytes, seconds),
            packets_sent: report.packets_sent,
            packets_retransmitted: report.packets_retransmitted,
            packets_received: report.packets_received,
            loss_ratio: report.loss_ratio,
            rtt_us: report.rtt_us,
            ..Self::default()
        }
    }
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct ErrorRecord {
    pub(crate) code: &'static str,
    pub(crate) message: String,
}

impl From<&Error> for ErrorRecord {
    fn from(error: &Error) -> Self {
        Self { code: error.code.symbol(), message: words(&error.to_string()).into_owned() }
    }
}

/// The last record of a session.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct End {
    #[serde(flatten)]
    pub(crate) report: Report,
    /// The flows of a measurement with several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) flows: Vec<Flow>,
    pub(crate) exit_code: u8,
    pub(crate) error: Option<ErrorRecord>,
}

/// The `start` record of a verb whose records are no [`Record`]s, with the verb's own `fields`.
pub(crate) fn start_record(verb: &str, mut fields: Value) -> Value {
    fields["event"] = "start".into();
    fields["verb"] = verb.into();
    fields["version"] = env!("CARGO_PKG_VERSION").into();
    fields["process_id"] = std::process::id().into();
    fields
}

/// The `end` record of such a verb. `exit_code` is that of a program without `fault`.
pub(crate) fn end_record(mut fields: Value, exit_code: u8, fault: Option<&Error>) -> Value {
    fields["event"] = "end".into();
    fields["exit_code"] = fault.map_or(exit_code, |fault| fault.code.exit()).into();
    fields["error"] = json!(fault.map(ErrorRecord::from));
    fields
}

#[cfg(test)]
mod tests;
