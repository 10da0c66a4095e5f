//! send, recv, sendmsg and recvmsg.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use farhaul::{Error, MessageSocket, Readiness, SendOptions, Stream};

use crate::clock;
use crate::failure::{Code, Result};
use crate::options::Options;
use crate::socket::{Handle, Kind, Link, Socket, SocketState};

/// How long a call waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// As the options of the socket say.
    Options,
    /// Until there is a result: calls for files.
    Endless,
}

/// The wait of one call.
#[derive(Clone, Copy, Debug)]
enum Wait {
    Never,
    Until(Option<Instant>),
}

impl Patience {
    fn of(self, options: &Options, blocks: impl Fn(&Options) -> bool, timeout: impl Fn(&Options) -> i32) -> Wait {
        match self {
            Self::Endless => Wait::Until(None),
            Self::Options if !blocks(options) => Wait::Never,
            Self::Options => Wait::Until(clock::deadline(i64::from(timeout(options)))),
        }
    }

    fn to_send(self, options: &Options) -> Wait {
        self.of(options, |options| options.send_blocks, |options| options.send_timeout)
    }

    fn to_recv(self, options: &Options) -> Wait {
        self.of(options, |options| options.recv_blocks, |options| options.recv_timeout)
    }
}

impl Socket {
    /// Takes as much of `data` as the send buffer of libudt would hold. The one here holds what leaves soon, so a socket that
    /// blocks waits until it has taken the rest. Many programs do not look at the result.
    ///
    /// # Errors
    /// Nothing was taken: the socket is for messages, or not connected. The connection is over. There is no room. The peer has
    /// signalled an error, which is told once.
    pub(crate) fn send(&self, data: &[u8], patience: Patience) -> Result<usize> {
        let link = self.link_of(Kind::Stream, Code::StreamCallOnMessages)?;
        let Handle::Stream(stream) = &link.handle else { return Err(Code::StreamCallOnMessages.into()) };
        if data.is_empty() {
            return Ok(0);
        }
        let options = self.options();
        let (wait, most) = (patience.to_send(&options), options.send_room().min(data.len()));
        drop(options);
        let mut taken = 0;
        loop {
            let result = write(stream, &data[taken..]).and_then(|more| {
                taken += more;
                if taken < most { self.wait_for_room(&link, wait) } else { Ok(()) }
            });
            match result {
                Ok(()) if taken < most => {}
                Err(failure) if taken == 0 => {
                    // The signal is the reason, if one came before the end.
                    self.hear_complaint(&link)?;
                    return Err(failure);
                }
                _ => return Ok(taken),
            }
        }
    }

    /// Moves what has arrived into `out`. Waits only if nothing has.
    ///
    /// # Errors
    /// The socket is for messages, or not connected. The connection is over and everything was read. Nothing has arrived.
    pub(crate) fn recv(&self, out: &mut [u8], patience: Patience) -> Result<usize> {
        let link = self.link_of(Kind::Stream, Code::StreamCallOnMessages)?;
        let Handle::Stream(stream) = &link.handle else { return Err(Code::StreamCallOnMessages.into()) };
        if out.is_empty() {
            return Ok(0);
        }
        let wait = patience.to_recv(&self.options());
        loop {
            match read(stream, out)? {
                0 => self.wait_for_data(&link, wait)?,
                received => return Ok(received),
            }
        }
    }

    /// Sends a message whole. It is dropped if it is not delivered within `ttl` milliseconds, unless that is negative.
    ///
    /// # Errors
    /// The socket is for streams, or not connected. The connection is over. The message is longer than the send buffer.
    /// There is no room.
    pub(crate) fn send_message(&self, message: &[u8], ttl: i32, in_order: bool) -> Result<usize> {
        let link = self.link_of(Kind::Messages, Code::MessageCallOnStream)?;
        let Handle::Messages(messages) = &link.handle else { return Err(Code::MessageCallOnStream.into()) };
        if message.is_empty() {
            return Ok(0);
        }
        let options = self.options();
        if message.len() > options.send_room() {
            return Err(Code::MessageTooLong.into());
        }
        let wait = Patience::Options.to_send(&options);
        drop(options);
        let how = send_options(ttl, in_order);
        loop {
            if messages.try_send(message, how)? {
                return Ok(message.len());
            }
            if let Err(failure) = self.wait_for_room(&link, wait) {
                self.hear_complaint(&link)?;
                return Err(failure);
            }
        }
    }

