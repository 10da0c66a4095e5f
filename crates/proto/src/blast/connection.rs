//! One connection from the opening of its channel to its last frame. It conducts the parts.

mod commands;

use core::net::SocketAddr;

use farhaul_units::{Duration, Instant, Rng};
use farhaul_wire::blast::{Frame, Hello, HelloError, Tag};

use super::engine::{Departure, Protocol};
use super::established::{Effect, Established, Opening};
use super::frames::Unread;
use super::line::{Line, Request};
use super::path::PATIENCE;
use crate::channel::ChannelEnd;
use crate::config::Config;
use crate::error::{ConnectionLost, PeerIncompatible};
use crate::event::{ConnectionId, Event};
use crate::shell::farewell::LONGEST_FAREWELL;
use crate::shell::life::{Ending, Life};
use crate::shell::slots::Occupant;
use crate::shell::standing::Standing;
use crate::stats::Stats;

/// Smallest datagram that is worth sending. An IPv4 host takes packets of 576 bytes, headers included.
const MIN_DATAGRAM: u16 = 548;
/// Codes of an abort frame: data is missing, or no datagram gets through.
const BROKEN: u32 = 1;
const BLOCKED: u32 = 2;
/// Room after which a writer that waited is woken. A wake-up for less costs more than it brings.
const WORTH_WAKING: usize = 64 << 10;

/// A connection.
#[derive(Debug)]
pub(super) struct Connection<P: Protocol> {
    standing: Standing,
    /// The other end of the channel.
    peer: SocketAddr,
    accepted: bool,
    /// Datagrams to this side carry it.
    tag: Tag,
    /// Most bytes of a datagram that this side sends or takes, tag included.
    datagram: u16,
    opened: Instant,
    linger: Duration,
    phase: Phase<P>,
    line: Line,
    unread: Unread,
    /// The last frame, until it leaves.
    last: Option<Last>,
    /// When to give up telling the peer.
    leave_by: Instant,
    room_to_wake: usize,
    /// Whether this side's greeting has left.
    greeted: bool,
    heard: bool,
}

/// The last frame of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Last {
    End,
    Abort(u32),
}

#[derive(Debug)]
enum Phase<P: Protocol> {
    /// The channel is being opened, or the peer has not greeted. A probe may overtake the greeting: `early` is where it
    /// came from.
    Opening {
        deadline: Instant,
        round_trip: Option<Duration>,
        early: Option<SocketAddr>,
    },
    Established(Box<Established<P>>),
}

/// The identity of a new connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Identity {
    pub(super) id: ConnectionId,
    pub(super) peer: SocketAddr,
    pub(super) tag: Tag,
    pub(super) datagram: u16,
}

/// The source of a connection's next datagrams.
#[derive(Debug)]
pub(super) enum Output {
    /// One datagram was written into the scratch buffer.
    Scratch,
    /// These packets of the engine.
    Data(Departure),
}

impl<P: Protocol> Connection<P> {
    /// Calls a listener.
    pub(super) fn call(identity: Identity, config: &Config, now: Instant) -> Self {
        Self::new(identity, Standing::opening(identity.id), Line::wanted(), config, now)
    }

    /// Takes a channel that a peer opened.
    pub(super) fn accept(identity: Identity, config: &Config, now: Instant) -> Self {
        let standing = Standing::called(identity.id);
        Self { accepted: true, ..Self::new(identity, standing, Line::accepted(), config, now) }
    }

    fn new(identity: Identity, standing: Standing, line: Line, config: &Config, now: Instant) -> Self {
        let Identity { peer, tag, datagram, .. } = identity;
        Self {
            standing,
            peer,
            accepted: false,
            tag,
            datagram,
            opened: now,
            linger: config.linger,
            phase: Phase::Opening { deadline: now + config.connect_timeout, round_trip: None, early: None },
            line,
            unread: Unread::default(),
            last: None,
            leave_by: now,
            room_to_wake: WORTH_WAKING.min(usize::try_from(config.send_buffer / 2).unwrap_or(WORTH_WAKING)),
            greeted: false,
            heard: false,
        }
    }

