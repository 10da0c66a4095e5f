//! Figures of a server for Prometheus: what its sessions have moved, and how they are.
//!
//! | name | type | meaning |
//! | --- | --- | --- |
//! | `farhaul_bytes_total{dir}` | counter | payload: acknowledged by receivers, or received |
//! | `farhaul_retransmits_total` | counter | data packets sent again |
//! | `farhaul_files_total{dir}` | counter | files that got their final names, here or at a client |
//! | `farhaul_failures_total` | counter | files that did not |
//! | `farhaul_sessions_total{result}` | counter | sessions that have ended, of those that are reported |
//! | `farhaul_refusals_total` | counter | requests that were refused |
//! | `farhaul_sessions_running` | gauge | sessions that run |
//! | `farhaul_rate_bits{dir}` | gauge | payload bits per second of the last 10 s, of all sessions |
//! | `farhaul_rtt_seconds` | gauge | mean RTT of the sessions that run |

mod http;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use farhaul_transfer::Event;
use farhaul_transfer::internal::event::Moved;
use farhaul_units::Rate;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

pub(crate) use http::{bind, serve};

use crate::output::tracker::{Snapshot, Total, Tracker};

/// The figures of a server. Clones share everything.
#[derive(Clone)]
pub(crate) struct Metrics {
    figures: Arc<Figures>,
    registry: Arc<Registry>,
}

#[derive(Default)]
struct Figures {
    running: Mutex<BTreeMap<u64, Session>>,
    bytes: Family<Labels, Counter>,
    retransmits: Counter,
    files: Family<Labels, Counter>,
    failures: Counter,
    sessions: Family<Labels, Counter>,
    refusals: Counter,
    sessions_running: Gauge,
    rate: Family<Labels, Gauge>,
    rtt: Gauge<f64, AtomicU64>,
}

/// A running session, and what of it counts already.
#[derive(Default)]
struct Session {
    tracker: Tracker,
    sends: bool,
    bytes: u64,
    retransmits: u64,
}

/// A label with its value.
type Labels = [(&'static str, &'static str); 1];

const fn direction(sends: bool) -> Labels {
    [("dir", if sends { "sent" } else { "received" })]
}

const fn ended(is_done: bool) -> Labels {
    [("result", if is_done { "done" } else { "failed" })]
}

impl Metrics {
    /// Figures of a server that has done nothing.
    pub(crate) fn new() -> Self {
        let (figures, mut registry) = (Arc::new(Figures::default()), Registry::with_prefix("farhaul"));
        let its = &figures;
        // Zero is a figure as well: alerts compare with it.
        for sends in [true, false] {
            its.bytes.get_or_create(&direction(sends)).inc_by(0);
            its.files.get_or_create(&direction(sends)).inc_by(0);
            its.rate.get_or_create(&direction(sends)).set(0);
        }
        for is_done in [true, false] {
            its.sessions.get_or_create(&ended(is_done)).inc_by(0);
        }
        registry.register("bytes", "Payload that was acknowledged by receivers, or received", its.bytes.clone());
        registry.register("retransmits", "Data packets sent again", its.retransmits.clone());
        registry.register("files", "Files that got their final names", its.files.clone());
        registry.register("failures", "Files that were not copied", its.failures.clone());
        registry.register("sessions", "Sessions that have ended", its.sessions.clone());
        registry.register("refusals", "Requests that were refused", its.refusals.clone());
        registry.register("sessions_running", "Sessions that run", its.sessions_running.clone());
        registry.register("rate_bits", "Payload bits per second of the last 10 s", its.rate.clone());
        registry.register("rtt_seconds", "Mean RTT of the sessions that run", its.rtt.clone());
        Self { figures, registry: Arc::new(registry) }
    }

    /// What happens in a session.
    pub(crate) fn on_event(&self, session: u64, event: &Event<'_>) {
        match event {
            Event::Expected { files, bytes } => {
                let total = Total { bytes: Some(*bytes), files: Some(*files) };
                self.figures.running().entry(session).or_default().tracker.set_total(total);
            }
            Event::Begun(entry) => self.figures.running().entry(session).or_default().tracker.begun(entry),
            Event::Moved(moved) => self.figures.moved(session, moved),
            Event::Placed(entry, ..) => {
                let mut running = self.figures.running();
                let session = running.entry(session).or_default();
                session.tracker.placed(entry.size);
                self.figures.files.get_or_create(&direction(session.sends)).inc();
            }
            Event::Failed(..) => {
                self.figures.running().entry(session).or_default().tracker.failed();
                self.figures.failures.inc();
            }
            Event::Ended(_, error) => {
                self.figures.sessions.get_or_create(&ended(error.is_none())).inc();
            }
            _ => {}
        }
    }

