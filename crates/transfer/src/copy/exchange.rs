//! A copy between this host and another one: connect, negotiate, drive, outcome.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::PoisonError;
use std::time::Duration;

use farhaul_bond::BondedStream;
use farhaul_bond::mux::MOST_OPENING;
use farhaul_disk::{DiskStore, Filters};
use farhaul_session::{
    AbortCode, Bonding, CopyScope, FileReceiver, FileSender, Progress, Pull, Push, ReceiveLimits, Rules, SessionError,
    Skip, Source, Store,
};

use super::CopyJob;
use super::plan::{FeedPlan, FetchPlan, PullPlan, PushPlan, RemoteEnd};
use super::stream::{InputStream, OutputStream};
use crate::connect::{self, Calling};
use crate::control::Control;
use crate::environment::Environment;
use crate::error::{Code, Error, Trouble};
use crate::event::{Event, Moved};
use crate::remote::RemoteProgram;
use crate::remote::reach::{self, Opening, OverSsh, Reached};
use crate::report::{Direction, Report};
use crate::session::file::outcome::{self, Measured};
use crate::session::file::{FileLog, Receiving, Sending, Target, Timed, ends, patience};
use crate::session::measure::{self, Meter};
use crate::session::throttled::Throttled;
use crate::session::watch::Watch;
use crate::session::{Role, Session, SessionConnection, drive};
use crate::throttle::Obedience;

/// Longest request that goes with the first message to a program that ssh starts. One of many names waits until the program is ready.
const MOST_EARLY: usize = 4 << 10;

/// One run of a copy.
pub(super) struct Exchange<'a> {
    copy: &'a CopyJob,
    environment: &'a Environment,
    /// Counts from the connection attempt that succeeded, without the time that ssh or a question to the user took.
    meter: Cell<Meter>,
    /// The further flows that it offers.
    bonding: Option<Bonding>,
    rules: Rules,
}

impl<'a> Exchange<'a> {
    /// `goes_on` after an attempt whose connection was lost.
    pub(super) fn new(copy: &'a CopyJob, environment: &'a Environment, goes_on: bool) -> Result<Self, Error> {
        let bonding = if copy.may_have_flows() { copy.flows.offer()? } else { None };
        let mut rules = copy.rules.clone();
        if goes_on && rules.skip == Skip::Never {
            // What the attempt before has brought is compared, and does not come again.
            rules.skip = Skip::Digest;
        }
        Ok(Self { copy, environment, meter: Cell::new(Meter::start(environment.clock)), bonding, rules })
    }

    /// The time since the copy began.
    pub(super) fn elapsed(&self) -> Duration {
        self.meter.get().elapsed()
    }

    /// The rules for the other end. The part of the files concerns the sender alone.
    fn rules_there(&self) -> Rules {
        let sends = self.copy.direction() == Direction::Sent;
        Rules { shard: self.rules.shard.filter(|_| !sends), ..self.rules.clone() }
    }

    /// Files of this host to another one.
    pub(super) fn push(&self, plan: &PushPlan, report: &mut Report) -> Result<(), Error> {
        plan.check_sources()?;
        let (source, names) = plan.source(self.copy.recursive)?;
        let target_is_directory = plan.is_directory || names.len() > 1;
        let mut source = source.under_rules(&self.rules).map_err(Error::usage)?;
        let push = Push { target: plan.target.clone(), target_is_directory, rules: self.rules_there() };
        let mut session = FileSender::push_over(push, self.bonding);
        let opening = match plan.is_small() && self.takes_opening(&plan.to) {
            true => opening_of(&mut session, &mut source),
            false => Vec::new(),
        };
        let opening = if opening.is_empty() { Opening::None } else { Opening::Whole(&opening) };
        let mut reached = self.connect(&plan.to, opening)?;
        if connect::is_here(reached.stream.peer_addr()) {
            source.leave_out_younger_directories();
        }
        self.send((&mut reached, &plan.to), session, (source, false), self.log().of_sources(names), report)
    }

    /// A stream to a file of another host.
    pub(super) fn feed(&self, plan: &FeedPlan, report: &mut Report) -> Result<(), Error> {
        let input = self.copy.input.lock().unwrap_or_else(PoisonError::into_inner).take();
        let input = input.unwrap_or_else(|| Box::new(io::stdin()));
        let mut reached = self.connect(&plan.to, Opening::None)?;
        let (name, stream) = (plan.name.clone(), reached.stream.clone());
        let source = InputStream::begin(name, input, stream, self.environment.cancellation.clone())?;
        let rules = self.rules.clone();
        let push = Push { target: plan.directory.clone(), target_is_directory: true, rules };
        let session = FileSender::push_over(push, self.bonding);
        self.send((&mut reached, &plan.to), session, (source, true), self.log(), report)
    }

