//! A session of the file service: the guard of its client, and its run on a stream.

use std::sync::Arc;

use delegate::delegate;
use farhaul_bond::BondedStream;
use farhaul_disk::{Directory, DiskFiles, Guard, Place, Reach, Right};
use farhaul_keys::{Claim, Exhausted, Permit};
use farhaul_session::{
    Abort, FailCode, Failure, FileServer, RelPath, ServicePath, ServiceTotals, SessionError, ShownPath,
};
use farhaul_udp::Clock;

use super::hosting::{Hosted, Hosting};
use super::listener::Caller;
use super::permissions::Client;
use crate::event::{Event, Events, FileChange};
use crate::report::{Direction, Report};
use crate::session::Session;
use crate::session::file::Working;
use crate::session::measure::{self, Meter};

/// What a client of a server may do, by its key.
#[derive(Debug)]
pub(crate) struct KeyGuard<'a> {
    client: &'a Client<'a>,
    permit: Permit,
    clock: Clock,
    events: Events,
}

impl<'a> KeyGuard<'a> {
    pub(crate) fn new(client: &'a Client<'a>, permit: Permit, (clock, events): (Clock, Events)) -> Self {
        Self { client, permit, clock, events }
    }
}

impl Guard for KeyGuard<'_> {
    type Claim = Claim;

    fn place(&self, _: &Arc<Directory>, right: Right, path: RelPath) -> Result<Place, Failure> {
        self.client.place(right, &path).map_err(|(_, why)| Failure::new(FailCode::Refused, why))
    }

    fn portion(&self) -> usize {
        self.permit.portion()
    }

    fn charge_file(&mut self) -> Result<(), Failure> {
        self.permit.charge_file().map_err(used_up)
    }

    fn charge_claimed(&mut self, bytes: usize, claim: &mut Claim) -> Result<(), Failure> {
        self.permit.charge_claimed(bytes, claim, self.clock).map(drop).map_err(used_up)
    }

    fn claim(&mut self, bytes: u64) -> Result<Claim, Failure> {
        self.permit.claim(bytes).map_err(used_up)
    }

    fn changed(&self, place: &ServicePath, change: FileChange<'_>) {
        self.events.send(&Event::Changed(&ShownPath::new(place.as_bytes()), change));
    }
}

fn used_up(Exhausted(why): Exhausted) -> Failure {
    Failure::new(FailCode::Refused, why)
}

/// A server of the file service on a stream.
struct Serving<'a, G: Guard> {
    session: FileServer<DiskFiles<'a, G>>,
    working: Working,
    stream: BondedStream,
}

impl<G: Guard> Session for Serving<'_, G> {
    delegate! {
        to self.session {
            fn handle_end(&mut self) -> Result<(), SessionError>;
            fn cancel(&mut self, why: Abort);
            fn is_over(&self) -> bool;
            fn error(&self) -> Option<&SessionError>;
            fn handle_written(&mut self, count: usize);
        }
    }

    /// A thread of its own reads, since the client asks while it gets answers.
    fn sends(&self) -> bool {
        true
    }

    fn poll_write(&mut self) -> &[u8] {
        self.working.set(true);
        // The borrow of what is returned lasts longer than the work.
        self.session.poll_write();
        self.working.set(false);
        self.session.poll_write()
    }

    fn handle_received(&mut self, bytes: &[u8]) -> Result<usize, SessionError> {
        self.working.set(true);
        let handled = self.session.handle_received(bytes);
        self.working.set(false);
        handled.map(|()| bytes.len())
    }

    fn awaits_disk(&self) -> bool {
        false
    }

    /// Whether the work goes on, between looks at new requests. Nobody waits for the work of a lost connection.
    fn handle_events(&mut self) -> bool {
        self.session.has_work() && matches!(self.stream.ending(), Ok(None))
    }
}

impl Hosting<'_> {
    /// Serves the requests of a caller. A client that leaves without an end has its answers, so that is no failure.
    pub(crate) fn serve_files(&self, caller: &Caller, reach: Reach<'_>, guard: impl Guard) -> Hosted {
        let meter = Meter::start(self.environment.clock);
        let session = FileServer::answer(&caller.open, DiskFiles::new(reach, guard));
        let mut job = Serving { session, working: caller.working(), stream: caller.stream.clone() };
        let answered = caller.answer(job.poll_write());
        job.handle_written(answered);
        let (driven, measured) = self.drive(caller, &mut job, meter);
        caller.leave_place();
        let ServiceTotals { answered, failed, read, written } = job.session.totals();
        let direction = if written > 0 { Direction::Both } else { Direction::Sent };
        let mut end = Report { requests: Some(answered + failed), ..self.end(caller, direction) };
        measure::fill(&mut end, &measured.stats, measured.rtt);
        end.cpu_seconds = meter.cpu();
        end.seconds = meter.elapsed().as_secs_f64();
        (end.bytes, end.failed) = (read + written, Some(failed));
        end.verified = driven.is_ok();
        let result = match driven {
            Err(trouble) => Err(caller.error(self.environment, &trouble)),
            Ok(()) => Ok(()),
        };
        (end, result)
    }
}