    // ---- the channel ----

    /// The host has opened the channel.
    pub(super) fn channel_opened(&mut self, now: Instant) {
        self.line.on_opened();
        if let Phase::Opening { round_trip, .. } = &mut self.phase {
            *round_trip = Some(now - self.opened);
        }
    }

    pub(super) fn channel_drained(&mut self) {
        self.line.on_drained();
        if matches!(self.standing.life(), Life::Leaving | Life::Over) && self.last.is_none() {
            self.line.finish();
            self.standing.told();
        }
    }

    /// The channel ended.
    pub(super) fn channel_ended(&mut self, now: Instant, end: ChannelEnd) {
        self.line.on_ended(end == ChannelEnd::Finished);
        if self.standing.life() == Life::Leaving {
            self.standing.told();
            return;
        }
        let established = matches!(self.phase, Phase::Established(_));
        let reason = match end {
            ChannelEnd::Refused => ConnectionLost::ChannelRefused,
            // A peer that has nothing more to say says so in a frame.
            ChannelEnd::Finished if established => ConnectionLost::Aborted,
            ChannelEnd::Finished => ConnectionLost::Refused,
            ChannelEnd::Failed => ConnectionLost::ChannelBroken,
        };
        self.lose(now, reason);
    }

    /// Bytes came on the channel.
    pub(super) fn handle_channel(
        &mut self,
        bytes: &[u8],
        options: &P::Options,
        config: &Config,
        (now, rng): (Instant, &mut Rng),
    ) {
        if let Phase::Established(established) = &mut self.phase {
            established.pulse.on_heard(now);
        }
        let mut unread = std::mem::take(&mut self.unread);
        let read = unread.feed(bytes, |bytes| match self.phase {
            Phase::Opening { .. } => self.on_greeting(bytes, options, config, (now, &mut *rng)),
            Phase::Established(_) => self.on_frame(bytes, now),
        });
        match read {
            Ok(()) => self.unread = unread,
            Err(reason) => self.lose(now, reason),
        }
        self.check_flushed(now);
        self.wake();
    }

    /// Reads the peer's greeting. Returns its length.
    fn on_greeting(
        &mut self,
        bytes: &[u8],
        options: &P::Options,
        config: &Config,
        (now, rng): (Instant, &mut Rng),
    ) -> Result<usize, ConnectionLost> {
        let Phase::Opening { round_trip, early, .. } = self.phase else { return Ok(0) };
        let hello = Hello::decode(bytes).map_err(|error| {
            ConnectionLost::PeerIncompatible(match error {
                HelloError::Version(version) => PeerIncompatible::ChannelVersion(version),
                _ => PeerIncompatible::NoFarhaul,
            })
        })?;
        let Some((hello, length)) = hello else { return Ok(0) };
        if hello.protocol != P::NAME {
            return Err(ConnectionLost::PeerIncompatible(PeerIncompatible::OtherProtocol));
        }
        let datagram = hello.datagram.min(self.datagram);
        if datagram < MIN_DATAGRAM {
            return Err(ConnectionLost::PeerIncompatible(PeerIncompatible::PacketSize(u32::from(hello.datagram))));
        }
        let opening = Opening {
            peer: self.peer,
            called: !self.accepted,
            datagram: usize::from(datagram),
            round_trip,
            hello: &hello,
        };
        let mut established =
            Established::new(options, config, &opening, (now, rng)).map_err(ConnectionLost::PeerMisbehaved)?;
        if let Some(early) = early {
            established.way.on_datagram(early);
        }
        self.phase = Phase::Established(Box::new(established));
        self.standing.established();
        Ok(length)
    }

