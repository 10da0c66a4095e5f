//! `copy` from servers of original programs, and lists of their files.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use farhaul_originals::{Failure, IncomingPlace, RbudpReceiver, SessionHandle, TsunamiClient};
use farhaul_session::{Component, escape};
use farhaul_transfer::internal::report::{Direction, Report, goodput};
use farhaul_transfer::internal::session::measure::Meter;
use farhaul_units::ByteSize;
use serde_json::Value;

use super::fault::of;
use super::meanwhile::Meanwhile;
use super::{complete, end_record, file_record, show_state, start, stoppable};
use crate::cmd::copy::args::CopyArgs;
use crate::cmd::copy::summary::rates;
use crate::cmd::{Context, report_end};
use crate::exit::{Code, Fault};
use crate::output::human::{is_terminal, plural, time};
use crate::output::json::{FileStatus, Record};
use crate::output::{self, Output, progress};
use crate::values::{Location, OriginalPlace, Scheme, What};

/// Runs a copy or a list whose remote end is an original program.
pub(crate) fn run(args: &CopyArgs, context: &Context) -> Result<(), Fault> {
    let plan = Plan::of(args)?;
    args.transport.require_plain("the protocol of an original program")?;
    let output = Output::from_flag(args.transport.json);
    let protocol = plan.server.scheme.name();
    let mut end = Report {
        address: Some(plan.server.server.to_string()),
        files: Some(0),
        directories: Some(0),
        failed: Some(0),
        ..end_record(protocol, Direction::Received)
    };
    let handle = stoppable(context);
    let meter = Meter::start(context.clock);
    let copy = Copy { args, context, plan, output: output.clone(), meter, handle };
    let result = copy.run(&mut end);
    output.detach();
    complete(&mut end, &copy.handle.progress, meter);
    if result.is_ok() && !args.quiet && !args.list {
        output.print_line(&summary(&output, &end));
    }
    report_end(&output, end, result)
}

/// The server and the request, and where it goes.
struct Plan {
    server: OriginalPlace,
    /// Names in the server's words.
    names: Vec<Vec<u8>>,
    all: bool,
    to: Option<PathBuf>,
}

impl Plan {
    fn of(args: &CopyArgs) -> Result<Self, Fault> {
        if args.list {
            return match &args.places[..] {
                [Location::Original(server @ OriginalPlace { scheme: Scheme::Tsunami, what: What::Server, .. })] => {
                    Ok(Self { server: server.clone(), names: Vec::new(), all: false, to: None })
                }
                _ => Err(Fault::usage("--list takes one server: `copy --list tsunami://host/`; no other can list")),
            };
        }
        let Some((to, from)) = args.places.split_last() else {
            return Err(Fault::usage("give the file of the server, then the target"));
        };
        let Location::Local(to) = to else {
            return Err(Fault::usage(
                "an original server only gives files: the last place must be a file or directory on this machine",
            ));
        };
        let mut plan: Option<Self> = None;
        for place in from {
            let Location::Original(place) = place else {
                return Err(Fault::usage("one copy has one source server; copy from each server separately"));
            };
            let server = OriginalPlace { what: What::Server, ..place.clone() };
            let plan = plan.get_or_insert_with(|| Self {
                server: server.clone(),
                names: Vec::new(),
                all: false,
                to: Some(to.clone()),
            });
            if plan.server != server {
                return Err(Fault::usage("one copy has one source server; copy from each server separately"));
            }
            match (&place.what, place.scheme) {
                (What::File(name), _) => plan.names.push(name.clone()),
                (What::All, Scheme::Tsunami) => plan.all = true,
                (What::All, Scheme::Rbudp) => return Err(Fault::usage("an RBUDP server cannot name its files")),
                (What::Server, _) => {
                    return Err(Fault::usage(format!(
                        "which file? Write {place}NAME; {place}* means all of a Tsunami server"
                    )));
                }
            }
        }
        let plan = plan.ok_or_else(|| Fault::usage("give the file of the server, then the target"))?;
        if plan.server.scheme == Scheme::Rbudp && plan.names.len() > 1 {
            return Err(Fault::usage("an RBUDP copy takes one file"));
        }
        Ok(plan)
    }

    /// Whether the target must be a directory.
    fn is_directory(&self) -> bool {
        self.all || self.names.len() > 1
    }
}

struct Copy<'a> {
    args: &'a CopyArgs,
    context: &'a Context,
    plan: Plan,
    output: Output,
    meter: Meter,
    handle: SessionHandle,
}

