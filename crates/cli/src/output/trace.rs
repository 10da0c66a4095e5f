//! `--trace`: metrics of connections over time, as qlog-like JSON text sequences (RFC 7464), for plots.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use farhaul::Stats;
use farhaul_transfer::internal::report::micros;
use serde_json::{Value, json};

use super::Output;
use crate::exit::{Code, Fault};

/// First byte of each text in a sequence (RFC 7464, section 2.2).
const RECORD_SEPARATOR: u8 = 0x1e;

/// A file of events. Clones write to the same one.
#[derive(Clone)]
pub(crate) struct Trace {
    shared: Arc<Mutex<Option<BufWriter<File>>>>,
    output: Output,
}

impl Trace {
    /// Creates the file at `path`, if there is one.
    pub(crate) fn begin(path: Option<&Path>, verb: &str, output: &Output) -> Result<Option<Self>, Fault> {
        let Some(path) = path else { return Ok(None) };
        let file = File::create(path).map_err(|error| {
            Fault::new(Code::LocalIo, format!("cannot write the trace to {}: {error}", path.display()))
        })?;
        let trace = Self { shared: Arc::new(Mutex::new(Some(BufWriter::new(file)))), output: output.clone() };
        trace.write(&json!({
            "file_schema": "urn:ietf:params:qlog:file:sequential",
            "serialization_format": "application/qlog+json-seq",
            "title": format!("farhaul {} {verb}", env!("CARGO_PKG_VERSION")),
            "trace": { "event_schemas": ["urn:farhaul:metrics"], "vantage_point": { "type": "unknown" } },
        }));
        Ok(Some(trace))
    }

    /// Writes the metrics of a connection at `time`. `group` identifies the connection.
    pub(crate) fn metrics(&self, group: &str, time: Duration, stats: &Stats) {
        let totals = &stats.totals;
        self.write(&json!({
            "time": time.as_secs_f64() * 1e3,
            "name": "farhaul:metrics_updated",
            "group_id": group,
            "data": {
                "smoothed_rtt_us": micros(stats.rtt),
                "rtt_variance_us": micros(stats.rtt_var),
                "min_rtt_us": micros(stats.min_rtt),
                "congestion_window_packets": stats.cwnd,
                "flow_window_packets": stats.flow_window,
                "packets_in_flight": stats.in_flight,
                "packets_sent": totals.packets_sent,
                "packets_retransmitted": totals.packets_retransmitted,
                "packets_received": totals.packets_received,
                "packets_lost_sending": totals.packets_lost_sending,
                "packets_lost_receiving": totals.packets_lost_receiving,
                "bytes_acknowledged": totals.bytes_acked,
                "bytes_read": totals.bytes_read,
            },
        }));
    }

    /// Writes all buffered events to the file.
    pub(crate) fn flush(&self) {
        self.attempt(BufWriter::flush);
    }

    fn write(&self, event: &Value) {
        self.attempt(|file| {
            file.write_all(&[RECORD_SEPARATOR])?;
            writeln!(file, "{event}")
        });
    }

    /// A write error ends the trace with a warning, and the transfer continues.
    fn attempt(&self, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(file) = shared.as_mut() else { return };
        if let Err(error) = write(file) {
            *shared = None;
            self.output.warn(&format!("the trace ends here: {error}"));
        }
    }
}
