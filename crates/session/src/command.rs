//! A command on the accepting side: its standard streams, and its end.
//!
//! ```text
//! connecting side                                        accepting side
//! OPEN {version}                                     →
//! DATA* (stdin)                                      →
//!                                                    ←   ACCEPT, DATA* (stdout), STDERR*
//! STREAM_END stdin                                   →   (each stream ends by itself, in any order)
//!                                                    ←   STREAM_END stdout, STREAM_END stderr
//!                                                    ←   EXIT, once both have ended
//! ```
//!
//! STREAM_CLOSED says that nobody reads a stream any more: the command has closed its stdin, or the reader of its output has left.
//! Its writer stops, and answers with STREAM_END.
//!
//! The transport alone holds back a side that writes faster than the other one reads. Frames are passed on as they come, so a side
//! needs no more memory than one frame of STDERR.
//!
//! The two directions are independent, and so are their types here: a [`CommandReader`] checks what the peer may say now. A writer
//! makes its frames by [`CommandFrame`] and [`StandardStream::header`].

#[cfg(test)]
mod tests;

use crate::error::{SessionError, Violation};
use crate::field::{Fields, Malformed, numbered};
use crate::frame_kind::FrameKind;
use crate::framing::{Decoded, Decoder, HEADER_LEN, decode_whole, header, put_frame};
use crate::handshake::{Accept, Open};
use crate::refusal::received_abort;
use crate::request::{CommandRequest, Request};

/// The version of commands in this crate. An accepting side refuses others.
pub const COMMAND_VERSION: u8 = 1;
/// Bytes in front of the bytes of a stream.
pub const STREAM_HEADER: usize = HEADER_LEN;
/// The kinds of an EXIT.
const CODE: u8 = 0;
const SIGNAL: u8 = 1;

/// One of the standard streams of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StandardStream {
    /// To the command.
    Input,
    /// From the command.
    Output,
    /// From the command.
    Error,
}

/// How a command has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CommandExit {
    /// By itself, with this code.
    Code(u8),
    /// By this signal.
    Signal(u8),
}

/// What the peer says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandEvent<'a> {
    /// The accepting side runs the command. Reported only on the connecting side.
    Accepted,
    /// Bytes of a stream, never empty.
    Bytes(StandardStream, &'a [u8]),
    /// The stream has ended.
    Ended(StandardStream),
    /// Nobody reads the stream any more.
    Closed(StandardStream),
    /// The command has ended. Nothing follows.
    Exited(CommandExit),
}

/// A frame that is not bytes of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandFrame {
    /// The opening of the connecting side.
    Open,
    /// The answer of the accepting side.
    Accept,
    /// This side's stream has ended.
    Ended(StandardStream),
    /// This side reads the stream no more.
    Closed(StandardStream),
    /// The command has ended.
    Exited(CommandExit),
}

/// Reads one direction, and checks what the peer may say now.
#[derive(Debug)]
pub struct CommandReader {
    decoder: Decoder,
    rules: Rules,
}

#[derive(Debug)]
struct Rules {
    /// Where the peer is.
    peer: Peer,
    awaits_accept: bool,
    /// The peer's streams that have ended.
    ended: [bool; 3],
    /// This side's streams that the peer has closed.
    closed: [bool; 3],
    has_exited: bool,
}

/// The role of the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Peer {
    Connecting,
    Accepting,
}

impl CommandReader {
    /// Of the connecting side, which has sent its opening.
    pub fn connecting() -> Self {
        Self::of(Peer::Accepting)
    }

    /// Of the accepting side. The driver has checked the request.
    pub fn accepting() -> Self {
        Self::of(Peer::Connecting)
    }

    fn of(peer: Peer) -> Self {
        let awaits_accept = peer == Peer::Accepting;
        let rules = Rules { peer, awaits_accept, ended: [false; 3], closed: [false; 3], has_exited: false };
        Self { decoder: Decoder::default(), rules }
    }

    /// The next event in `input`, which is advanced past it. `None` if all input is used up.
    ///
    /// # Errors
    /// The peer violated the protocol, or gave up. The rest of the stream is unreadable.
    pub fn next<'a, 'b: 'a>(&'a mut self, input: &mut &'b [u8]) -> Result<Option<CommandEvent<'a>>, SessionError> {
        match self.decoder.next(input) {
            Ok(None) => Ok(None),
            Ok(Some(Decoded::Data(bytes))) => self.rules.on_data(bytes).map(Some),
            Ok(Some(Decoded::Frame(kind, body))) => self.rules.on_frame(kind, body).map(Some),
            Err(_) if self.rules.awaits_accept => Err(SessionError::NotFarhaul),
            Err(violation) => Err(violation.into()),
        }
    }

    /// The peer's direction has ended.
    ///
    /// # Errors
    /// The connecting side has not heard how the command ended. The accepting side always has an error: nobody waits for the
    /// command any more.
    pub const fn handle_end(&self) -> Result<(), SessionError> {
        if self.rules.has_exited { Ok(()) } else { Err(SessionError::PeerLeft) }
    }
}

