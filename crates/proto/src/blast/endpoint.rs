//! All connections of one port. The endpoint routes datagrams by tag and channels by id, takes turns in sending, and
//! serves timers.

use core::net::SocketAddr;
use std::collections::{BTreeMap, VecDeque};

use farhaul_units::{Instant, Rng};
use farhaul_wire::blast::Tag;

use super::connection::{Connection, Identity, Output};
use super::engine::Protocol;
use crate::channel::{ChannelEnd, ChannelOutput, Channels};
use crate::config::{Config, Entropy};
use crate::error::ConnectError;
use crate::event::{ConnectionId, Event};
use crate::shell::admission::Admission;
use crate::shell::handshake::{Room, mss_towards};
use crate::shell::line::Request;
use crate::shell::schedule::{Due, Schedule};
use crate::shell::secrets::Secrets;
use crate::shell::slots::{Occupant, Slots};
use crate::stats::Stats;
use crate::transport::{Batch, Read, StreamError, Streams, Transmit, Transport};

/// Bytes of IPv4 and of UDP headers, which the packet size includes.
const HEADERS: u32 = 28;

/// The endpoint of a blast protocol on one port of UDP and TCP.
pub(crate) struct Endpoint<P: Protocol> {
    config: Config,
    options: P::Options,
    rng: Rng,
    secrets: Secrets,
    listens: bool,
    admission: Admission,
    slots: Slots<Connection<P>>,
    by_tag: BTreeMap<Tag, u32>,
    schedule: Schedule,
    /// Connections whose channels may have a request.
    channels: VecDeque<u32>,
    events: VecDeque<Event>,
    invalid: u64,
}

impl<P: Protocol> Endpoint<P> {
    /// An endpoint without connections.
    pub(crate) fn new(config: Config, options: P::Options, entropy: Entropy) -> Self {
        Self {
            config,
            options,
            rng: Rng::new(entropy.seed),
            secrets: Secrets::new(entropy.cookie_key),
            listens: false,
            admission: Admission::new(entropy.cookie_key),
            slots: Slots::default(),
            by_tag: BTreeMap::new(),
            schedule: Schedule::default(),
            channels: VecDeque::new(),
            events: VecDeque::new(),
            invalid: 0,
        }
    }

    /// Accepts callers from now on. [`Event::Accepted`] reports each.
    pub(crate) fn listen(&mut self) {
        self.listens = true;
    }

    /// Stops accepting callers.
    pub(crate) fn stop_listening(&mut self) {
        self.listens = false;
    }

    /// Takes an accepted connection for the application, so it leaves the [backlog](Config::backlog).
    pub(crate) fn claim(&mut self, id: ConnectionId) {
        let _ = self.command(id, Connection::claim);
    }

    /// Connections held, closing ones included.
    pub(crate) fn connections(&self) -> usize {
        self.slots.held().connections
    }

    /// Datagrams that were invalid or belonged to no connection.
    pub(crate) const fn invalid_datagrams(&self) -> u64 {
        self.invalid
    }

    fn identity(&mut self, peer: SocketAddr) -> Identity {
        let tag = loop {
            let tag = Tag(u64::from(self.secrets.draw()) << 32 | u64::from(self.secrets.draw()));
            if !self.by_tag.contains_key(&tag) {
                break tag;
            }
        };
        let datagram = u16::try_from(mss_towards(peer.ip(), self.config.mss) - HEADERS).unwrap_or(u16::MAX);
        Identity { id: self.slots.reserve(), peer, tag, datagram }
    }

    fn install(&mut self, connection: Connection<P>) -> ConnectionId {
        let id = connection.id();
        self.by_tag.insert(connection.tag(), id.slot);
        self.slots.install(connection);
        self.mark(id.slot);
        id
    }

    /// The connection may have something to send, to report, or to ask of the host.
    fn mark(&mut self, slot: u32) {
        self.schedule.mark_ready(slot);
        if self.channels.back() != Some(&slot) {
            self.channels.push_back(slot);
        }
    }

