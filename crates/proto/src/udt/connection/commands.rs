//! What the application asks of a connection: write, read, finish, close.

use farhaul_units::Instant;

use super::{Connection, Phase};
use crate::config::Mode;
use crate::error::ConnectionLost;
use crate::event::Event;
use crate::transport::{Read, StreamError};
use crate::udt::established::Established;
use crate::udt::life::{Cause, Ending, Interest, Life};
use crate::udt::messages::{Message, MessageOptions};

impl Connection {
    pub(crate) fn write(&mut self, now: Instant, data: &[u8]) -> Result<usize, StreamError> {
        let established = self.writable_part(Mode::Stream)?;
        established.begin_work(now);
        let taken = established.sender.write(data);
        established.counts().bytes_written += taken as u64;
        // Several writers may share a connection: that this one got all it wanted wakes no other.
        self.writer_waits |= taken < data.len();
        Ok(taken)
    }

    pub(crate) fn writable(&self) -> usize {
        match (&self.phase, self.life) {
            (Phase::Established(established), Life::Open) => {
                usize::try_from(established.sender.room()).unwrap_or(usize::MAX)
            }
            _ => 0,
        }
    }

    pub(crate) fn send_message(
        &mut self,
        now: Instant,
        message: &[u8],
        options: MessageOptions,
    ) -> Result<bool, StreamError> {
        let established = self.writable_part(Mode::Message)?;
        established.begin_work(now);
        let longest = established.longest_message();
        if message.len() as u64 > longest {
            return Err(StreamError::MessageTooLong(longest));
        }
        let expires = options.ttl.map(|ttl| now + ttl);
        let taken = established.sender.write_message(message, options.in_order, expires);
        if taken {
            established.counts().bytes_written += message.len() as u64;
        }
        self.writer_waits |= !taken;
        Ok(taken)
    }

    fn writable_part(&mut self, mode: Mode) -> Result<&mut Established, StreamError> {
        self.interest.hold();
        if self.mode != mode {
            return Err(StreamError::WrongMode);
        }
        match (&mut self.phase, self.life) {
            (_, Life::Connecting) => Err(StreamError::NotConnected),
            (_, Life::Finishing) => Err(StreamError::Finished),
            (Phase::Established(established), Life::Open) => Ok(established),
            _ => Err(StreamError::Lost(self.ending.map_or(ConnectionLost::ClosedLocally, |ending| ending.reason))),
        }
    }

    pub(crate) fn read(&mut self, out: &mut [u8]) -> Result<Read, StreamError> {
        self.interest.hold();
        if self.mode != Mode::Stream {
            return Err(StreamError::WrongMode);
        }
        if let Phase::Established(established) = &mut self.phase {
            let read = established.receiver.buffer.read(out);
            if read > 0 {
                established.on_read(read as u64);
                return Ok(Read::Data(read));
            }
        }
        self.nothing_to_read(out.is_empty())
    }

    pub(crate) fn recv_message(&mut self, out: &mut [u8]) -> Result<Message, StreamError> {
        self.interest.hold();
        if self.mode != Mode::Message {
            return Err(StreamError::WrongMode);
        }
        if let Phase::Established(established) = &mut self.phase
            && let Some(len) = established.receiver.buffer.read_message(out)
        {
            established.on_read(len as u64);
            return Ok(Message::Received { len: len.min(out.len()), truncated: len > out.len() });
        }
        Ok(match self.nothing_to_read(false)? {
            Read::End => Message::End,
            _ => Message::Pending,
        })
    }

    fn nothing_to_read(&mut self, asked_for_nothing: bool) -> Result<Read, StreamError> {
        if asked_for_nothing {
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
    pub(crate) fn claim(&mut self) {
        self.interest.hold();
    }

    /// Bytes that a stream has to give.
    pub(crate) fn readable(&self) -> usize {
        match &self.phase {
            Phase::Established(established) if self.mode == Mode::Stream => {
                usize::try_from(established.receiver.buffer.available()).unwrap_or(usize::MAX)
            }
            _ => 0,
        }
    }

    /// No more will be written.
    pub(crate) fn finish(&mut self, now: Instant) {
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
    pub(crate) fn close(&mut self, now: Instant) {
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
    pub(crate) fn release(&mut self, now: Instant) {
        self.interest = Interest::Released;
        self.close(now);
    }

    pub(crate) fn signal_error(&mut self, code: u32) {
        if let Phase::Established(established) = &mut self.phase {
            established.signal_error(code);
        }
    }

    pub(crate) fn send_custom(&mut self, kind: u16, body: &[u8]) {
        if let Phase::Established(established) = &mut self.phase {
            established.send_custom(kind, body);
        }
    }
}