impl Rules {
    fn on_data<'a>(&self, bytes: &'a [u8]) -> Result<CommandEvent<'a>, SessionError> {
        let stream = match self.peer {
            Peer::Connecting => StandardStream::Input,
            Peer::Accepting => StandardStream::Output,
        };
        self.check_open(stream, FrameKind::Data)?;
        Ok(CommandEvent::Bytes(stream, bytes))
    }

    fn on_frame<'a>(&mut self, kind: FrameKind, body: &'a [u8]) -> Result<CommandEvent<'a>, SessionError> {
        let from_command = self.peer == Peer::Accepting;
        if self.awaits_accept {
            Accept::awaited(kind, body)?;
            self.awaits_accept = false;
            return Ok(CommandEvent::Accepted);
        }
        match kind {
            FrameKind::Abort => Err(received_abort(body)),
            FrameKind::Stderr if from_command => {
                self.check_open(StandardStream::Error, kind)?;
                match body {
                    // An empty frame makes no progress, so a peer could send it endlessly.
                    [] => Err(Malformed::Short.in_frame(kind).into()),
                    _ => Ok(CommandEvent::Bytes(StandardStream::Error, body)),
                }
            }
            FrameKind::StreamEnd => {
                let stream = decode_whole(kind, body, StandardStream::decode)?;
                self.check_open(stream, kind)?;
                self.ended[stream.index()] = true;
                Ok(CommandEvent::Ended(stream))
            }
            FrameKind::StreamClosed => {
                let stream = decode_whole(kind, body, StandardStream::decode)?;
                if self.is_peers(stream) || self.has_exited {
                    return Err(Violation::OutOfPlace(kind).into());
                }
                match std::mem::replace(&mut self.closed[stream.index()], true) {
                    true => Err(Violation::OutOfPlace(kind).into()),
                    false => Ok(CommandEvent::Closed(stream)),
                }
            }
            FrameKind::Exit if from_command && !self.has_exited => {
                let [_, output, error] = self.ended;
                if !(output && error) {
                    return Err(Violation::OutOfPlace(kind).into());
                }
                let exit = decode_whole(kind, body, CommandExit::decode)?;
                self.has_exited = true;
                Ok(CommandEvent::Exited(exit))
            }
            _ => Err(Violation::OutOfPlace(kind).into()),
        }
    }

    /// Whether the peer writes this stream.
    fn is_peers(&self, stream: StandardStream) -> bool {
        (stream == StandardStream::Input) == (self.peer == Peer::Connecting)
    }

    /// Checks that the peer may write to this stream.
    fn check_open(&self, stream: StandardStream, kind: FrameKind) -> Result<(), SessionError> {
        if self.awaits_accept {
            return Err(SessionError::NotFarhaul);
        }
        match self.is_peers(stream) && !self.ended[stream.index()] {
            true => Ok(()),
            false => Err(Violation::OutOfPlace(kind).into()),
        }
    }
}

impl StandardStream {
    const fn index(self) -> usize {
        self as usize
    }

    /// The header of a frame with so many bytes of this stream: at least one, and at most [`most`](Self::most).
    ///
    /// # Panics
    /// The number is out of this range, which is a mistake of the caller.
    pub fn header(self, bytes: usize) -> [u8; STREAM_HEADER] {
        assert!(bytes > 0, "an empty frame is refused");
        header(self.kind(), bytes)
    }

    /// Most bytes of this stream in one frame.
    pub const fn most(self) -> usize {
        self.kind().limit()
    }

    const fn kind(self) -> FrameKind {
        match self {
            Self::Input | Self::Output => FrameKind::Data,
            Self::Error => FrameKind::Stderr,
        }
    }

    fn decode(fields: &mut Fields<'_>) -> Result<Self, Malformed> {
        numbered(&[Self::Input, Self::Output, Self::Error], fields.u8()?, "stream")
    }
}

impl CommandExit {
    fn encode(self) -> [u8; 2] {
        match self {
            Self::Code(code) => [CODE, code],
            Self::Signal(signal) => [SIGNAL, signal],
        }
    }

    fn decode(fields: &mut Fields<'_>) -> Result<Self, Malformed> {
        match (fields.u8()?, fields.u8()?) {
            (CODE, code) => Ok(Self::Code(code)),
            (SIGNAL, signal @ 1..=127) => Ok(Self::Signal(signal)),
            _ => Err(Malformed::Value("exit")),
        }
    }
}

impl CommandFrame {
    /// The frame as it is sent.
    pub fn to_bytes(self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut put = |kind, body: &[u8]| put_frame(&mut out, kind, |out| out.extend_from_slice(body));
        match self {
            Self::Ended(stream) => put(FrameKind::StreamEnd, &[stream as u8]),
            Self::Closed(stream) => put(FrameKind::StreamClosed, &[stream as u8]),
            Self::Exited(exit) => put(FrameKind::Exit, &exit.encode()),
            Self::Open => Open::new(Request::Command(CommandRequest { version: COMMAND_VERSION }), 0).put(&mut out),
            Self::Accept => Accept::new(0).put(&mut out),
        }
        out
    }
}
