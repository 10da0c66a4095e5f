//! All connections of one UDP port. The shell routes datagrams, takes turns in sending, and serves timers.
//!
//! ```text
//! datagrams ─▶ Protocol::key ─▶ Connection ─▶ events
//!              without a key ─▶ Protocol::on_unaddressed ─▶ a new Connection, or an answer
//! Connection ─▶ ready queue ─▶ one train each in turn ─▶ datagrams
//! ```

mod channels;
mod interface;

use core::net::SocketAddr;
use std::collections::VecDeque;

use farhaul_units::{Instant, Rng};

pub(crate) use self::interface::Wraps;
use super::admission::Held;
use super::connection::{Connection, Name, Place};
use super::protocol::{Output, Protocol, Setup};
use super::schedule::{Due, Schedule};
use super::slots::{Occupant, Slots};
use crate::config::Config;
use crate::error::ConnectError;
use crate::event::{ConnectionId, Event};
use crate::transport::{Batch, StreamError, Transmit};

/// An endpoint without its public face.
pub(crate) struct Shell<P: Protocol> {
    pub(crate) config: Config,
    pub(crate) rng: Rng,
    pub(crate) protocol: P,
    slots: Slots<Connection<P>>,
    schedule: Schedule,
    /// Connections whose channels may have a request.
    channels: VecDeque<u32>,
    events: VecDeque<Event>,
    invalid: u64,
}

impl<P: Protocol> Shell<P> {
    /// An endpoint without connections.
    pub(crate) fn new(config: Config, seed: u64, protocol: P) -> Self {
        Self {
            config,
            rng: Rng::new(seed),
            protocol,
            slots: Slots::default(),
            schedule: Schedule::default(),
            channels: VecDeque::new(),
            events: VecDeque::new(),
            invalid: 0,
        }
    }

    // ---- connections ----

    /// The connections held, closing ones included.
    pub(crate) const fn held(&self) -> Held {
        self.slots.held()
    }

    /// The reason to open no further connection.
    pub(crate) fn check_room(&self) -> Result<(), ConnectError> {
        let most = self.config.max_connections;
        if self.held().connections < most { Ok(()) } else { Err(ConnectError::TooManyConnections(most)) }
    }

    /// Adds a connection that this side opens.
    pub(crate) fn open(&mut self, now: Instant, name: Name<P::Key>, opening: P::Opening) -> ConnectionId {
        let place = self.place(now);
        self.install(Connection::opening(place, name, opening))
    }

    /// Adds a connection that a caller opens by a channel.
    pub(crate) fn answer(&mut self, now: Instant, name: Name<P::Key>, opening: P::Opening) -> ConnectionId {
        let place = self.place(now);
        self.install(Connection::called(place, name, opening))
    }

    /// Adds a connection that a caller opens by datagrams.
    pub(crate) fn answer_datagram(&mut self, now: Instant, name: Name<P::Key>, opening: P::Opening) -> ConnectionId {
        let place = self.place(now);
        self.install(Connection::called_by_datagram(place, name, opening))
    }

    /// Adds a connection that a caller opened.
    pub(crate) fn accept(&mut self, now: Instant, name: Name<P::Key>, established: P::Established) {
        let place = self.place(now);
        self.install(Connection::accepted(place, name, established));
    }

    fn place(&mut self, now: Instant) -> Place {
        Place { id: self.slots.reserve(), opened: now, linger: self.config.linger }
    }

    fn install(&mut self, connection: Connection<P>) -> ConnectionId {
        let id = connection.id();
        self.protocol.on_entered(&connection);
        self.slots.install(connection);
        self.mark(id.slot);
        id
    }

    /// The connection may have something to send, to report, or to ask of the host.
    fn mark(&mut self, slot: u32) {
        self.schedule.mark_ready(slot);
        if P::CHANNELS && self.channels.back() != Some(&slot) {
            self.channels.push_back(slot);
        }
    }

    /// The connection in a slot.
    pub(crate) fn at(&mut self, slot: u32) -> Option<&mut Connection<P>> {
        self.slots.at(slot)
    }

    pub(crate) fn get(&self, id: ConnectionId) -> Option<&Connection<P>> {
        self.slots.get(id)
    }

    /// The ids of all connections, closing ones included.
    pub(crate) fn ids(&self) -> Vec<ConnectionId> {
        self.slots.ids()
    }

    /// Changes a connection that is being opened.
    pub(crate) fn on_opening(&mut self, slot: u32, change: impl FnOnce(&mut P::Opening)) {
        if let Some(opening) = self.slots.at(slot).and_then(Connection::as_opening_mut) {
            change(opening);
            self.mark(slot);
        }
    }

    /// Carries out a command of the application.
    pub(crate) fn command<T>(
        &mut self,
        id: ConnectionId,
        command: impl FnOnce(&mut Connection<P>) -> T,
    ) -> Result<T, StreamError> {
        let connection = self.slots.get_mut(id).ok_or(StreamError::NoSuchConnection)?;
        let result = command(connection);
        self.mark(id.slot);
        Ok(result)
    }

    /// Takes an accepted connection for the application.
    pub(crate) fn claim(&mut self, id: ConnectionId) {
        let _ = self.command(id, Connection::claim);
    }

    /// Forgets a connection that a caller opens, and that the application does not know yet.
    pub(crate) fn evict(&mut self, slot: u32) {
        if let Some(connection) = self.slots.forget(slot) {
            self.protocol.on_forgotten(&connection);
        }
        self.schedule.forget(slot);
    }