    /// Files of another host to this one.
    pub(super) fn pull(&self, plan: &PullPlan, report: &mut Report) -> Result<(), Error> {
        let is_directory = plan.is_directory();
        let store =
            DiskStore::at(&plan.to, is_directory).map_err(|error| Error::no_place(&plan.to.display(), &error))?;
        let rules = self.rules.clone();
        // The remote end is asked with these filters, and the store spares what they match.
        Filters::of(&rules.filters).map_err(Error::usage)?;
        let store = store.under_rules(&rules, true);
        let target = Target::at(plan.to.clone());
        let takes_one = !is_directory && !plan.to.is_dir();
        let mut session = self.pulling(plan.requested.scope(self.copy.recursive, takes_one, &rules), &plan.from)?;
        let mut reached = self.request(&plan.from, &mut session)?;
        let log = self.log().of_sources(plan.requested.names());
        let patience = patience(&rules, &reached.stream, self.environment, self.environment.events.clone());
        let store = store.waiting_by(patience).ending_by(ends(&reached.stream, self.environment));
        let store = Timed::new(store, reached.stream.clone(), self.meter.get());
        self.receive((&mut reached, &plan.from), Receiving { session, store, log }, report, |error, log| {
            target.named_in(error, log.current())
        })
    }

    /// A file of another host to a stream.
    pub(super) fn fetch(&self, plan: &FetchPlan, report: &mut Report) -> Result<(), Error> {
        let output = self.copy.output.lock().unwrap_or_else(PoisonError::into_inner).take();
        let output = output.unwrap_or_else(|| Box::new(io::stdout()));
        let rules = Rules { skip: Skip::Never, ..self.rules.clone() };
        let mut session = self.pulling(plan.requested.scope(false, true, &rules), &plan.from)?;
        let mut reached = self.request(&plan.from, &mut session)?;
        let closed = Rc::new(Cell::new(false));
        let store = OutputStream::new(output, Rc::clone(&closed));
        let store = Timed::new(store, reached.stream.clone(), self.meter.get()).program();
        let job = Receiving { session, store, log: self.log().without_place() };
        let received = self.receive((&mut reached, &plan.from), job, report, |error, log| match log.moved() {
            0 => error,
            _ => error.and("the output on stdout is incomplete"),
        });
        if closed.get() {
            let message = "the reader of stdout closed it early; the copy is incomplete";
            let reason = self.environment.cancellation.reason();
            return Err(reason.unwrap_or_else(|| Error::new(Code::LocalIo, message).quietly()));
        }
        received
    }

    /// Sends a source, which is `fed` by another program or not.
    fn send(
        &self,
        (reached, to): (&mut Reached, &RemoteEnd),
        session: FileSender,
        (source, fed): (impl Source, bool),
        log: FileLog,
        report: &mut Report,
    ) -> Result<(), Error> {
        let source = Timed::new(source, reached.stream.clone(), self.meter.get());
        let job = Sending { session, source, log };
        let control = self
            .copy
            .control_stream
            .zip(reached.stream.connection())
            .map(|(target, bulk)| Control::begin(self.environment, &self.copy.settings, bulk, target));
        let control = RefCell::new(control.transpose()?);
        self.carry(reached, job, report, |report, job, measured, driven| {
            outcome::of_sending(report, job, &Measured { fed, ..measured });
            report.control_stream = control.take().and_then(Control::finish);
            outcome::result(report, &job.log, driven, |trouble| {
                let error = self.environment.error(trouble, to);
                match job.log.current().map(|_| began_there(job.session.progress())) {
                    Some(true) => error
                        .and(&format!("the incomplete file lies beside its target on {to}; its name ends in .fhpart")),
                    Some(false) if !is_explained(trouble) => error.and(&format!(
                        "an incomplete file may lie beside its target on {to}; its name would end in .fhpart"
                    )),
                    _ => error,
                }
            })
        })
    }

    /// Receives into a store. `explain` adds to an error what remains of the copy.
    fn receive<S: Store>(
        &self,
        (reached, from): (&mut Reached, &RemoteEnd),
        job: Receiving<S>,
        report: &mut Report,
        explain: impl Fn(Error, &FileLog) -> Error,
    ) -> Result<(), Error> {
        self.carry(reached, job, report, |report, job, measured, driven| {
            outcome::of_receiving(report, job, &measured);
            outcome::result(report, &job.log, driven, |trouble| {
                explain(self.environment.error(trouble, from), &job.log)
            })
        })
    }