    fn on_frame(&mut self, bytes: &[u8], now: Instant) -> Result<usize, ConnectionLost> {
        let Phase::Established(established) = &mut self.phase else { return Ok(0) };
        if self.standing.is_over() {
            return Ok(bytes.len());
        }
        let Some((frame, length)) =
            Frame::decode(bytes).map_err(|_| ConnectionLost::PeerIncompatible(PeerIncompatible::NoFarhaul))?
        else {
            return Ok(0);
        };
        self.heard = true;
        match established.on_frame(now, &frame) {
            Effect::GoOn => {}
            Effect::Lost(reason) => return Err(reason),
            Effect::PeerAborted(BLOCKED) => self.conclude(Ending::early(ConnectionLost::UdpBlocked(PATIENCE))),
            Effect::PeerAborted(_) => self.conclude(Ending::early(ConnectionLost::Aborted)),
            Effect::PeerEnded => {
                let complete = established.incoming.is_complete();
                let clean = complete && established.outgoing.is_delivered();
                let reason = if clean { ConnectionLost::ClosedByPeer } else { ConnectionLost::Aborted };
                self.conclude(Ending { reason, complete });
            }
        }
        Ok(length)
    }

    /// The next request to the host.
    pub(super) fn poll_channel(&mut self, now: Instant, options: &P::Options) -> Option<Request> {
        let (phase, last, greeted) = (&mut self.phase, &mut self.last, &mut self.greeted);
        let over = self.standing.is_over();
        let greeting = Hello { protocol: P::NAME, tag: self.tag, datagram: self.datagram, options: &[] };
        self.line.poll(|out| {
            if !std::mem::replace(greeted, true) {
                Hello { options: &P::greeting(options), ..greeting }.encode(out);
            }
            if let Phase::Established(established) = phase
                && !over
            {
                established.poll_frames(now, out);
            }
            match last.take() {
                None => {}
                Some(Last::End) => Frame::End.encode(out),
                Some(Last::Abort(code)) => Frame::Abort(code).encode(out),
            }
        })
    }

    pub(super) fn channel_bytes(&self) -> &[u8] {
        self.line.bytes()
    }

    // ---- datagrams ----

    /// A datagram with this side's tag. Returns false if it is not the peer's.
    pub(super) fn on_datagram(&mut self, now: Instant, from: SocketAddr, body: &[u8]) -> bool {
        match &mut self.phase {
            Phase::Established(established) if !self.standing.is_over() => established.on_datagram(now, from, body),
            Phase::Opening { early, .. } => {
                // The data is lost, and the protocol repairs that.
                *early = early.or(Some(from).filter(|from| from.ip() == self.peer.ip()));
                true
            }
            Phase::Established(_) => true,
        }
    }

    /// All datagrams of one receive call were handled.
    pub(super) fn end_batch(&mut self, now: Instant) {
        if let Phase::Established(established) = &mut self.phase {
            established.end_batch(now);
        }
        self.wake();
    }

    /// The next datagrams to send, if any.
    pub(super) fn poll_output(&mut self, now: Instant, scratch: &mut Vec<u8>) -> Option<Output> {
        let Phase::Established(established) = &mut self.phase else { return None };
        if !self.standing.life().is_alive() {
            return None;
        }
        if established.poll_probe(now, scratch) {
            return Some(Output::Scratch);
        }
        let waits = self.standing.writer_waits();
        if waits {
            established.outgoing.unstage(now);
        }
        // A writer that waits for less than a datagram to be delivered waits for data that no engine need send.
        if !waits || established.outgoing.outstanding() < u64::from(self.datagram) {
            established.outgoing.flush(now);
        }
        established.plan(now).map(Output::Data)
    }

    /// The data packets of an output.
    pub(super) fn emit(&mut self, now: Instant, plan: Departure) -> Option<(usize, &[u8])> {
        let Phase::Established(established) = &mut self.phase else { return None };
        established.emit(now, plan)
    }

    /// Where this side's datagrams go.
    pub(super) fn way(&self) -> Option<SocketAddr> {
        match &self.phase {
            Phase::Established(established) => established.way.peer(),
            Phase::Opening { .. } => None,
        }
    }