impl Copy<'_> {
    fn run(&self, end: &mut Report) -> Result<(), Fault> {
        show_state(self.context, &self.output, &self.handle.progress, self.meter);
        let place = match &self.plan.to {
            Some(to) => Some(Arc::new(
                IncomingPlace::at(to, self.plan.is_directory())
                    .map_err(|error| Fault::no_place(&to.display(), &error))?,
            )),
            None => None,
        };
        let mut failed = None;
        for peer in self.plan.server.server.resolve()? {
            self.begin(peer);
            let connected = match self.plan.server.scheme {
                Scheme::Tsunami => self.connect_tsunami(peer).map(|client| self.tsunami(client, place.as_ref(), end)),
                Scheme::Rbudp => self.connect_rbudp(peer).map(|receiver| self.rbudp(receiver, place.as_ref(), end)),
            };
            match connected {
                Ok(result) => return result,
                Err(failure) if matches!(failure, Failure::Refused(_) | Failure::NoAnswer { .. }) => {
                    failed = Some(failure);
                }
                Err(failure) => return Err(self.fault(&failure)),
            }
            if self.handle.stop.is_stopped() {
                break;
            }
        }
        Err(self.fault(&failed.unwrap_or(Failure::Stopped)))
    }

    fn begin(&self, peer: SocketAddr) {
        let mut start = start(&self.args.transport, "copy", self.plan.server.scheme.name());
        start.address = Some(peer.to_string());
        let sources: Vec<Value> = self.args.places.iter().map(|place| place.to_string().into()).collect();
        start.settings.insert("places".into(), sources.into());
        start.settings.insert("list".into(), self.args.list.into());
        self.output.record(&Record::Start(Box::new(start)));
    }

    fn fault(&self, failure: &Failure) -> Fault {
        let fault = of(self.context, failure, &self.plan.server.server);
        match (failure, self.plan.server.scheme) {
            (Failure::NoFile(_), Scheme::Tsunami) => {
                let server = OriginalPlace { what: What::Server, ..self.plan.server.clone() };
                fault.and(&format!(
                    "`farhaul copy --plain {}--list {server}` lists its files",
                    self.args.transport.secret_option()
                ))
            }
            _ => fault,
        }
    }

    fn connect_tsunami(&self, peer: SocketAddr) -> Result<TsunamiClient, Failure> {
        let options = self.args.transport.tsunami_client();
        let time = self.args.transport.connect_timeout;
        TsunamiClient::connect(peer, options, time, &self.handle)
    }

    fn tsunami(
        &self,
        mut client: TsunamiClient,
        place: Option<&Arc<IncomingPlace>>,
        end: &mut Report,
    ) -> Result<(), Fault> {
        let Some(place) = place else { return self.list(client) };
        let mut names = self.plan.names.clone();
        if self.plan.all {
            names.extend(client.names().map_err(|failure| self.fault(&failure))?);
        }
        let _meanwhile = self.meanwhile()?;
        let mut first = None;
        for name in &names {
            let copied = local_name(name).and_then(|local| client.get(name, &local, place));
            let usable = matches!(copied, Ok(_) | Err(Failure::NoFile(_) | Failure::Name { .. }));
            self.copied(name, copied, end, &mut first);
            if !usable {
                break;
            }
        }
        client.finish();
        first.map_or(Ok(()), Err)
    }

    fn list(&self, mut client: TsunamiClient) -> Result<(), Fault> {
        let files = client.list().map_err(|failure| self.fault(&failure))?;
        client.finish();
        let files = files.ok_or_else(|| {
            Fault::new(Code::FilesFailed, format!("{} gives no list of its files", self.plan.server.server))
        })?;
        for file in files {
            match self.output.is_json() {
                true => self.record(&file.name, FileStatus::Listed, file.size, None),
                false => output::print(&format!("{:>15} {}\n", file.size, escape(&file.name))),
            }
        }
        Ok(())
    }

    fn connect_rbudp(&self, peer: SocketAddr) -> Result<RbudpReceiver, Failure> {
        RbudpReceiver::connect(peer, self.args.transport.connect_timeout, &self.handle)
    }

    fn rbudp(
        &self,
        receiver: RbudpReceiver,
        place: Option<&Arc<IncomingPlace>>,
        end: &mut Report,
    ) -> Result<(), Fault> {
        let (Some(place), [name]) = (place, &self.plan.names[..]) else {
            return Err(Fault::usage("an RBUDP copy takes one file"));
        };
        let _meanwhile = self.meanwhile()?;
        let terms = self.args.transport.rbudp();
        let copied = local_name(name).and_then(|local| receiver.get(name, terms, &local, place));
        let mut first = None;
        self.copied(name, copied, end, &mut first);
        first.map_or(Ok(()), Err)
    }

    /// Notes the end of one file.
    fn copied(&self, name: &[u8], copied: Result<u64, Failure>, end: &mut Report, first: &mut Option<Fault>) {
        match copied {
            Ok(bytes) => {
                end.files = end.files.map(|files| files + 1);
                self.record(name, FileStatus::Copied, bytes, None);
                end.goodput_bps = goodput(self.handle.progress.figures().bytes, self.meter.elapsed());
            }
            Err(failure) => {
                let fault = self.fault(&failure);
                end.failed = end.failed.map(|failed| failed + 1);
                self.record(name, FileStatus::Failed, 0, Some(fault.to_string()));
                if first.is_some() {
                    self.output.print_line(&fault.to_string());
                }
                first.get_or_insert(fault);
            }
        }
    }

    fn record(&self, name: &[u8], status: FileStatus, bytes: u64, error: Option<String>) {
        self.output.record(&file_record(None, name, status, bytes, error));
    }

    fn meanwhile(&self) -> Result<Meanwhile, Fault> {
        let shown = !self.args.quiet && !self.output.is_json() && is_terminal();
        let bar = shown.then(|| progress::bar(Some(0)));
        if let Some(bar) = &bar {
            self.output.attach(bar.clone());
        }
        Meanwhile::start(self.handle.progress.clone(), self.meter, &self.output, self.args.interval, bar)
    }
}

/// The name under which a file of a server comes: the last part of its path. No part of it can lead elsewhere.
fn local_name(name: &[u8]) -> Result<Component, Failure> {
    let last = name.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    Component::new(last).map_err(|error| Failure::Name { name: name.to_vec(), reason: error.to_string() })
}

fn summary(output: &Output, end: &Report) -> String {
    let (whole, moving) = rates(end);
    format!(
        "{} {}, {} in {}: {}\n{}",
        output.style().green("copied:"),
        plural(end.files.unwrap_or(0), "file"),
        ByteSize(end.bytes),
        time(Duration::from_secs_f64(end.seconds)),
        output.style().bold(&whole),
        output.style().dim(&format!("{moving}not verified: this protocol carries no digest; not encrypted")),
    )
}