    fn command<T>(
        &mut self,
        id: ConnectionId,
        command: impl FnOnce(&mut Connection<P>) -> T,
    ) -> Result<T, StreamError> {
        let connection = self.slots.get_mut(id).ok_or(StreamError::NoSuchConnection)?;
        let result = command(connection);
        self.mark(id.slot);
        Ok(result)
    }

    /// Collects events and the next deadline of a connection without anything to send.
    fn settle(&mut self, slot: u32, now: Instant) {
        let Some(connection) = self.slots.at(slot) else { return };
        self.events.extend(connection.take_events());
        if connection.is_done() {
            let tag = connection.tag();
            self.by_tag.remove(&tag);
            self.slots.forget(slot);
            self.schedule.forget(slot);
            return;
        }
        let deadline = connection.deadline(now);
        if let Some(caller) = self.slots.update(slot) {
            self.admission.on_heard(caller.ip());
        }
        if let Some(deadline) = deadline {
            self.schedule.wake_at(slot, deadline);
        }
    }

    /// The next connection with datagrams to send, and its output.
    fn next_output(&mut self, now: Instant, scratch: &mut Vec<u8>) -> Option<(u32, SocketAddr, Output)> {
        while let Some(slot) = self.schedule.next_ready() {
            if let Some(connection) = self.slots.at(slot)
                && let Some(to) = connection.way()
                && let Some(output) = connection.poll_output(now, scratch)
            {
                self.mark(slot);
                return Some((slot, to, output));
            }
            self.settle(slot, now);
        }
        None
    }
}

