//! One connection from its first packet to its last: its phases, its end, and what its application hears.

mod commands;
mod phase;

use core::any::Any;
use core::net::SocketAddr;
use core::ops::Range;

use delegate::delegate;
use farhaul_units::{Duration, Instant};

pub(crate) use self::phase::Phase;
use super::closing::CloseKind;
use super::connection_state::ConnectionState;
use super::control_channel::Request;
use super::host_drops::HostDrops;
use super::life::{Ending, Life};
use super::protocol::{Effect, Established, Opening, Output, Setup};
use super::route::Route;
use super::slots::Occupant;
use crate::channel::ChannelEnd;
use crate::config::Mode;
use crate::error::ConnectionLost;
use crate::event::{ConnectionId, Event};
use crate::stats::Stats;
use crate::transport::{AddressPair, Protection};

/// A connection.
pub struct Connection {
    state: ConnectionState,
    name: Name,
    /// The index of its protocol among those of the port.
    protocol: usize,
    route: Route,
    opened: Instant,
    linger: Duration,
    /// The peer called this side.
    accepted: bool,
    drops: HostDrops,
    phase: Phase,
}

/// No legitimate peer sends this datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InvalidDatagram;

/// The facts of a connection that never change.
#[derive(Clone, Copy, Debug)]
pub struct Name {
    /// Its name in the datagrams of the peer.
    pub key: u64,
    /// Whom this side called, or who called it.
    pub peer: SocketAddr,
    /// Stream or messages.
    pub mode: Mode,
}

/// The endpoint's contribution to a new connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewConnection {
    pub(super) protocol: usize,
    pub(super) opened: Instant,
    /// Longest time without progress after `finish`.
    pub(super) linger: Duration,
}

impl Connection {
    /// A connection of a protocol, whose peer is reached by `route`. The peer opened it if the application must take it.
    pub(super) fn new(place: NewConnection, name: Name, route: Route, state: ConnectionState, phase: Phase) -> Self {
        let NewConnection { protocol, opened, linger } = place;
        let accepted = state.waits_for_application();
        Self { state, name, protocol, route, opened, linger, accepted, drops: HostDrops::default(), phase }
    }

    // ---- input ----

    /// A datagram from `from`. Returns the place of an unreliable datagram in it.
    ///
    /// # Errors
    /// It is invalid.
    #[inline]
    pub(super) fn on_datagram(
        &mut self,
        from: AddressPair,
        datagram: &mut [u8],
        setup: Setup<'_>,
    ) -> Result<Option<Range<usize>>, InvalidDatagram> {
        let from = self.route.seen(from);
        let is_of_peer = self.route.takes(from);
        // A closed one may still have to tell its peer so, if it was established.
        if self.state.is_closed() && (!self.is_established() || self.phase.is_gone()) {
            return if is_of_peer { Ok(None) } else { Err(InvalidDatagram) };
        }
        let effect = match &mut self.phase {
            phase if is_of_peer => phase.on_datagram(datagram, setup),
            Phase::Established(established) => established.on_datagram_from(from, datagram, setup),
            Phase::Opening(_) => Effect::Invalid,
        };
        self.notice_ready();
        self.apply(effect);
        match effect {
            Effect::Invalid => Err(InvalidDatagram),
            // This side has ended a connection that is closing, whatever its peer still sends.
            Effect::Datagram { start, end } if self.state.life() != Life::Closing => Ok(Some(start..end)),
            _ => Ok(None),
        }
    }

    /// The peer, to which this side calls as well, has called between these addresses.
    pub(super) fn note_call(&mut self, between: AddressPair) {
        self.route.move_to(between);
    }

    /// The application may use the connection from the moment in which it is ready.
    #[inline]
    fn notice_ready(&mut self) {
        if self.state.life() == Life::Connecting && self.phase.established().is_some_and(Established::is_ready) {
            self.state.established();
        }
    }

    delegate! {
        to self.phase {
            /// The next datagrams reached this computer at `arrived`.
            pub(super) fn begin_batch(&mut self, arrived: Instant);
            /// The driver called `gap` late after a deadline, so this computer was suspended.
            pub fn on_suspended(&mut self, now: Instant, gap: Duration);
            /// The host has opened the channel.
            pub(super) fn channel_opened(&mut self, now: Instant);
            /// The host takes more bytes.
            pub(super) fn channel_drained(&mut self);
            /// The next request to the host.
            pub(super) fn poll_channel(&mut self, now: Instant) -> Option<Request>;
            /// The bytes of the last [`Request::Send`].
            pub(super) fn channel_bytes(&self) -> &[u8];
        }
        to self.state {
            /// The events since the last call.
            pub(super) fn take_events(&mut self) -> impl Iterator<Item = Event> + '_;
        }
    }

