//! One TCP connection: its handshake, its two directions, and its end.

use core::net::SocketAddr;

use farhaul_netem::WireLen;
use farhaul_proto::{ConnectionId, earliest};
use farhaul_units::{Duration, Instant};

use super::incoming::Incoming;
use super::outgoing::Outgoing;
use crate::agent::Outbox;
use crate::agent::tcp::{Segment, SegmentKind};
use crate::packet::{Payload, Share};

/// Repetitions of a SYN before the channel fails, by default in Linux (`tcp_syn_retries`).
const SYN_RETRIES: u32 = 6;
/// Repetitions of the answer to a SYN, by default in Linux (`tcp_synack_retries`).
const ANSWER_RETRIES: u32 = 5;
/// Repetitions of a segment before the connection fails, by default in Linux (`tcp_retries2`).
const RETRIES: u32 = 15;
/// The first wait for the end of a handshake.
//= paper:rfc6298 §2 (2.1)
const FIRST_ANSWER_WAIT: Duration = Duration::from_secs(1);
/// How long a finished channel waits for the peer's end, as in the driver of real sockets.
const LINGER: Duration = Duration::from_secs(30);

/// The handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// This host sent a SYN.
    Calling,
    /// This host answered a SYN `sent` times, and answers again at `next`.
    Answering { next: Instant, sent: u32 },
    /// Both hosts know the connection.
    Open,
}

/// The effect of a segment on the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It is part of the handshake, or comes too early. It has no data to take.
    Handshake,
    /// The peer accepted the connection.
    Opened,
    /// The peer's connection is complete.
    Accepted,
    /// None: the connection was open.
    Open,
}

/// A TCP connection.
#[derive(Debug)]
pub(super) struct ChannelConnection {
    pub(super) peer: SocketAddr,
    /// The number that the host which opened it chose.
    number: u32,
    /// Whether this host accepted it.
    accepted: bool,
    /// The transport's name for it; `None` before the transport accepted it and after it gave it up.
    pub(super) id: Option<ConnectionId>,
    /// Whether the transport knows that the peer has finished.
    pub(super) told_finished: bool,
    stage: Stage,
    pub(super) outgoing: Outgoing,
    incoming: Incoming,
    /// When it stops waiting for the peer's end; `None` unless everything sent was acknowledged, the end included.
    leaves_at: Option<Instant>,
}

impl ChannelConnection {
    /// Opens a connection.
    pub(super) fn call(now: Instant, peer: SocketAddr, number: u32, id: ConnectionId) -> Self {
        let mut outgoing = Outgoing::new(true);
        outgoing.start(now);
        Self {
            peer,
            number,
            accepted: false,
            id: Some(id),
            told_finished: false,
            stage: Stage::Calling,
            outgoing,
            incoming: Incoming::new(),
            leaves_at: None,
        }
    }

    /// Answers a SYN.
    pub(super) fn answer(now: Instant, peer: SocketAddr, syn: &Segment) -> Self {
        let mut incoming = Incoming::new();
        incoming.receiver.handle_data(now, syn);
        Self {
            peer,
            number: syn.connection,
            accepted: true,
            id: None,
            told_finished: false,
            stage: Stage::Answering { next: now + FIRST_ANSWER_WAIT, sent: 1 },
            outgoing: Outgoing::new(false),
            incoming,
            leaves_at: None,
        }
    }

    /// Whether a segment that the peer sent belongs to it.
    pub(super) fn is_of(&self, peer: SocketAddr, segment: &Segment) -> bool {
        self.peer == peer && self.number == segment.connection && self.accepted != segment.from_acceptor
    }

    /// Its number, and whether this host accepted it.
    pub(super) fn name(&self) -> (u32, bool) {
        (self.number, self.accepted)
    }

    /// Whether the peer has not answered yet.
    pub(super) fn is_calling(&self) -> bool {
        self.stage == Stage::Calling
    }

    /// Whether the peer's end and everything before it has arrived.
    pub(super) fn has_peer_finished(&self) -> bool {
        self.incoming.receiver.finished_at().is_some()
    }

    /// Ends this direction behind everything written. The transport has given up the channel.
    pub(super) fn finish(&mut self) {
        self.id = None;
        self.outgoing.finish();
    }

