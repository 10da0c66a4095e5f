//! Conversations with the original programs of Tsunami, RBUDP and SABUL. They carry no digests, so nothing is verified.

pub(crate) mod copy;
mod fault;
mod meanwhile;
pub(crate) mod pipe;
pub(super) mod serve;
mod settings;

use farhaul_originals::{Progress, SessionHandle, Stop};
use farhaul_transfer::internal::report::{Direction, Report};
use farhaul_transfer::internal::session::measure::Meter;

use super::Context;
use crate::options::Transport;
use crate::output::Output;
use crate::output::json::{FileRecord, FileStatus, Record, Start};
use crate::output::tracker::{Total, Tracker};

/// The `start` record: the protocol is the original's, and no controller governs its rate.
fn start(transport: &Transport, verb: &'static str, protocol: &str) -> Start {
    Start { protocol: protocol.to_owned(), controller: "none".to_owned(), ..transport.start(verb) }
}

/// The `end` record of a session that has moved no data yet.
fn end_record(protocol: &str, direction: Direction) -> Report {
    Report {
        direction: Some(direction),
        controller: "none".to_owned(),
        protocol: protocol.to_owned(),
        security: Some("none"),
        ..Report::default()
    }
}

/// Completes the `end` record by the figures of its session.
fn complete(end: &mut Report, progress: &Progress, meter: Meter) {
    let figures = progress.figures();
    end.bytes = figures.bytes;
    end.packets_sent = figures.packets_sent;
    end.packets_retransmitted = figures.packets_retransmitted;
    end.packets_received = figures.packets_received;
    end.seconds = meter.elapsed().as_secs_f64();
    end.cpu_seconds = meter.cpu();
}

/// The record of a file, with its name as the original program gives it.
fn file_record(session: Option<u64>, name: &[u8], status: FileStatus, bytes: u64, error: Option<String>) -> Record {
    Record::File(FileRecord { error, ..FileRecord::of(session, name, status, bytes) })
}

/// A request to stop, which signals make.
fn stop_at_signals(context: &Context) -> Stop {
    let stop = Stop::default();
    let stopping = stop.clone();
    context.interrupt.on_stop(move || stopping.stop());
    stop
}

/// A session that signals stop.
fn stoppable(context: &Context) -> SessionHandle {
    SessionHandle { stop: stop_at_signals(context), ..SessionHandle::default() }
}

/// Prints how far a session is on SIGUSR1. The rate is that since the last time, or since the begin.
fn show_state(context: &Context, output: &Output, progress: &Progress, meter: Meter) {
    let (output, progress, tracker) = (output.clone(), progress.clone(), Tracker::default());
    tracker.moved_elsewhere(meter.elapsed(), progress.figures().bytes);
    context.interrupt.shows(move || {
        let figures = progress.figures();
        let announced = Some(figures.announced).filter(|bytes| *bytes > 0);
        tracker.set_total(Total { bytes: announced, files: None });
        tracker.moved_elsewhere(meter.elapsed(), figures.bytes);
        output.state(&tracker.snapshot().words());
    });
}
