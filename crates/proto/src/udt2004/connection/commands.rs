//! What the application asks of a connection: write, read, finish, close.

use farhaul_units::Instant;

use super::{Connection, Phase};
use crate::error::ConnectionLost;
use crate::event::Event;
use crate::transport::{Read, StreamError};
use crate::udt::life::{Cause, Ending, Interest, Life};

impl Connection {
    pub(in crate::udt2004) fn write(&mut self, now: Instant, data: &[u8]) -> Result<usize, StreamError> {
        self.interest.hold();
        match (&mut self.phase, self.life) {
            (_, Life::Connecting) => Err(StreamError::NotConnected),
            (_, Life::Finishing) => Err(StreamError::Finished),
            (Phase::Established(established), Life::Open) => {
                let taken = established.write(now, data);
                // Several writers may share a connection: that this one got all it wanted wakes no other.
                self.writer_waits |= taken < data.len();
                Ok(taken)
            }
            _ => Err(StreamError::Lost(self.ending.map_or(ConnectionLost::ClosedLocally, |ending| ending.reason))),
        }
    }

    pub(in crate::udt2004) fn writable(&self) -> usize {
        match (&self.phase, self.life) {
            (Phase::Established(established), Life::Open) => {
                usize::try_from(established.sender.room()).unwrap_or(usize::MAX)
            }
            _ => 0,
        }
    }

    pub(in crate::udt2004) fn read(&mut self, now: Instant, out: &mut [u8]) -> Result<Read, StreamError> {
        self.interest.hold();
        if let Phase::Established(established) = &mut self.phase {
            let read = established.read(now, out);
            if read > 0 {
                return Ok(Read::Data(read));
            }
        }
        if out.is_empty() {
            return Ok(Read::Data(0));
        }
        match self.ending {
            None => {
                self.reader_waits = true;
                Ok(Read::Pending)
            }
            Some(Ending { complete: true, .. }) => Ok(Read::End),
            Some(Ending { reason, .. }) => Err(StreamError::Lost(reason)),
        }
    }

    /// The application took it.
    pub(in crate::udt2004) fn claim(&mut self) {
        self.interest.hold();
    }

    pub(in crate::udt2004) fn readable(&self) -> usize {
        match &self.phase {
            Phase::Established(established) => {
                usize::try_from(established.receiver.buffer.available()).unwrap_or(usize::MAX)
            }
            Phase::Calling(_) => 0,
        }
    }

    /// No more will be written.
    pub(in crate::udt2004) fn finish(&mut self, now: Instant) {
        self.interest.hold();
        let linger = self.linger;
        if self.move_life(Cause::Finish) {
            if let Phase::Established(established) = &mut self.phase {
                established.begin_linger(now, linger);
            }
            self.check_flushed(now);
        }
    }

    /// Ends the connection at once.
    pub(in crate::udt2004) fn close(&mut self, now: Instant) {
        self.interest.hold();
        let connecting = self.life == Life::Connecting;
        if self.move_life(Cause::Close) {
            self.ending = Some(Ending::early(ConnectionLost::ClosedLocally));
            if let Phase::Established(established) = &mut self.phase {
                established.farewell.begin(now);
            }
            if connecting || self.interest != Interest::Released {
                self.events.push(Event::Closed(self.id, ConnectionLost::ClosedLocally));
            }
            self.wake();
        }
    }

    /// The application has no further interest.
    pub(in crate::udt2004) fn release(&mut self, now: Instant) {
        self.interest = Interest::Released;
        self.close(now);
    }
}
