//! Commands of the application: write, read, finish, close, abort, messages.

use bytes::Bytes;
use farhaul_units::Instant;

use super::{Connection, Phase};
use crate::config::Mode;
use crate::endpoint::closing::CloseKind;
use crate::endpoint::connection_state::ConnectionState;
use crate::endpoint::life::Life;
use crate::endpoint::protocol::Established;
use crate::transport::{Message, MessageOptions, Read, Readiness, StreamError};

impl Connection {
    pub(in crate::endpoint) fn write(&mut self, now: Instant, data: &[u8]) -> Result<usize, StreamError> {
        self.write_with(data.len(), |established| established.write(now, data))
    }

    pub(in crate::endpoint) fn write_block(&mut self, now: Instant, block: Bytes) -> Result<usize, StreamError> {
        self.write_with(block.len(), |established| established.write_block(now, block))
    }

    fn write_with(
        &mut self,
        bytes: usize,
        write: impl FnOnce(&mut dyn Established) -> usize,
    ) -> Result<usize, StreamError> {
        let (state, established) = self.parts_to_write(Mode::Stream)?;
        let taken = write(established);
        if taken < bytes {
            state.wait_for_room();
        }
        Ok(taken)
    }

    /// Its two parts, for a command that writes in this mode.
    fn parts_to_write(&mut self, mode: Mode) -> Result<(&mut ConnectionState, &mut dyn Established), StreamError> {
        self.state.hold();
        if self.name.mode != mode {
            return Err(StreamError::WrongMode);
        }
        if let Err(error) = self.state.may_write() {
            if error == StreamError::NotConnected {
                self.state.wait_for_room();
            }
            return Err(error);
        }
        match &mut self.phase {
            Phase::Established(established) => Ok((&mut self.state, &mut **established)),
            Phase::Opening(_) => Err(StreamError::NotConnected),
        }
    }

    pub(in crate::endpoint) fn writable(&self) -> usize {
        match (&self.phase, self.state.life()) {
            (Phase::Established(established), Life::Open) => usize::try_from(established.room()).unwrap_or(usize::MAX),
            _ => 0,
        }
    }

    pub(in crate::endpoint) fn read(&mut self, now: Instant, out: &mut [u8]) -> Result<Read, StreamError> {
        match self.read_with(|established| established.read(now, out))? {
            Read::Pending | Read::End if out.is_empty() => Ok(Read::Data(0)),
            read => Ok(read),
        }
    }

    pub(in crate::endpoint) fn read_block(&mut self, now: Instant, block: &mut Bytes) -> Result<Read, StreamError> {
        self.read_with(|established| {
            *block = established.read_block(now);
            block.len()
        })
    }

    fn read_with(&mut self, read: impl FnOnce(&mut dyn Established) -> usize) -> Result<Read, StreamError> {
        let (state, mut established) = self.parts_to_read(Mode::Stream)?;
        let read = established.as_deref_mut().map_or(0, read);
        if read > 0 {
            return Ok(Read::Data(read));
        }
        if established.is_some_and(|established| established.is_read_to_end()) {
            return Ok(Read::End);
        }
        state.nothing_to_read()
    }

    /// Its two parts, for a command that reads in this mode. The second is missing before it is established.
    fn parts_to_read(
        &mut self,
        mode: Mode,
    ) -> Result<(&mut ConnectionState, Option<&mut dyn Established>), StreamError> {
        self.state.hold();
        if self.name.mode != mode {
            return Err(StreamError::WrongMode);
        }
        let established: Option<&mut dyn Established> = match &mut self.phase {
            Phase::Established(established) => Some(&mut **established),
            Phase::Opening(_) => None,
        };
        Ok((&mut self.state, established))
    }

    /// Takes one message for sending. Returns false if there is no room now.
    pub(in crate::endpoint) fn send_message(
        &mut self,
        now: Instant,
        message: &[u8],
        options: MessageOptions,
    ) -> Result<bool, StreamError> {
        let (state, established) = self.parts_to_write(Mode::Message)?;
        let taken = established.write_message(now, message, options)?;
        if !taken {
            state.wait_for_room();
        }
        Ok(taken)
    }