    /// Drives one side of a session, and draws the conclusion.
    fn carry<J: Session>(
        &self,
        reached: &mut Reached,
        mut job: J,
        report: &mut Report,
        conclude: impl FnOnce(&mut Report, &J, Measured, Result<(), Trouble>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (clock, events, stream) = (self.environment.clock, self.environment.events.clone(), &reached.stream);
        measure::note_protection(report, stream);
        let show = move |moved: &Moved<'_>| events.send(&Event::Moved(moved));
        let mut watch = Watch::start(vec![stream.clone()], clock, job.sends(), show)?;
        job.set_round_trips(watch.round_trips());
        if let Some((further, bonding)) = reached.further.as_ref().zip(self.bonding) {
            further.open(stream, self.copy.flows, bonding);
        }
        let ends_peer = reached.far.as_ref().is_some_and(RemoteProgram::ends_with_ssh);
        let role = if ends_peer { Role::Starting } else { Role::Connecting };
        let connection = SessionConnection { stream, role, clock, early: &[] };
        let steering = (&self.environment.throttle, &self.environment.cancellation);
        let obeys = (self.copy.settings.of_sender(), Obedience::default());
        let (waits, driven) = drive(&connection, &mut Throttled::new(&mut job, stream, steering, obeys));
        watch.stop();
        measure::note_flows(report, stream);
        // The stream may have moved from ssh to UDP.
        measure::note_protection(report, stream);
        let stats = stream.stats().unwrap_or_default();
        // The cap may have changed meanwhile.
        let (rate, buffer) = (stats.max_rate.or(self.copy.settings.rate), self.copy.settings.buffer);
        let measured = Measured { stats, rtt: watch.rtt(), meter: self.meter.get(), waits, fed: false, rate, buffer };
        conclude(report, &job, measured, driven).map_err(|error| reached.explained(error))
    }

    /// How it reaches remote programs, whose stream begins with `opening`.
    fn over_ssh<'o>(&'o self, opening: Opening<'o>) -> OverSsh<'o> {
        OverSsh {
            environment: self.environment,
            settings: &self.copy.settings,
            ssh: &self.copy.ssh,
            only_sends: self.copy.direction() == Direction::Sent,
            needs_udp: self.copy.control_stream.is_some(),
            flows: (self.copy.flows, self.bonding),
            opening,
        }
    }

    /// Whether a stream to `far` may begin before the program there is ready.
    fn takes_opening(&self, far: &RemoteEnd) -> bool {
        matches!(far, RemoteEnd::Ssh { .. }) && self.over_ssh(Opening::None).takes_opening()
    }

    /// Connects to a sender, and sends it the request of `session` at once if the path permits it.
    fn request(&self, from: &RemoteEnd, session: &mut FileReceiver) -> Result<Reached, Error> {
        let request = session.poll_write().to_vec();
        if request.len() > MOST_EARLY || !self.takes_opening(from) {
            return self.connect(from, Opening::None);
        }
        session.handle_written(request.len());
        self.connect(from, Opening::Request(&request))
    }

    fn connect(&self, far: &RemoteEnd, opening: Opening<'_>) -> Result<Reached, Error> {
        let (environment, settings) = (self.environment, &self.copy.settings);
        let only_sends = self.copy.direction() == Direction::Sent;
        let mut reached = match far {
            RemoteEnd::Server(server) => {
                let calling = Calling { only_sends, ..Calling::to(environment, settings, server)? };
                let stream = calling.connect(server)?;
                let further = Some(calling.further(&stream));
                Reached { stream: stream.into(), far: None, further }
            }
            RemoteEnd::Ssh { host, task } => {
                self.over_ssh(opening).connect(host, task.clone().under_rules(&self.rules_there()))?
            }
            RemoteEnd::Other(other) => {
                Reached { stream: reach::call(environment, settings, other)?, far: None, further: None }
            }
        };
        let open_for = reached.stream.stats().map_or(Duration::ZERO, |stats| stats.elapsed);
        self.meter.set(self.meter.get().restarted(open_for));
        if let Some(first) = reached.stream.connection().filter(|_| self.bonding.is_some()).cloned() {
            reached.stream = BondedStream::open(first, 0);
            reached.stream.set_read_timeout(Some(settings.answer_timeout()));
        }
        Ok(reached)
    }

    fn pulling(&self, scope: CopyScope, server: &RemoteEnd) -> Result<FileReceiver, Error> {
        let pull = Pull { scope, sender: self.copy.settings.of_sender() };
        FileReceiver::pull_over(pull, ReceiveLimits::default(), self.bonding)
            .map_err(|error| Error::usage(format!("cannot request these paths from {server}: {error}")))
    }

    fn log(&self) -> FileLog {
        FileLog::new(self.environment.events.clone(), self.meter.get())
    }
}

/// The first bytes of a sender, as far as they go with the first message to a program that ssh starts.
fn opening_of(session: &mut FileSender, source: &mut impl Source) -> Vec<u8> {
    let mut opening = Vec::new();
    loop {
        let pending = session.poll_write(source);
        let count = pending.len().min(MOST_OPENING - opening.len());
        if count == 0 {
            return opening;
        }
        opening.extend_from_slice(&pending[..count]);
        session.handle_written(count);
    }
}

/// Whether the other side gave a reason for giving up. Its reason also tells about incomplete files.
fn is_explained(trouble: &Trouble) -> bool {
    matches!(trouble, Trouble::Session(SessionError::PeerAborted(abort)) if abort.code != AbortCode::Cancelled)
}

/// Whether the other side has stored bytes of the current file.
fn began_there(progress: Progress) -> bool {
    progress.current.is_some_and(|(_, _, sent)| progress.stored > progress.bytes - sent)
}