    /// Takes the part of a segment that concerns the handshake.
    pub(super) fn step(&mut self, now: Instant, segment: &Segment) -> Step {
        match (self.stage, segment.kind) {
            (Stage::Calling, SegmentKind::SynAck) => {
                self.stage = Stage::Open;
                self.outgoing.handle_ack(now, segment);
                self.incoming.receiver.acknowledge();
                Step::Opened
            }
            (Stage::Calling, _) => Step::Handshake,
            (_, SegmentKind::Syn) if self.stage != Stage::Open => {
                self.incoming.receiver.handle_data(now, segment);
                Step::Handshake
            }
            // The peer has not seen the last acknowledgement of the handshake, or a copy of its SYN was late.
            (_, SegmentKind::Syn | SegmentKind::SynAck) => {
                self.incoming.receiver.acknowledge();
                Step::Handshake
            }
            (Stage::Answering { .. }, _) => {
                self.stage = Stage::Open;
                self.outgoing.start(now);
                Step::Accepted
            }
            (Stage::Open, _) => Step::Open,
        }
    }

    /// Takes the acknowledgement and the bytes of a segment. `deliver` gets the bytes that are next in order.
    pub(super) fn take(&mut self, now: Instant, segment: &Segment, bytes: &[u8], deliver: impl FnMut(&[u8])) {
        match segment.kind {
            SegmentKind::Ack => self.outgoing.handle_ack(now, segment),
            SegmentKind::Data | SegmentKind::LastData => {
                self.outgoing.handle_riding_ack(now, segment);
                self.incoming.handle_data(now, segment, bytes, deliver);
            }
            SegmentKind::Syn | SegmentKind::SynAck | SegmentKind::Reset => {}
        }
    }

    /// Whether both directions have ended. `now` begins the wait for the peer's end.
    pub(super) fn is_over(&mut self, now: Instant) -> bool {
        if self.outgoing.is_done() && self.leaves_at.is_none() {
            self.leaves_at = Some(now + LINGER);
        }
        self.leaves_at.is_some() && self.has_peer_finished()
    }

    /// When it needs [`handle_timeout`](ChannelConnection::handle_timeout).
    pub(super) fn deadline(&self) -> Option<Instant> {
        let answer = if let Stage::Answering { next, .. } = self.stage { Some(next) } else { None };
        let directions = earliest(self.outgoing.deadline(), self.incoming.receiver.poll_timeout());
        earliest(directions, earliest(answer, self.leaves_at))
    }

    /// Fires the timers that are due. Returns `false` if the connection ends with that.
    pub(super) fn handle_timeout(&mut self, now: Instant) -> bool {
        if let Stage::Answering { next, sent } = &mut self.stage
            && *next <= now
        {
            if *sent > ANSWER_RETRIES {
                return false;
            }
            *next = now + FIRST_ANSWER_WAIT.saturating_mul(1 << *sent);
            *sent += 1;
            self.incoming.receiver.answer_again();
        }
        self.incoming.receiver.handle_timeout(now);
        let most = if self.is_calling() { SYN_RETRIES } else { RETRIES };
        self.outgoing.handle_timeout(now) <= most && self.leaves_at.is_none_or(|leaves_at| leaves_at > now)
    }

    /// Sends what may leave now. `scratch` is memory for the bytes of a segment.
    pub(super) fn transmit(&mut self, now: Instant, scratch: &mut Vec<u8>, out: &mut Outbox<'_>) {
        while let Some(mut segment) = self.outgoing.poll_transmit(now, scratch) {
            (segment.connection, segment.from_acceptor) = self.name();
            if segment.kind != SegmentKind::Syn {
                self.incoming.receiver.ride_on(&mut segment);
            }
            if scratch.is_empty() {
                out.packet(self.peer, Payload::Tcp(segment), segment.wire_len(), Share::Channel);
            } else {
                out.segment(self.peer, segment, scratch, Share::Channel);
            }
        }
        while let Some(mut segment) = self.incoming.receiver.poll_transmit(now) {
            (segment.connection, segment.from_acceptor) = self.name();
            out.packet(self.peer, Payload::Tcp(segment), segment.wire_len(), Share::Channel);
        }
    }
}
