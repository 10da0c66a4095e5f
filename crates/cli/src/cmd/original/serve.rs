//! `serve` for clients of original programs, beside those of Farhaul: one directory, read only.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clap::ValueEnum;
use farhaul::{Endpoint, Protocol};
use farhaul_disk::Directory;
use farhaul_originals::{Failure, News, OriginalServer, Stop, Watch};
use farhaul_transfer::internal::report::{Direction, Report, goodput};
use farhaul_transfer::internal::session::measure::Meter;
use farhaul_units::ByteSize;

use super::fault::of;
use super::{end_record, file_record, stop_at_signals};
use crate::cmd::{Context, report_end};
use crate::exit::Fault;
use crate::options::Transport;
use crate::output::Output;
use crate::output::human::{plural, rate, time};
use crate::output::json::FileStatus;
use crate::output::observer::{Reporter, Shown};
use farhaul_transfer::Events;
use farhaul_transfer::internal::quota::Quota;

/// The original program at the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Original {
    /// `tsunami` of tsunami-udp 1.1
    Tsunami,
    /// `recvfile` of QUANTA
    Rbudp,
}

impl Original {
    /// The program whose clients a server of this protocol serves as well.
    pub(crate) fn of(protocol: &Protocol) -> Option<Self> {
        Self::from_str(protocol.entry().name, false).ok()
    }
}

/// A server of original clients beside that of Farhaul clients, on the port of the protocol of the same name.
pub(crate) struct Beside<'a> {
    server: OriginalServer,
    most: usize,
    stop: Stop,
    reports: Reports<'a>,
}

impl<'a> Beside<'a> {
    /// At most `most` sessions at a time. Numbers them by `served`, together with the others.
    pub(crate) fn new(
        transport: &Transport,
        (original, root): (Original, Directory),
        most: usize,
        endpoint: &Endpoint,
        (context, output): (&'a Context, &Output),
        served: &Arc<AtomicU64>,
    ) -> Result<Self, Fault> {
        let local = endpoint.local_addr();
        let clients = endpoint.other_clients().map_err(|error| context.connection_fault(&error, &local))?;
        let server = match original {
            Original::Tsunami => OriginalServer::tsunami(clients, root, transport.tsunami_server()),
            Original::Rbudp => OriginalServer::rbudp(clients, root, transport.rbudp())
                .map_err(|failure| of(context, &failure, &local))?,
        };
        let stop = stop_at_signals(context);
        let protocol = transport.protocol().entry().name;
        let (output, served) = (output.clone(), Arc::clone(served));
        let busy = Quota::of_warnings(context.clock, "original clients were refused as too many");
        let events = Events::to(Reporter::new(output.clone(), Shown::default()));
        let reports = Reports { context, output, events, protocol, served, busy, sessions: Mutex::default() };
        Ok(Self { server, most, stop, reports })
    }

    /// Serves until a signal stops the program and the endpoint's listener is closed.
    pub(crate) fn run(&self) {
        if let Err(failure) = self.server.run(self.most, &self.stop, &self.reports)
            && !matches!(failure, Failure::Stopped)
        {
            let protocol = self.reports.protocol;
            self.reports.output.warn(&format!("no original {protocol} client is served any more: {failure}"));
        }
    }
}

/// The records of all sessions.
struct Reports<'a> {
    context: &'a Context,
    output: Output,
    events: Events,
    protocol: &'static str,
    /// Sessions since the start, those of Farhaul clients included.
    served: Arc<AtomicU64>,
    /// Clients that are refused because of their number, and reported.
    busy: Quota,
    sessions: Mutex<BTreeMap<u64, (Meter, Report)>>,
}

impl Watch for Reports<'_> {
    fn hear(&self, session: u64, peer: SocketAddr, news: News<'_>) {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        match news {
            News::Begun => {
                let number = self.served.fetch_add(1, Ordering::AcqRel) + 1;
                let end = Report {
                    session: Some(number),
                    address: Some(peer.to_string()),
                    files: Some(0),
                    directories: Some(0),
                    failed: Some(0),
                    ..end_record(self.protocol, Direction::Sent)
                };
                sessions.insert(session, (Meter::start(self.context.clock), end));
            }
            News::Busy => {
                self.busy.warn(&self.events, || format!("{peer} was refused: as many sessions as allowed are running"))
            }
            News::Refused { name, why } => {
                let number = sessions.get_mut(&session).and_then(|(_, end)| {
                    end.failed = end.failed.map(|failed| failed + 1);
                    end.session
                });
                self.file(number, name, FileStatus::Failed, 0, Some(why.to_string()));
            }
            News::Given(given) => {
                let number = sessions.get_mut(&session).and_then(|(_, end)| {
                    end.files = end.files.map(|files| files + 1);
                    end.bytes += given.size;
                    end.packets_sent += given.sent;
                    end.packets_retransmitted += given.retransmitted;
                    end.goodput_bps = goodput(given.size, given.time);
                    end.session
                });
                self.file(number, &given.name, FileStatus::Given, given.size, None);
            }
            News::Over(result) => {
                let Some((meter, mut end)) = sessions.remove(&session) else { return };
                drop(sessions);
                end.seconds = meter.elapsed().as_secs_f64();
                end.cpu_seconds = meter.cpu();
                let line = line(&end);
                let result = result.as_ref().map_err(|failure| of(self.context, failure, &peer)).copied();
                match report_end(&self.output, end, result) {
                    Ok(()) => self.output.print_line(&line),
                    Err(fault) => {
                        self.output.print_line(&format!("{line}; {}", self.output.style().red(&fault.to_string())))
                    }
                }
            }
            _ => {}
        }
    }
}

impl Reports<'_> {
    fn file(&self, session: Option<u64>, name: &[u8], status: FileStatus, bytes: u64, error: Option<String>) {
        self.output.record(&file_record(session, name, status, bytes, error));
    }
}

/// The result of a session in one line.
fn line(end: &Report) -> String {
    format!(
        "given to {}: {}, {} in {}, {}",
        end.address.as_deref().unwrap_or("?"),
        plural(end.files.unwrap_or(0), "file"),
        ByteSize(end.bytes),
        time(Duration::from_secs_f64(end.seconds)),
        rate(end.goodput_bps)
    )
}
