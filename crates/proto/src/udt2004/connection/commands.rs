//! Commands of the application: write, read, finish, close, abort.

use farhaul_units::Instant;

use super::{Connection, Phase};
use crate::shell::farewell::Parting;
use crate::shell::life::Life;
use crate::transport::{Read, StreamError};

impl Connection {
    pub(in crate::udt2004) fn write(&mut self, now: Instant, data: &[u8]) -> Result<usize, StreamError> {
        self.standing.hold();
        self.standing.may_write()?;
        let Phase::Established(established) = &mut self.phase else { return Err(StreamError::NotConnected) };
        let taken = established.write(now, data);
        if taken < data.len() {
            self.standing.wait_for_room();
        }
        Ok(taken)
    }

    pub(in crate::udt2004) fn writable(&self) -> usize {
        match (&self.phase, self.standing.life()) {
            (Phase::Established(established), Life::Open) => {
                usize::try_from(established.sender.room()).unwrap_or(usize::MAX)
            }
            _ => 0,
        }
    }

    pub(in crate::udt2004) fn read(&mut self, now: Instant, out: &mut [u8]) -> Result<Read, StreamError> {
        self.standing.hold();
        if let Phase::Established(established) = &mut self.phase {
            let read = established.read(now, out);
            if read > 0 {
                return Ok(Read::Data(read));
            }
        }
        if out.is_empty() {
            return Ok(Read::Data(0));
        }
        self.standing.nothing_to_read()
    }

    /// The application took it.
    pub(in crate::udt2004) fn claim(&mut self) {
        self.standing.hold();
    }

    pub(in crate::udt2004) fn readable(&self) -> usize {
        match &self.phase {
            Phase::Established(established) => {
                usize::try_from(established.receiver.buffer.available()).unwrap_or(usize::MAX)
            }
            Phase::Calling(_) => 0,
        }
    }

    /// Ends the writing side.
    pub(in crate::udt2004) fn finish(&mut self, now: Instant) {
        let linger = self.linger;
        if self.standing.finish() {
            if let Phase::Established(established) = &mut self.phase {
                established.begin_linger(now, linger);
            }
            self.check_flushed(now);
        }
    }

    /// Ends the connection at once. The close packet tells the peer whether it has all data.
    pub(in crate::udt2004) fn close(&mut self, now: Instant) {
        self.leave(now, Parting::Closed);
    }

    /// Ends the connection at once. The peer never sees the end of the stream.
    pub(in crate::udt2004) fn abort(&mut self, now: Instant) {
        self.leave(now, Parting::Aborted);
    }

    fn leave(&mut self, now: Instant, parting: Parting) {
        if self.standing.close() {
            if let Phase::Established(established) = &mut self.phase {
                established.farewell.begin(now, parting);
            }
            self.wake();
        }
    }

    /// The application releases the connection.
    pub(in crate::udt2004) fn release(&mut self, now: Instant) {
        self.standing.release();
        self.abort(now);
    }
}