impl<P: Protocol> Transport for Endpoint<P> {
    fn handle_datagrams(&mut self, now: Instant, _arrived: Instant, from: SocketAddr, bytes: &mut [u8], stride: usize) {
        // Datagrams of one call usually belong to one connection, so it is looked up once.
        let mut current: Option<(Tag, u32)> = None;
        for datagram in bytes.chunks(stride.max(1)) {
            let Ok((tag, body)) = Tag::split(datagram) else {
                self.invalid += 1;
                continue;
            };
            let slot = match current {
                Some((known, slot)) if known == tag => slot,
                _ => {
                    let Some(&slot) = self.by_tag.get(&tag) else {
                        self.invalid += 1;
                        continue;
                    };
                    if let Some((_, before)) = current.replace((tag, slot)) {
                        self.end_batch(before, now);
                    }
                    slot
                }
            };
            if self.slots.at(slot).is_some_and(|connection| !connection.on_datagram(now, from, body)) {
                self.invalid += 1;
            }
        }
        if let Some((_, slot)) = current {
            self.end_batch(slot, now);
        }
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

    fn poll_transmit<'a>(&'a mut self, now: Instant, scratch: &'a mut Batch) -> Option<Transmit<'a>> {
        let (slot, to, output) = self.next_output(now, scratch.cleared())?;
        match output {
            Output::Scratch => {
                let bytes = scratch.bytes();
                Some(Transmit { to, segment_size: bytes.len(), bytes })
            }
            Output::Data(plan) => {
                let (segment_size, bytes) = self.slots.at(slot)?.emit(now, plan)?;
                Some(Transmit { to, segment_size, bytes })
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if !self.schedule.is_idle() || !self.channels.is_empty() {
            return Some(Instant::ZERO);
        }
        self.schedule.deadline()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }
}

impl<P: Protocol> Endpoint<P> {
    fn end_batch(&mut self, slot: u32, now: Instant) {
        if let Some(connection) = self.slots.at(slot) {
            connection.end_batch(now);
        }
        self.mark(slot);
    }
}

impl<P: Protocol> Channels for Endpoint<P> {
    fn needs_channels(&self) -> bool {
        true
    }

    fn accept_channel(&mut self, now: Instant, from: SocketAddr) -> Option<ConnectionId> {
        let room = self.admission.room(from.ip(), now, self.slots.held(), &self.config);
        if !self.listens || room != Room::Free {
            return None;
        }
        let identity = self.identity(from);
        self.admission.on_accepted(from.ip(), now);
        let connection = Connection::accept(identity, &self.config, now);
        Some(self.install(connection))
    }

    fn channel_opened(&mut self, now: Instant, id: ConnectionId) {
        let _ = self.command(id, |connection| connection.channel_opened(now));
    }

    fn handle_channel(&mut self, now: Instant, id: ConnectionId, bytes: &[u8]) {
        let Some(connection) = self.slots.get_mut(id) else { return };
        connection.handle_channel(bytes, &self.options, &self.config, (now, &mut self.rng));
        self.mark(id.slot);
    }

    fn channel_drained(&mut self, _now: Instant, id: ConnectionId) {
        let _ = self.command(id, Connection::channel_drained);
    }

    fn channel_ended(&mut self, now: Instant, id: ConnectionId, end: ChannelEnd) {
        let _ = self.command(id, |connection| connection.channel_ended(now, end));
    }

    fn poll_channel(&mut self, now: Instant) -> Option<ChannelOutput<'_>> {
        let (slot, request) = loop {
            let slot = *self.channels.front()?;
            let connection = self.slots.at(slot);
            match connection.and_then(|connection| connection.poll_channel(now, &self.options)) {
                Some(request) => break (slot, request),
                None => {
                    self.channels.pop_front();
                }
            }
        };
        // The request may have changed what the connection waits for.
        self.schedule.mark_ready(slot);
        let connection = self.slots.at(slot)?;
        let id = connection.id();
        Some(match request {
            Request::Open => ChannelOutput::Open(id, connection.peer()),
            Request::Send => ChannelOutput::Send(id, connection.channel_bytes()),
            Request::Finish => ChannelOutput::Finish(id),
            Request::Reset => ChannelOutput::Reset(id),
        })
    }
}

impl<P: Protocol> Streams for Endpoint<P> {
    fn connect(&mut self, now: Instant, peer: SocketAddr) -> Result<ConnectionId, ConnectError> {
        if peer.port() == 0 || peer.ip().is_unspecified() {
            return Err(ConnectError::InvalidAddress);
        }
        if self.slots.held().connections >= self.config.max_connections {
            return Err(ConnectError::TooManyConnections(self.config.max_connections));
        }
        let identity = self.identity(peer);
        let connection = Connection::call(identity, &self.config, now);
        Ok(self.install(connection))
    }

    fn write(&mut self, now: Instant, id: ConnectionId, data: &[u8]) -> Result<usize, StreamError> {
        self.command(id, |connection| connection.write(now, data))?
    }

    fn writable(&self, id: ConnectionId) -> usize {
        self.slots.get(id).map_or(0, Connection::writable)
    }

    fn read(&mut self, _now: Instant, id: ConnectionId, out: &mut [u8]) -> Result<Read, StreamError> {
        self.command(id, |connection| connection.read(out))?
    }

    fn readable(&self, id: ConnectionId) -> usize {
        self.slots.get(id).map_or(0, Connection::readable)
    }

    fn finish(&mut self, now: Instant, id: ConnectionId) {
        let _ = self.command(id, |connection| connection.finish(now));
    }

    fn close(&mut self, now: Instant, id: ConnectionId) {
        let _ = self.command(id, |connection| connection.close(now));
    }

    fn abort(&mut self, now: Instant, id: ConnectionId) {
        let _ = self.command(id, |connection| connection.abort(now));
    }

    fn release(&mut self, now: Instant, id: ConnectionId) {
        let _ = self.command(id, |connection| connection.release(now));
    }

    fn is_leaving(&self, id: ConnectionId) -> bool {
        self.slots.get(id).is_some_and(Connection::is_leaving)
    }

    fn peer(&self, id: ConnectionId) -> Option<SocketAddr> {
        self.slots.get(id).map(Occupant::peer)
    }

    fn stats(&self, now: Instant, id: ConnectionId) -> Option<Stats> {
        self.slots.get(id).map(|connection| connection.stats(now))
    }
}
