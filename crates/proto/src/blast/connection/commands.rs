//! Commands of the application: write, read, finish, close, abort.

use farhaul_units::Instant;

use super::{BROKEN, Connection, Last, Phase};
use crate::blast::engine::Protocol;
use crate::shell::life::Life;
use crate::transport::{Read, StreamError};

impl<P: Protocol> Connection<P> {
    pub(in crate::blast) fn write(&mut self, now: Instant, data: &[u8]) -> Result<usize, StreamError> {
        self.standing.hold();
        self.standing.may_write()?;
        let Phase::Established(established) = &mut self.phase else { return Err(StreamError::NotConnected) };
        let taken = established.write(now, data);
        if taken < data.len() {
            self.standing.wait_for_room();
        }
        Ok(taken)
    }

    pub(in crate::blast) fn writable(&self) -> usize {
        match (&self.phase, self.standing.life()) {
            (Phase::Established(established), Life::Open) => established.outgoing.room(),
            _ => 0,
        }
    }

    pub(in crate::blast) fn read(&mut self, out: &mut [u8]) -> Result<Read, StreamError> {
        self.standing.hold();
        if let Phase::Established(established) = &mut self.phase {
            let read = established.incoming.read(out);
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
    pub(in crate::blast) fn claim(&mut self) {
        self.standing.hold();
    }

    pub(in crate::blast) fn readable(&self) -> usize {
        match &self.phase {
            Phase::Established(established) => usize::try_from(established.incoming.available()).unwrap_or(usize::MAX),
            Phase::Opening { .. } => 0,
        }
    }

    /// Ends the writing side.
    pub(in crate::blast) fn finish(&mut self, now: Instant) {
        let linger = self.linger;
        if self.standing.finish() {
            if let Phase::Established(established) = &mut self.phase {
                established.begin_linger(now, linger);
            }
            self.check_flushed(now);
        }
    }

    /// Ends the connection at once. Only a peer that has all data may see the end of the stream.
    pub(in crate::blast) fn close(&mut self, now: Instant) {
        let delivered = matches!(&self.phase, Phase::Established(established) if established.outgoing.is_delivered());
        self.depart(now, if delivered { Last::End } else { Last::Abort(BROKEN) });
    }

    /// Ends the connection at once. The peer never sees the end of the stream.
    pub(in crate::blast) fn abort(&mut self, now: Instant) {
        self.depart(now, Last::Abort(BROKEN));
    }

    fn depart(&mut self, now: Instant, last: Last) {
        if self.standing.close() {
            if self.standing.is_over() {
                self.line.reset();
            } else {
                self.leave(now, last);
            }
            self.wake();
        }
    }

    /// The application releases the connection.
    pub(in crate::blast) fn release(&mut self, now: Instant) {
        self.standing.release();
        self.abort(now);
    }
}