    /// Ends a batch: all datagrams of one receive call were handled.
    pub(super) fn finish_batch(&mut self, setup: Setup<'_>) {
        let now = setup.now;
        let effect = self.phase.finish_batch(setup);
        if self.drops.is_over(now) {
            let stats = self.stats(now);
            self.drops.end(now, stats.totals.packets_lost_receiving);
        }
        self.notice_ready();
        self.apply(effect);
        self.wake();
        self.check_flushed(now);
    }

    /// The host has dropped datagrams, which may have been those of this connection.
    pub(super) fn note_drops(&mut self, now: Instant, buffer: u64) {
        let stats = self.stats(now);
        self.drops.note(now, stats.totals.packets_lost_receiving, stats.rtt);
        if let Some(established) = self.established_mut() {
            established.note_drops(now, buffer);
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        let effect = self.phase.handle_timeout(now, self.state.is_closed());
        self.apply(effect);
        self.check_flushed(now);
        self.wake();
    }

    // ---- the control channel ----

    /// Bytes came on the channel.
    pub(super) fn on_channel(&mut self, bytes: &[u8], setup: Setup<'_>) {
        if self.state.is_closed() {
            return;
        }
        let now = setup.now;
        let effect = self.phase.on_channel(bytes, setup);
        self.notice_ready();
        self.apply(effect);
        self.check_flushed(now);
        self.wake();
    }

    /// The channel ended.
    pub(super) fn channel_ended(&mut self, now: Instant, end: ChannelEnd) {
        let effect = self.phase.channel_ended(now, end);
        self.apply(effect);
    }

    // ---- its end ----

    fn apply(&mut self, effect: Effect) {
        match effect {
            Effect::GoOn | Effect::Invalid | Effect::Datagram { .. } => {}
            Effect::Lost(reason) => self.end(reason),
            Effect::Complained(code) => self.state.complain(code),
            Effect::Moved(to) => self.route.move_to(to),
            Effect::PeerClosed { complete, delivered } => {
                let in_order = complete && delivered;
                let reason = if in_order { ConnectionLost::ClosedByPeer } else { ConnectionLost::Aborted };
                self.conclude(Ending { reason, complete });
            }
        }
    }

    fn end(&mut self, reason: ConnectionLost) {
        self.conclude(Ending::early(reason));
    }

    fn conclude(&mut self, mut ending: Ending) {
        if let Phase::Established(established) = &self.phase {
            ending.reason = established.explain(ending.reason);
        }
        if self.state.lost(ending) {
            self.phase.close();
            self.wake();
        }
    }

    fn check_flushed(&mut self, now: Instant) {
        let Phase::Established(established) = &mut self.phase else { return };
        let closes = match self.state.life() {
            Life::Finishing => established.may_close(),
            Life::HalfClosed => established.has_ended_both(),
            _ => false,
        };
        if matches!(self.state.life(), Life::HalfClosed | Life::Finishing) && established.is_flushed() {
            self.state.sending_finished();
        }
        if closes {
            established.begin_close(now, CloseKind::Closed);
            // Nothing more will arrive. As far as this side can know, the received data is complete.
            let complete = established.is_complete();
            self.state.flushed(complete);
            self.wake();
        }
    }

    /// Wakes waiting readers and writers if their state changed.
    fn wake(&mut self) {
        let Phase::Established(established) = &mut self.phase else {
            self.state.wake_reader(|| false);
            return;
        };
        self.state.wake_reader(|| established.can_read());
        self.state.wake_writer(|| established.has_room_again());
    }

    // ---- output ----

    /// The next datagrams to send, if any, and their addresses.
    pub fn poll(&mut self, now: Instant, scratch: &mut Vec<u8>) -> Option<(AddressPair, Output)> {
        // A side that has failed may still have to say why.
        if self.is_at_rest() {
            return None;
        }
        let between = self.route.between();
        let established = match &mut self.phase {
            Phase::Opening(opening) => {
                let between = between.filter(|_| opening.poll(now, scratch))?;
                return Some((between, Output::Scratch));
            }
            Phase::Established(established) => established,
        };
        let output = between.and_then(|between| match established.poll(now, scratch)? {
            Output::Detour(to) => Some((AddressPair { local: to.local.or(between.local), ..to }, Output::Scratch)),
            output => Some((between, output)),
        });
        if output.is_none() && self.state.life() == Life::Closing && established.is_close_sent() {
            established.close();
            self.state.close_sent();
        }
        output
    }

    /// The data packets of an output.
    pub(super) fn emit<'a>(&'a mut self, now: Instant, scratch: &'a mut Vec<u8>) -> Option<(usize, &'a [u8])> {
        self.established_mut()?.emit(now, scratch)
    }

