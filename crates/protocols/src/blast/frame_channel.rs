//! This side's end of a channel, from the hello to the last frame.

use farhaul_units::Instant;
use farhaul_wire::blast::Frame;

use super::frames::Unread;
use super::path_validation::PATIENCE;
use farhaul_proto::channel::ChannelEnd;
use farhaul_proto::endpoint::closing::{CloseKind, LONGEST_CLOSE};
use farhaul_proto::endpoint::control_channel::{ControlChannel, Request};
use farhaul_proto::error::ConnectionLost;

/// Codes of an abort frame: data is missing, or no datagram gets through.
const BROKEN: u32 = 1;
const BLOCKED: u32 = 2;

/// An end of a channel with what waits to be read and to be sent.
#[derive(Debug)]
pub(super) struct FrameChannel {
    line: ControlChannel,
    pub(super) unread: Unread,
    /// The hello, until it leaves.
    hello: Vec<u8>,
    last: Last,
}

/// The last frame of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Last {
    /// This side has not left.
    None,
    /// It closes, and gives up telling the peer at `by`. The frame is missing once it was sent.
    Leaving { frame: Option<Frame<'static>>, by: Instant },
}

impl FrameChannel {
    /// An end that begins with `hello`.
    pub(super) fn new(line: ControlChannel, hello: Vec<u8>) -> Self {
        Self { line, unread: Unread::default(), hello, last: Last::None }
    }

    /// Stands in for an end that another phase holds.
    pub(super) fn gone() -> Self {
        let mut line = ControlChannel::wanted();
        line.reset();
        Self::new(line, Vec::new())
    }

    // ---- events ----

    /// The host has opened it.
    pub(super) fn on_opened(&mut self) {
        self.line.on_opened();
    }

    /// The host has handed over all bytes.
    pub(super) fn on_drained(&mut self) {
        self.line.on_drained();
        if let Last::Leaving { frame: None, .. } = self.last {
            self.line.finish();
        }
    }

    /// The channel ended.
    pub(super) fn on_ended(&mut self, end: ChannelEnd) {
        self.line.on_ended(end == ChannelEnd::Finished);
    }

    // ---- ends ----

    /// This side closes, and the peer hears how.
    pub(super) fn leave(&mut self, now: Instant, kind: CloseKind) {
        self.tell(now, if kind == CloseKind::Closed { Frame::End } else { Frame::Abort(BROKEN) });
    }

    /// The connection is over for a fault that this side found. The peer is told if the channel is open.
    pub(super) fn fail(&mut self, now: Instant, reason: ConnectionLost) {
        if self.line.is_open() {
            let blocked = matches!(reason, ConnectionLost::UdpBlocked(_));
            self.tell(now, Frame::Abort(if blocked { BLOCKED } else { BROKEN }));
        } else {
            self.line.reset();
        }
    }

    fn tell(&mut self, now: Instant, frame: Frame<'static>) {
        self.last = Last::Leaving { frame: Some(frame), by: now + LONGEST_CLOSE };
    }

    /// Ends it in order, after everything sent.
    pub(super) fn finish(&mut self) {
        self.line.finish();
    }

    /// Ends it at once.
    pub(super) fn reset(&mut self) {
        self.line.reset();
    }

    /// Ends it at once, if the peer could not be told in time.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if self.leave_by().is_some_and(|by| now >= by) {
            self.line.reset();
        }
    }

    // ---- output ----

    /// The request to the host. `fill` appends frames if the channel takes some.
    pub(super) fn poll(&mut self, fill: impl FnOnce(&mut Vec<u8>)) -> Option<Request> {
        let Self { line, hello, last, .. } = self;
        line.poll(|out| {
            out.extend(std::mem::take(hello));
            fill(out);
            if let Last::Leaving { frame, .. } = last
                && let Some(frame) = frame.take()
            {
                frame.encode(out);
            }
        })
    }

    /// The bytes of the last [`Request::Send`].
    pub(super) fn bytes(&self) -> &[u8] {
        self.line.bytes()
    }

    // ---- facts ----

    /// Whether the host has it open.
    pub(super) const fn is_open(&self) -> bool {
        self.line.is_open()
    }

    /// Whether it takes bytes now.
    pub(super) const fn is_ready(&self) -> bool {
        self.line.is_ready()
    }

    /// Whether the host has forgotten it.
    pub(super) const fn is_gone(&self) -> bool {
        self.line.is_gone()
    }

    /// When to give up telling the peer; `None` if this side has not left.
    pub(super) const fn leave_by(&self) -> Option<Instant> {
        match self.last {
            Last::None => None,
            Last::Leaving { by, .. } => Some(by),
        }
    }
}

/// The reason in an abort frame of the peer.
pub(super) const fn reason_of_abort(code: u32) -> ConnectionLost {
    match code {
        BLOCKED => ConnectionLost::UdpBlocked(PATIENCE),
        _ => ConnectionLost::Aborted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Instant = Instant::from_nanos(1_000_000_000);

    fn sent(channel: &mut FrameChannel, frames: &[u8]) -> Vec<u8> {
        assert_eq!(channel.poll(|out| out.extend_from_slice(frames)), Some(Request::Send));
        channel.bytes().to_vec()
    }

    #[test]
    fn the_hello_is_first_and_the_last_frame_is_last() {
        let mut channel = FrameChannel::new(ControlChannel::accepted(), b"hello".to_vec());
        channel.leave(START, CloseKind::Closed);
        let mut expected = b"hello, ".to_vec();
        Frame::End.encode(&mut expected);
        assert_eq!(sent(&mut channel, b", "), expected);
        assert!(channel.is_open());
        channel.on_drained();
        assert_eq!(channel.poll(|_| ()), Some(Request::Finish));
        assert!(channel.is_gone());
    }

    #[test]
    fn a_peer_that_cannot_be_told_is_given_up_after_the_longest_close() {
        let mut channel = FrameChannel::new(ControlChannel::accepted(), Vec::new());
        sent(&mut channel, b"the host never drains these");
        channel.leave(START, CloseKind::Aborted);
        assert_eq!(channel.poll(|_| ()), None);
        channel.handle_timeout(Instant::from_nanos((START + LONGEST_CLOSE).as_nanos() - 1));
        assert!(channel.is_open());
        channel.handle_timeout(START + LONGEST_CLOSE);
        assert_eq!(channel.poll(|_| ()), Some(Request::Reset));
    }

    #[test]
    fn a_fault_is_told_only_on_an_open_channel() {
        let mut channel = FrameChannel::new(ControlChannel::accepted(), Vec::new());
        channel.fail(START, ConnectionLost::UdpBlocked(PATIENCE));
        let mut expected = Vec::new();
        Frame::Abort(BLOCKED).encode(&mut expected);
        assert_eq!(sent(&mut channel, &[]), expected);
        let mut channel = FrameChannel::new(ControlChannel::accepted(), Vec::new());
        channel.on_ended(ChannelEnd::Finished);
        channel.fail(START, ConnectionLost::Aborted);
        assert_eq!(channel.poll(|_| ()), Some(Request::Reset));
        assert_eq!(channel.leave_by(), None);
    }
}
