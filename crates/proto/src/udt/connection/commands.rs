//! Commands of the application: write, read, finish, close, abort.

use farhaul_units::Instant;

use super::{Connection, Phase};
use crate::config::Mode;
use crate::shell::farewell::Parting;
use crate::shell::life::Life;
use crate::transport::{Read, StreamError};
use crate::udt::established::Established;
use crate::udt::messages::{Message, MessageOptions};

impl Connection {
    pub(crate) fn write(&mut self, now: Instant, data: &[u8]) -> Result<usize, StreamError> {
        let established = self.writable_part(Mode::Stream)?;
        established.begin_work(now);
        let taken = established.sender.write(data);
        established.counts().bytes_written += taken as u64;
        if taken < data.len() {
            self.standing.wait_for_room();
        }
        Ok(taken)
    }

    pub(crate) fn writable(&self) -> usize {
        match (&self.phase, self.standing.life()) {
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
        } else {
            self.standing.wait_for_room();
        }
        Ok(taken)
    }

    fn writable_part(&mut self, mode: Mode) -> Result<&mut Established, StreamError> {
        self.standing.hold();
        if self.mode != mode {
            return Err(StreamError::WrongMode);
        }
        self.standing.may_write()?;
        match &mut self.phase {
            Phase::Established(established) => Ok(established),
            _ => Err(StreamError::NotConnected),
        }
    }

    pub(crate) fn read(&mut self, out: &mut [u8]) -> Result<Read, StreamError> {
        self.standing.hold();
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
        if out.is_empty() {
            return Ok(Read::Data(0));
        }
        self.standing.nothing_to_read()
    }

    pub(crate) fn recv_message(&mut self, out: &mut [u8]) -> Result<Message, StreamError> {
        self.standing.hold();
        if self.mode != Mode::Message {
            return Err(StreamError::WrongMode);
        }
        if let Phase::Established(established) = &mut self.phase
            && let Some(len) = established.receiver.buffer.read_message(out)
        {
            established.on_read(len as u64);
            return Ok(Message::Received { len: len.min(out.len()), truncated: len > out.len() });
        }
        Ok(match self.standing.nothing_to_read()? {
            Read::End => Message::End,
            _ => Message::Pending,
        })
    }

    /// The application took it.
    pub(crate) fn claim(&mut self) {
        self.standing.hold();
    }

    /// Bytes that a stream reader can have now.
    pub(crate) fn readable(&self) -> usize {
        match &self.phase {
            Phase::Established(established) if self.mode == Mode::Stream => {
                usize::try_from(established.receiver.buffer.available()).unwrap_or(usize::MAX)
            }
            _ => 0,
        }
    }

    /// Ends the writing side.
    pub(crate) fn finish(&mut self, now: Instant) {
        let linger = self.linger;
        if self.standing.finish() {
            if let Phase::Established(established) = &mut self.phase {
                established.begin_linger(now, linger);
            }
            self.check_flushed(now);
        }
    }

    /// Ends the connection at once. Only a peer that has all data may see the end of the stream.
    pub(crate) fn close(&mut self, now: Instant) {
        let delivered = matches!(&self.phase, Phase::Established(established) if established.sender.is_flushed());
        self.leave(now, if delivered { Parting::Closed } else { Parting::Aborted });
    }

    /// Ends the connection at once. The peer never sees the end of the stream.
    pub(crate) fn abort(&mut self, now: Instant) {
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
    pub(crate) fn release(&mut self, now: Instant) {
        self.standing.release();
        self.abort(now);
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