    /// Copies the next message into `out`.
    pub(in crate::endpoint) fn recv_message(&mut self, out: &mut [u8]) -> Result<Message, StreamError> {
        let (state, established) = self.parts_to_read(Mode::Message)?;
        if let Some(len) = established.and_then(|established| established.read_message(out)) {
            return Ok(Message::Received { len: len.min(out.len()), truncated: len > out.len() });
        }
        Ok(match state.nothing_to_read()? {
            Read::End => Message::End,
            _ => Message::Pending,
        })
    }

    /// What the application can do now. Events follow for what it cannot do.
    pub(in crate::endpoint) fn readiness(&mut self) -> Readiness {
        let (connected, can_read, has_room) = match &mut self.phase {
            Phase::Established(established) => {
                let can_read = established.can_read() || established.is_read_to_end();
                (established.is_ready(), can_read, established.has_room_again())
            }
            Phase::Opening(_) => (false, false, false),
        };
        let readable = can_read || self.state.nothing_to_read() != Ok(Read::Pending);
        let writable = match self.state.may_write() {
            Ok(()) => has_room,
            Err(error) => error != StreamError::NotConnected,
        };
        if !writable {
            self.state.wait_for_room();
        }
        Readiness { connected, readable, writable, ended: self.state.has_ended() }
    }

    /// Appends packets with unreliable datagrams to `out`. Returns the length of a packet; `None` if the datagrams are lost.
    pub(in crate::endpoint) fn send_datagrams(
        &mut self,
        now: Instant,
        datagrams: (&[u8], usize),
        out: &mut Vec<u8>,
    ) -> Option<usize> {
        let established = self.phase.established_mut().filter(|_| !self.state.is_closed())?;
        established.send_datagrams(now, datagrams, out).map(|(_, size)| size)
    }

    /// The application took it.
    pub(in crate::endpoint) fn claim(&mut self) {
        self.state.hold();
    }

    /// Bytes that a stream reader can have now.
    pub(in crate::endpoint) fn readable(&self) -> usize {
        match self.established() {
            Some(established) if self.name.mode == Mode::Stream => {
                usize::try_from(established.readable()).unwrap_or(usize::MAX)
            }
            _ => 0,
        }
    }

    /// Whether each direction can end alone.
    pub(in crate::endpoint) fn has_half_close(&self) -> bool {
        self.established().is_some_and(Established::has_half_close)
    }

    /// Ends the writing side alone.
    pub(in crate::endpoint) fn finish_sending(&mut self, now: Instant) -> Result<(), StreamError> {
        self.state.hold();
        if self.name.mode != Mode::Stream {
            return Err(StreamError::WrongMode);
        }
        let Phase::Established(established) = &mut self.phase else { return Err(StreamError::NotConnected) };
        if !established.has_half_close() {
            return Err(StreamError::NoHalfClose);
        }
        self.state.finish_sending()?;
        established.finish_sending(now);
        self.check_flushed(now);
        Ok(())
    }

    /// Ends the writing side.
    pub(in crate::endpoint) fn finish(&mut self, now: Instant) {
        let linger = self.linger;
        if self.state.finish() {
            if let Some(established) = self.established_mut() {
                established.begin_linger(now, linger);
            }
            self.check_flushed(now);
        }
    }

    /// Ends the connection at once. Only a peer that has all data may see the end of the stream.
    pub(in crate::endpoint) fn close(&mut self, now: Instant) {
        self.begin_close(now, self.established().map_or(CloseKind::Aborted, Established::close_kind));
    }

    /// Ends the connection at once. The peer never sees the end of the stream.
    pub(in crate::endpoint) fn abort(&mut self, now: Instant) {
        self.begin_close(now, CloseKind::Aborted);
    }

    fn begin_close(&mut self, now: Instant, kind: CloseKind) {
        if self.state.close() {
            match &mut self.phase {
                Phase::Opening(opening) => opening.close(),
                Phase::Established(established) => established.begin_close(now, kind),
            }
            self.wake();
        }
    }

    /// The application releases the connection. One that has ended its writing side alone has said all, so it closes.
    pub(in crate::endpoint) fn release(&mut self, now: Instant) {
        self.state.release();
        if self.state.life() == Life::HalfClosed { self.close(now) } else { self.abort(now) }
    }
}