    /// When to call this connection next.
    pub fn deadline(&self, now: Instant) -> Option<Instant> {
        if self.is_at_rest() {
            return None;
        }
        self.phase.deadline(now)
    }

    // ---- facts ----

    /// The peer's address. It is that of the call until the peer moves.
    pub(super) fn address(&self) -> SocketAddr {
        self.between().peer
    }

    /// The addresses of its datagrams. The peer's is that of the call until the peer moves.
    pub fn between(&self) -> AddressPair {
        self.route.between().unwrap_or(self.name.peer.into())
    }

    /// Its id.
    pub const fn id(&self) -> ConnectionId {
        self.state.id()
    }

    /// Whom this side called, or who called it.
    pub const fn peer(&self) -> SocketAddr {
        self.name.peer
    }

    /// Its name in the datagrams of the peer.
    pub const fn key(&self) -> u64 {
        self.name.key
    }

    /// The index of its protocol among those of the port.
    pub(super) const fn protocol(&self) -> usize {
        self.protocol
    }

    /// Whether nothing is sent or received any more.
    pub const fn is_closed(&self) -> bool {
        self.state.is_closed()
    }

    /// Whether it can be forgotten.
    pub(super) fn is_done(&self) -> bool {
        self.state.is_done() && self.is_at_rest()
    }

    /// Whether it is closed, and nothing is left to do for the peer.
    fn is_at_rest(&self) -> bool {
        self.state.is_closed() && self.phase.is_gone()
    }

    /// Whether this side has closed it and still tells its peer so.
    pub(super) fn is_closing(&self) -> bool {
        let still_tells = || self.state.is_closed() && self.is_established() && !self.phase.is_gone();
        self.state.life() == Life::Closing || still_tells()
    }

    /// Whether the peer called.
    pub const fn is_accepted(&self) -> bool {
        self.accepted
    }

    /// Its opening, if that is of this type; `None` once it is established.
    pub fn opening_as<T: Opening>(&self) -> Option<&T> {
        match &self.phase {
            Phase::Opening(opening) => (&**opening as &dyn Any).downcast_ref(),
            Phase::Established(_) => None,
        }
    }

    /// The same, mutable.
    pub fn opening_as_mut<T: Opening>(&mut self) -> Option<&mut T> {
        match &mut self.phase {
            Phase::Opening(opening) => (&mut **opening as &mut dyn Any).downcast_mut(),
            Phase::Established(_) => None,
        }
    }

    /// Whether it is established.
    pub const fn is_established(&self) -> bool {
        matches!(self.phase, Phase::Established(_))
    }

    /// The protocol's part; `None` before it is established.
    pub(crate) fn established(&self) -> Option<&dyn Established> {
        self.phase.established()
    }

    /// The same, mutable.
    pub(crate) fn established_mut(&mut self) -> Option<&mut dyn Established> {
        self.phase.established_mut()
    }

    /// The protocol's part, if it is of this type.
    pub fn established_as<T: Established>(&self) -> Option<&T> {
        self.established().and_then(|established| (established as &dyn Any).downcast_ref())
    }

    /// The same, mutable.
    #[cfg(any(test, feature = "testing"))]
    pub fn established_as_mut<T: Established>(&mut self) -> Option<&mut T> {
        self.established_mut().and_then(|established| (established as &mut dyn Any).downcast_mut())
    }

    /// The protection of its packets; `None` if they have none, or before it is established.
    pub(super) fn protection(&self) -> Option<&Protection> {
        self.established()?.protection()
    }

    pub(super) fn stats(&self, now: Instant) -> Stats {
        let mut stats = Stats { elapsed: now - self.opened, ..Stats::default() };
        if let Some(established) = self.established() {
            established.fill_stats(now, &mut stats);
        }
        stats.totals.packets_dropped = self.drops.packets(stats.totals.packets_lost_receiving);
        stats
    }
}

impl Occupant for Connection {
    fn id(&self) -> ConnectionId {
        self.state.id()
    }

    fn protocol(&self) -> usize {
        self.protocol
    }

    fn peer(&self) -> SocketAddr {
        self.name.peer
    }

    fn was_heard(&self) -> bool {
        self.established().is_some_and(Established::was_heard)
    }

    fn is_half_open(&self) -> bool {
        let life = self.state.life();
        self.accepted && !self.was_heard() && (life == Life::Connecting || life.is_alive())
    }

    fn waits_for_application(&self) -> bool {
        self.state.waits_for_application()
    }
}