    /// The sessions that run, by their numbers.
    pub(crate) fn running(&self) -> Vec<(u64, Snapshot)> {
        self.figures.running().iter().map(|(number, session)| (*number, session.tracker.snapshot())).collect()
    }

    /// Bytes and files of all sessions so far.
    pub(crate) fn totals(&self) -> (u64, u64) {
        let of = |family: &Family<Labels, Counter>| {
            [true, false].map(|sends| family.get_or_create(&direction(sends)).get()).into_iter().sum()
        };
        (of(&self.figures.bytes), of(&self.figures.files))
    }

    /// The text for Prometheus, of a server that has refused so many requests.
    ///
    /// # Errors
    /// None: a text takes everything.
    fn text(&self, refused: u64) -> Result<String, fmt::Error> {
        self.figures.refresh(refused);
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

impl Figures {
    fn moved(&self, session: u64, moved: &Moved<'_>) {
        let (mut running, number) = (self.running(), session);
        let session = running.entry(number).or_default();
        session.sends = moved.sends;
        session.tracker.moved(moved);
        let retransmits = moved.connections.iter().map(|stats| stats.totals.packets_retransmitted).sum::<u64>();
        self.retransmits.inc_by(retransmits.saturating_sub(session.retransmits));
        self.bytes.get_or_create(&direction(moved.sends)).inc_by(moved.bytes().saturating_sub(session.bytes));
        (session.bytes, session.retransmits) = (moved.bytes(), retransmits);
        // The report of a session whose client nobody knows may be left out.
        if moved.is_last {
            running.remove(&number);
        }
    }

    /// Brings what counts nothing up to date.
    fn refresh(&self, refused: u64) {
        let running = self.running();
        let (mut rates, mut round_trips, mut connections) = ([Rate::ZERO.bits_per_second(); 2], Duration::ZERO, 0);
        for session in running.values() {
            let now = session.tracker.snapshot();
            rates[usize::from(session.sends)] += now.rate.map_or(0, Rate::bits_per_second);
            round_trips += now.connections.iter().map(|stats| stats.rtt).sum();
            connections += u32::try_from(now.connections.len()).unwrap_or(u32::MAX);
        }
        for sends in [true, false] {
            let rate = i64::try_from(rates[usize::from(sends)]).unwrap_or(i64::MAX);
            self.rate.get_or_create(&direction(sends)).set(rate);
        }
        self.rtt.set((round_trips / connections.max(1)).as_secs_f64());
        self.sessions_running.set(i64::try_from(running.len()).unwrap_or(i64::MAX));
        self.refusals.inc_by(refused.saturating_sub(self.refusals.get()));
    }

    /// The content, even after a panic: numbers are always consistent enough to be shown.
    fn running(&self) -> MutexGuard<'_, BTreeMap<u64, Session>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use farhaul::Stats;
    use farhaul_transfer::Report;

    use super::*;

    #[test]
    fn what_sessions_move_counts_once_and_stays_after_their_end() {
        let metrics = Metrics::new();
        let mut stats = Stats::default();
        stats.rtt = Duration::from_millis(50);
        for (millis, bytes) in [(0, 0), (500, 400), (1_000, 1_000)] {
            stats.totals.bytes_acked = bytes;
            stats.totals.packets_retransmitted = bytes / 100;
            let elapsed = Duration::from_millis(millis);
            let moved = Moved { elapsed, connections: &[stats], sends: true, is_last: false };
            metrics.on_event(1, &Event::Moved(&moved));
        }
        let text = metrics.text(3).unwrap();
        for line in [
            "farhaul_bytes_total{dir=\"sent\"} 1000",
            "farhaul_bytes_total{dir=\"received\"} 0",
            "farhaul_retransmits_total 10",
            "farhaul_sessions_running 1",
            "farhaul_rate_bits{dir=\"sent\"} 8000",
            "farhaul_rtt_seconds 0.05",
            "farhaul_refusals_total 3",
            "# EOF",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        }
        let elapsed = Duration::from_millis(1_100);
        let moved = Moved { elapsed, connections: &[stats], sends: true, is_last: true };
        metrics.on_event(1, &Event::Moved(&moved));
        metrics.on_event(1, &Event::Ended(&Report::default(), None));
        let text = metrics.text(3).unwrap();
        for line in [
            "farhaul_bytes_total{dir=\"sent\"} 1000",
            "farhaul_sessions_total{result=\"done\"} 1",
            "farhaul_sessions_running 0",
            "farhaul_refusals_total 3",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        }
    }
}