    // ---- time ----

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        let alive = self.standing.life().is_alive();
        match &mut self.phase {
            Phase::Opening { deadline, .. } if now >= *deadline && !self.standing.is_over() => {
                self.lose(now, ConnectionLost::ConnectTimeout(now - self.opened));
            }
            Phase::Established(established) if alive => {
                if let Effect::Lost(reason) = established.handle_timeout(now, self.standing.writer_waits()) {
                    self.lose(now, reason);
                }
            }
            _ => {}
        }
        if matches!(self.standing.life(), Life::Leaving | Life::Over) && now >= self.leave_by {
            self.line.reset();
            self.standing.told();
        }
        self.check_flushed(now);
        self.wake();
    }

    /// The driver called `gap` late after a deadline, so this computer was suspended.
    pub(super) fn on_suspended(&mut self, now: Instant, gap: Duration) {
        match &mut self.phase {
            Phase::Opening { deadline, .. } => *deadline += gap,
            Phase::Established(established) => established.on_suspended(now, gap),
        }
    }

    /// When to call this connection next.
    pub(super) fn deadline(&self, now: Instant) -> Option<Instant> {
        match (self.standing.life(), &self.phase) {
            (Life::Over, _) if self.line.is_gone() => None,
            (Life::Leaving | Life::Over, _) => Some(self.leave_by),
            (_, Phase::Opening { deadline, .. }) => Some(*deadline),
            (_, Phase::Established(established)) => {
                established.deadline(now, self.line.is_ready(), self.standing.writer_waits())
            }
        }
    }

    // ---- ends ----

    fn check_flushed(&mut self, now: Instant) {
        let Phase::Established(established) = &mut self.phase else { return };
        if self.standing.life() == Life::Finishing && established.outgoing.is_delivered() {
            let complete = established.incoming.is_complete();
            self.leave(now, Last::End);
            self.standing.flushed(complete);
            self.wake();
        }
    }

    fn leave(&mut self, now: Instant, last: Last) {
        self.last = Some(last);
        self.leave_by = now + LONGEST_FAREWELL;
    }

    /// The connection is over for a fault that this side found. The peer is told if the channel is open.
    fn lose(&mut self, now: Instant, reason: ConnectionLost) {
        let established = matches!(self.phase, Phase::Established(_));
        if !self.standing.lost(Ending::early(reason)) {
            return;
        }
        if established && self.line.is_open() {
            let blocked = matches!(reason, ConnectionLost::UdpBlocked(_));
            self.leave(now, Last::Abort(if blocked { BLOCKED } else { BROKEN }));
        } else {
            self.line.reset();
        }
        self.wake();
    }

    /// The connection is over because the peer said so.
    fn conclude(&mut self, ending: Ending) {
        if self.standing.lost(ending) {
            self.line.finish();
            self.wake();
        }
    }

    /// Wakes waiting readers and writers if their state changed.
    fn wake(&mut self) {
        let Phase::Established(established) = &mut self.phase else {
            self.standing.wake_reader(|| false);
            return;
        };
        self.standing.wake_reader(|| established.incoming.available() > 0);
        let enough = self.room_to_wake;
        self.standing.wake_writer(|| established.outgoing.has_room_again(enough));
    }

    // ---- facts ----

    pub(super) fn take_events(&mut self) -> impl Iterator<Item = Event> + '_ {
        self.standing.take_events()
    }

    pub(super) const fn tag(&self) -> Tag {
        self.tag
    }

    /// Whether it can be forgotten, here and by the host.
    pub(super) const fn is_done(&self) -> bool {
        self.standing.is_done() && self.line.is_gone()
    }

    /// Whether this side has closed it and the peer may not know.
    pub(super) fn is_leaving(&self) -> bool {
        self.standing.life() == Life::Leaving
    }

    pub(super) fn stats(&self, now: Instant) -> Stats {
        let mut stats = Stats { elapsed: now - self.opened, ..Stats::default() };
        if let Phase::Established(established) = &self.phase {
            established.fill_stats(now, &mut stats);
        }
        stats
    }
}

impl<P: Protocol> Occupant for Connection<P> {
    fn id(&self) -> ConnectionId {
        self.standing.id()
    }

    fn peer(&self) -> SocketAddr {
        self.peer
    }

    fn was_heard(&self) -> bool {
        self.heard
    }

    fn is_half_open(&self) -> bool {
        self.accepted && !self.heard && !self.standing.is_over()
    }

    fn waits_for_application(&self) -> bool {
        self.standing.waits_for_application()
    }
}