    /// Receives the next message. What `out` does not hold of it is lost.
    ///
    /// # Errors
    /// The socket is for streams, or not connected. The connection is over and everything was received. None is complete.
    pub(crate) fn recv_message(&self, out: &mut [u8]) -> Result<usize> {
        let link = self.link_of(Kind::Messages, Code::MessageCallOnStream)?;
        let Handle::Messages(messages) = &link.handle else { return Err(Code::MessageCallOnStream.into()) };
        if out.is_empty() {
            return Ok(0);
        }
        let wait = Patience::Options.to_recv(&self.options());
        loop {
            match receive(messages, out)? {
                Some(received) => return Ok(received),
                None => self.wait_for_data(&link, wait)?,
            }
        }
    }

    /// Tells the peer that this side cannot store its data.
    ///
    /// # Errors
    /// The socket is not connected.
    pub(crate) fn signal_error(&self, code: u32) -> Result<()> {
        self.link()?.connection().signal_error(code);
        Ok(())
    }

    /// The connection for a call of this kind.
    fn link_of(&self, kind: Kind, otherwise: Code) -> Result<Arc<Link>> {
        if self.kind != kind {
            return Err(otherwise.into());
        }
        let link = self.link()?;
        if !self.is_set_up() {
            match self.state() {
                SocketState::Connected | SocketState::Broken => {}
                _ => return Err(Code::NotConnected.into()),
            }
        }
        Ok(link)
    }

    /// An error signal that the program has not heard of ends the wait as well.
    fn wait_for_room(&self, link: &Link, wait: Wait) -> Result<()> {
        let Wait::Until(deadline) = wait else { return Err(Code::NoRoomNow.into()) };
        let complains = || complaints(link) > self.complaints_told.load(Ordering::Relaxed);
        self.block(link, deadline, |now| now.writable || complains())?;
        if complains() { Err(Code::PeerSignalled.into()) } else { Ok(()) }
    }

    fn wait_for_data(&self, link: &Link, wait: Wait) -> Result<()> {
        let Wait::Until(deadline) = wait else { return Err(Code::NothingNow.into()) };
        self.block(link, deadline, |now| now.readable)
    }

    /// Blocks until `is_ready`, or another thread closes the socket.
    fn block(&self, link: &Link, deadline: Option<Instant>, is_ready: impl Fn(Readiness) -> bool) -> Result<()> {
        let watch = &mut link.connection().watch();
        self.blocked.until(watch, deadline, is_ready, || self.is_closed()).map(drop)
    }

    /// Tells the program once that the peer has signalled an error.
    fn hear_complaint(&self, link: &Link) -> Result<()> {
        let heard = complaints(link);
        if heard > self.complaints_told.swap(heard, Ordering::AcqRel) {
            return Err(Code::PeerSignalled.into());
        }
        Ok(())
    }
}

/// Error signals that the peer has sent.
fn complaints(link: &Link) -> u64 {
    link.connection().stats().map_or(0, |stats| stats.totals.error_signals_received)
}

/// Takes as much of `data` as fits: zero bytes if nothing does.
fn write(stream: &Stream, data: &[u8]) -> Result<usize> {
    let mut taken = 0;
    while taken < data.len() {
        match stream.try_write(&data[taken..]) {
            Ok(Some(more)) => taken += more,
            Ok(None) => break,
            Err(_) if taken > 0 => break,
            Err(error) => return Err(over(error)),
        }
    }
    Ok(taken)
}

/// Moves everything that has arrived: zero bytes if nothing has.
fn read(stream: &Stream, out: &mut [u8]) -> Result<usize> {
    let mut received = 0;
    while received < out.len() {
        match stream.try_read(&mut out[received..]) {
            Ok(Some(0)) if received == 0 => return Err(Code::ConnectionLost.into()),
            Ok(Some(0) | None) => break,
            Ok(Some(more)) => received += more,
            Err(_) if received > 0 => break,
            Err(error) => return Err(over(error)),
        }
    }
    Ok(received)
}

/// The next message, if one is complete.
fn receive(messages: &MessageSocket, out: &mut [u8]) -> Result<Option<usize>> {
    match messages.try_recv(out) {
        Ok(Some(Some(received))) => Ok(Some(received.len)),
        Ok(Some(None)) => Err(Code::ConnectionLost.into()),
        Ok(None) => Ok(None),
        Err(error) => Err(over(error)),
    }
}

/// Whatever ended an established connection, libudt has one code for it.
fn over(error: Error) -> crate::failure::Failure {
    match error {
        Error::Lost(_) => Code::ConnectionLost.into(),
        other => other.into(),
    }
}

fn send_options(ttl: i32, in_order: bool) -> SendOptions {
    let mut options = SendOptions::default();
    options.time_to_live = u64::try_from(ttl).ok().map(Duration::from_millis);
    options.in_order = in_order;
    options
}
