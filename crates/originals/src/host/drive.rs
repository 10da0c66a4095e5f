//! The one host of all sessions: channel bytes first, datagrams next, then timers, the application's side, and the peer's
//! share.

use crate::session::{DatagramOutcome, OriginalSession, Placed};
use farhaul_units::Instant;

use super::line::Line;
use super::serve::IDLE;
use super::{Failure, Progress};

/// Receive calls and trains of one turn. The channel gets its turn in between.
const CALLS: usize = 16;

/// The application's side of a session: files, streams, and events.
pub(super) trait Application<S> {
    /// Moves bytes between the session and the application, and handles events. Returns whether the session's present
    /// task is done.
    fn work(&mut self, now: Instant, session: &mut S, line: &mut Line) -> Result<bool, Failure>;

    /// The session failed. Handles what came before that: files that were given, bytes in order of a stream. RBUDP and a
    /// sender of SABUL leave nothing of use.
    fn work_after_fault(&mut self, _now: Instant, _session: &mut S, _line: &mut Line) -> Result<(), Failure> {
        Ok(())
    }

    /// When [`work`](Self::work) is due although nothing arrived.
    fn deadline(&self, _session: &S) -> Option<Instant> {
        None
    }

    /// Since when a client has asked for nothing; `None` if it has, and if this side is the client.
    fn idle_since(&self) -> Option<Instant> {
        None
    }

    /// Counts arriving datagrams.
    fn progress(&self) -> Option<&Progress> {
        None
    }

    /// Stores a block of the file that is received.
    fn store(&mut self, _session: &mut S, _block: Placed<'_>) -> Result<(), Failure> {
        Ok(())
    }

    /// Reads a part of the file that is sent.
    fn read(&mut self, _offset: u64, _out: &mut [u8]) -> Result<(), Failure> {
        Ok(())
    }
}

/// A session at its line, and the application's side.
struct Drive<'a, S, A> {
    line: &'a mut Line,
    session: &'a mut S,
    application: &'a mut A,
}

/// Runs a session until its task is done and the peer was told. If it fails, what the dialogue still says goes out.
pub(super) fn drive<S, A>(line: &mut Line, session: &mut S, application: &mut A) -> Result<(), Failure>
where
    S: OriginalSession<Fault: Into<Failure>>,
    A: Application<S>,
{
    let mut drive = Drive { line, session, application };
    let result = drive.run();
    if result.is_err() {
        let now = drive.line.now();
        drive.send_channel(now);
    }
    result
}

impl<S: OriginalSession<Fault: Into<Failure>>, A: Application<S>> Drive<'_, S, A> {
    fn run(&mut self) -> Result<(), Failure> {
        let mut scratch = Vec::new();
        loop {
            self.line.check_stop()?;
            let now = self.line.now();
            let handled = self.handle_input(now);
            if handled.is_err() {
                self.application.work_after_fault(now, self.session, self.line)?;
            }
            let more = handled?;
            if self.idle_ends().is_some_and(|end| end <= now) {
                return Err(Failure::Idle(IDLE));
            }
            let is_done = self.application.work(now, self.session, self.line)?;
            self.line.show_idle(self.application.idle_since().is_some());
            self.send_channel(now);
            if is_done && !self.line.has_rest() {
                return Ok(());
            }
            let more = self.send_datagrams(now, &mut scratch)? || more;
            // The last datagrams of a blast bring a record about its end.
            self.send_channel(now);
            let deadlines = [self.session.deadline(), self.application.deadline(self.session), self.idle_ends()];
            let deadline = deadlines.into_iter().flatten().min();
            self.line.wait(deadline, self.session.receives(), more)?;
        }
    }

    /// Hands the session everything that arrived, and fires its timers. Returns whether more datagrams may wait.
    fn handle_input(&mut self, now: Instant) -> Result<bool, Failure> {
        let ended = self.line.receive(|bytes| self.session.handle_channel(now, bytes).map_err(Into::into))?;
        let more = self.session.receives() && self.receive_datagrams(now)?;
        if let Some(end) = ended {
            self.session.channel_ended(now, end).map_err(Into::into)?;
        }
        self.session.handle_timeout(now).map_err(Into::into)?;
        Ok(more)
    }

    fn idle_ends(&self) -> Option<Instant> {
        self.application.idle_since().map(|since| since + IDLE)
    }

    /// Sends what the session has for the channel.
    fn send_channel(&mut self, now: Instant) {
        self.session.poll_channel(now, &mut self.line.out);
        self.line.flush();
    }

    /// Returns whether more may wait.
    fn receive_datagrams(&mut self, now: Instant) -> Result<bool, Failure> {
        let peer = self.line.peer().ip();
        let (session, application) = (&mut *self.session, &mut *self.application);
        for _ in 0..CALLS {
            let more = self.line.receive_datagrams(|from, datagram| {
                if !session.is_from_peer(peer, from) {
                    return Ok(());
                }
                let outcome = session.handle_datagram(now, from.port(), datagram);
                if let Some(progress) = application.progress()
                    && !matches!(outcome, DatagramOutcome::Foreign)
                {
                    progress.add_received();
                }
                if let DatagramOutcome::Block(block) = outcome { application.store(session, block) } else { Ok(()) }
            })?;
            if !more {
                return Ok(false);
            }
            session.end_batch(now);
        }
        Ok(true)
    }

    /// Returns whether more may be due.
    fn send_datagrams(&mut self, now: Instant, scratch: &mut Vec<u8>) -> Result<bool, Failure> {
        // Never elsewhere than to the peer of the channel (attack C1).
        let Some(port) = self.session.peer_port() else { return Ok(false) };
        let mut to = self.line.peer();
        to.set_port(port);
        if !self.line.send_blocked(to)? {
            return Ok(false);
        }
        for _ in 0..CALLS {
            let content = |offset, out: &mut [u8]| self.application.read(offset, out);
            let Some((segment, train)) = self.session.poll_datagrams(now, content, scratch)? else {
                return Ok(false);
            };
            if !self.line.send_datagrams(to, segment, train)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
