//! One end of a copy that the other end began: a server, and the remote program of a copy over SSH.

use std::fmt::Display;
use std::io;

use farhaul_bond::BondedStream;
use farhaul_session::{
    AbortCode, CopyScope, FileReceiver, FileSender, ReceiveLimits, Request, SenderSettings, Source, Store, Unable,
};

use super::listener::Caller;
use crate::environment::Environment;
use crate::error::{self, Error, Trouble};
use crate::event::{Event, Moved};
use crate::report::{Direction, Report};
use crate::session::file::outcome::{self, Measured};
use crate::session::file::{FileLog, Holding, Receiving, Sending, Target, Timed};
use crate::session::measure::{self, Meter};
use crate::session::throttled::Throttled;
use crate::session::watch::Watch;
use crate::session::{Role, Session, SessionConnection, drive};
use crate::settings::Settings;
use crate::throttle::{Obedience, SCAVENGER};

/// What the end that accepts shares with all sessions.
pub(crate) struct Hosting<'a> {
    pub(crate) environment: &'a Environment,
    pub(crate) settings: &'a Settings,
    /// Whose requests for a cap replace that of this side. Otherwise they only lower it.
    pub(crate) peer_decides_cap: bool,
}

/// The settings that a caller requested of the sender and its connection cannot have.
fn unable(caller: &Caller) -> Unable {
    let Request::Pull(pull) = &caller.open.request else { return Unable::default() };
    let requested = pull.sender;
    let has_cap = |stream: &BondedStream| stream.set_max_rate(stream.stats()?.max_rate);
    Unable {
        rate: requested.rate.is_some() && has_cap(&caller.stream).is_err(),
        background: requested.background && caller.stream.set_controller(SCAVENGER).is_err(),
    }
}

/// The report of a session, and its result.
pub(crate) type Hosted = (Report, Result<(), Error>);

impl Hosting<'_> {
    /// Receives files. The caller has its first answer before `open` looks for the place on the disk. `None` if there is no place:
    /// the caller knows the reason then. `holding` counts the waits of the store for the cap of the caller's key. If a third side
    /// gives a `scope`, nothing outside it is taken.
    pub(crate) fn receive<S: Store>(
        &self,
        caller: &Caller,
        scope: Option<&CopyScope>,
        (place, target): (&dyn Display, &Target),
        open: impl FnOnce() -> io::Result<S>,
        holding: &Holding,
    ) -> Option<Hosted> {
        let (log, meter) = self.log(caller);
        let limits = ReceiveLimits::default();
        let mut session = match scope {
            Some(scope) => FileReceiver::answer_only(&caller.open, scope, limits),
            None => FileReceiver::answer(&caller.open, limits),
        };
        let answered = caller.answer(session.poll_write());
        session.handle_written(answered);
        let store = match open() {
            Ok(store) => store,
            Err(error) => {
                caller.refuse(AbortCode::Storage, &error::no_place(place, &error));
                return None;
            }
        };
        let store = Timed::new(store, caller.stream.clone(), meter).held_by(holding.clone()).shown_by(caller.working());
        let mut job = Receiving { session, store, log };
        let (driven, measured) = self.drive(caller, &mut job, meter);
        caller.leave_place();
        let mut end = self.end(caller, Direction::Received);
        outcome::of_receiving(&mut end, &job, &measured);
        let result = outcome::result(&mut end, &job.log, driven, |trouble| {
            target.named_in(caller.error(self.environment, trouble), job.log.current())
        });
        Some((end, result))
    }

    /// Gives a caller that wants files its first answer, before any access to a disk.
    pub(crate) fn begin_to_send(&self, caller: &Caller) -> (FileSender, FileLog, Meter) {
        let (log, meter) = self.log(caller);
        let mut session = FileSender::answer_unable(&caller.open, unable(caller));
        let answered = caller.answer(session.first_frame());
        session.handle_written(answered);
        (session, log, meter)
    }

    /// Sends files. `holding` counts the waits of `source` for the cap of the caller's key.
    pub(crate) fn send(
        &self,
        caller: &Caller,
        (session, log, meter): (FileSender, FileLog, Meter),
        source: impl Source,
        holding: Holding,
    ) -> Hosted {
        let source = Timed::new(source, caller.stream.clone(), meter).held_by(holding).shown_by(caller.working());
        let source = source.under(self.settings.rate, self.settings.buffer);
        let mut job = Sending { session, source, log };
        let (driven, measured) = self.drive(caller, &mut job, meter);
        caller.leave_place();
        let mut end = self.end(caller, Direction::Sent);
        outcome::of_sending(&mut end, &job, &measured);
        let result = outcome::result(&mut end, &job.log, driven, |trouble| caller.error(self.environment, trouble));
        (end, result)
    }

    fn log(&self, caller: &Caller) -> (FileLog, Meter) {
        let meter = Meter::start(self.environment.clock);
        let log = FileLog::new(self.environment.events.of_session(caller.session), meter);
        (if caller.is_unlisted { log.of_unlisted_caller() } else { log }, meter)
    }

    pub(super) fn drive(
        &self,
        caller: &Caller,
        job: &mut impl Session,
        meter: Meter,
    ) -> (Result<(), Trouble>, Measured) {
        let (clock, events) = (self.environment.clock, self.environment.events.of_session(caller.session));
        let show = move |moved: &Moved<'_>| events.send(&Event::Moved(moved));
        // A copy works without its watching thread.
        let mut watch = Watch::start(vec![caller.stream.clone()], clock, job.sends(), show).ok();
        job.set_round_trips(watch.as_ref().map(Watch::round_trips).unwrap_or_default());
        let connection =
            SessionConnection { stream: &caller.stream, role: Role::Accepting, clock, early: &caller.early };
        // A client may have a cap by the rules, beside that of the user.
        let rule =
            caller.stream.stats().ok().and_then(|stats| stats.max_rate).filter(|cap| Some(*cap) != self.settings.rate);
        let requested = match &caller.open.request {
            Request::Pull(pull) => pull.sender,
            _ => SenderSettings::default(),
        };
        let obeys = Obedience { rule, requested, peer_decides: self.peer_decides_cap };
        let steering = (&self.environment.throttle, &self.environment.cancellation);
        let (waits, driven) =
            drive(&connection, &mut Throttled::new(job, &caller.stream, steering, (SenderSettings::default(), obeys)));
        let rtt = watch.as_mut().map(|watch| {
            watch.stop();
            watch.rtt()
        });
        let stats = caller.stream.stats().unwrap_or_default();
        let (rate, buffer) = (stats.max_rate.or(self.settings.rate), self.settings.buffer);
        (driven, Measured { stats, rtt: rtt.unwrap_or_default(), meter, waits, fed: false, rate, buffer })
    }

    pub(super) fn end(&self, caller: &Caller, direction: Direction) -> Report {
        let mut report = Report {
            session: Some(caller.session),
            address: Some(caller.peer.to_string()),
            ..self.settings.report(direction)
        };
        measure::note_protection(&mut report, &caller.stream);
        measure::note_flows(&mut report, &caller.stream);
        report
    }
}