    /// Collects events and the next deadline of a connection without anything to send.
    fn settle(&mut self, slot: u32, now: Instant) {
        let Some(connection) = self.slots.at(slot) else { return };
        self.events.extend(connection.take_events());
        if connection.is_done() {
            if let Some(connection) = self.slots.forget(slot) {
                self.protocol.on_forgotten(&connection);
            }
            self.schedule.forget(slot);
            return;
        }
        let deadline = connection.deadline(now);
        self.protocol.on_changed(connection);
        if let Some(caller) = self.slots.update(slot) {
            self.protocol.on_caller_heard(caller);
        }
        if let Some(deadline) = deadline {
            self.schedule.wake_at(slot, deadline);
        }
    }

    /// The next event since the last call, oldest first.
    pub(crate) fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    // ---- input ----

    /// Datagrams that arrived from one address.
    pub(crate) fn handle_datagrams(
        &mut self,
        now: Instant,
        arrived: Instant,
        from: SocketAddr,
        bytes: &mut [u8],
        stride: usize,
    ) {
        // Datagrams of one call usually belong to one connection, so it is looked up once.
        let mut current: Option<(P::Key, u32)> = None;
        for datagram in bytes.chunks_mut(stride.max(1)) {
            let Some(key) = P::key(from, datagram) else {
                // A caller may take the slot of a connection that is being opened.
                if let Some((_, before)) = current.take() {
                    self.finish_batch(before, now);
                }
                P::on_unaddressed(self, now, from, datagram);
                continue;
            };
            let slot = match current {
                Some((same, slot)) if same == key => slot,
                _ => {
                    let Some(slot) = self.protocol.find(key) else {
                        P::on_unknown(self, now, from, datagram);
                        continue;
                    };
                    if let Some((_, before)) = current.replace((key, slot)) {
                        self.finish_batch(before, now);
                    }
                    if let Some(connection) = self.slots.at(slot) {
                        connection.begin_batch(arrived);
                    }
                    slot
                }
            };
            self.deliver(slot, now, from, datagram);
        }
        if let Some((_, slot)) = current {
            self.finish_batch(slot, now);
        }
    }

    fn deliver(&mut self, slot: u32, now: Instant, from: SocketAddr, datagram: &mut [u8]) {
        let Some(connection) = self.slots.at(slot) else { return };
        let setup = Setup { config: &self.config, rng: &mut self.rng, now };
        if !connection.on_datagram(from, datagram, setup) {
            self.invalid += 1;
        }
    }

    /// Delivers a datagram without a key.
    pub(crate) fn deliver_alone(&mut self, slot: u32, now: Instant, from: SocketAddr, datagram: &mut [u8]) {
        self.deliver(slot, now, from, datagram);
        self.mark(slot);
    }

    /// A datagram was invalid or belonged to no connection.
    pub(crate) const fn count_invalid(&mut self) {
        self.invalid += 1;
    }

    /// Datagrams that were invalid or belonged to no connection.
    pub(crate) const fn invalid_datagrams(&self) -> u64 {
        self.invalid
    }

    fn finish_batch(&mut self, slot: u32, now: Instant) {
        if let Some(connection) = self.slots.at(slot) {
            connection.finish_batch(now);
        }
        self.mark(slot);
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(Due { slot, slept }) = self.schedule.next_due(now) {
            if let Some(connection) = self.slots.at(slot) {
                if let Some(gap) = slept {
                    connection.on_suspended(now, gap);
                }
                connection.handle_timeout(now);
            }
            self.mark(slot);
        }
    }

    // ---- output ----

    fn poll_transmit<'a>(&'a mut self, now: Instant, scratch: &'a mut Batch) -> Option<Transmit<'a>> {
        if let Some(to) = self.protocol.poll_reply(scratch.cleared()) {
            return Some(one(to, scratch));
        }
        let (slot, to, output) = self.next_output(now, scratch.cleared())?;
        match output {
            Output::Scratch | Output::Detour(_) => Some(one(to, scratch)),
            Output::Probe => Some(Transmit { whole: true, ..one(to, scratch) }),
            Output::Data => {
                let (segment_size, bytes) = self.slots.at(slot)?.emit(now, scratch.cleared())?;
                Some(Transmit { to, segment_size, bytes, whole: false })
            }
        }
    }

    /// The next connection with something to send, and its output.
    fn next_output(&mut self, now: Instant, scratch: &mut Vec<u8>) -> Option<(u32, SocketAddr, Output)> {
        while let Some(slot) = self.schedule.next_ready() {
            if let Some(connection) = self.slots.at(slot)
                && let Some((to, output)) = connection.poll(now, scratch)
            {
                self.mark(slot);
                return Some((slot, to, output));
            }
            self.settle(slot, now);
        }
        None
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if !self.schedule.is_idle() || !self.channels.is_empty() || self.protocol.has_reply() {
            return Some(Instant::ZERO);
        }
        self.schedule.deadline()
    }
}

/// Refuses an address that no datagram can reach.
pub(crate) fn check_address(peer: SocketAddr) -> Result<(), ConnectError> {
    if peer.port() == 0 || peer.ip().is_unspecified() { Err(ConnectError::InvalidAddress) } else { Ok(()) }
}

/// The one datagram in the scratch buffer.
fn one(to: SocketAddr, scratch: &Batch) -> Transmit<'_> {
    let bytes = scratch.bytes();
    Transmit { to, segment_size: bytes.len(), bytes, whole: false }
}
