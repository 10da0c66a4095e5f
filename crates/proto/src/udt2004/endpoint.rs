//! All connections of one UDP port. The endpoint routes datagrams, takes turns in sending, and serves timers.

mod table;

use core::net::SocketAddr;
use std::collections::VecDeque;

use farhaul_units::{Instant, Rng, SeqNo};
use farhaul_wire::udt4::{Handshake, Request, SocketId};
use farhaul_wire::udt2004::{Control, SeqNo30};

use self::table::Table;
use super::connection::{Connection, Output, read_handshake};
use super::handshake::from_udt4;
use crate::channel::Channels;
use crate::config::{Config, Entropy, Mode};
use crate::error::ConnectError;
use crate::event::{ConnectionId, Event};
use crate::shell::admission::Admission;
use crate::shell::replies::Replies;
use crate::shell::schedule::{Due, Schedule};
use crate::shell::secrets::Secrets;
use crate::shell::slots::Occupant;
use crate::stats::Stats;
use crate::transport::{Batch, Read, StreamError, Streams, Transmit, Transport};
use crate::udt::handshake::{Listener, Offer, Response, mss_towards};

/// The endpoint of the 2004 protocol on one UDP port: one connection per address, at most one listener.
pub struct Endpoint {
    config: Config,
    rng: Rng,
    secrets: Secrets,
    listener: Option<Listener>,
    admission: Admission,
    table: Table,
    schedule: Schedule,
    replies: Replies,
    events: VecDeque<Event>,
    invalid: u64,
}

impl Endpoint {
    /// An endpoint without connections. [`default_config`](super::default_config) has the settings with the paper's
    /// controller. Settings without use in this protocol (messages, rendezvous, acknowledgement numbers) are ignored.
    pub fn new(config: Config, entropy: Entropy) -> Self {
        Self {
            config,
            rng: Rng::new(entropy.seed),
            secrets: Secrets::new(entropy.cookie_key),
            listener: None,
            admission: Admission::new(entropy.cookie_key),
            table: Table::default(),
            schedule: Schedule::default(),
            replies: Replies::default(),
            events: VecDeque::new(),
            invalid: 0,
        }
    }

    /// Accepts callers from now on. [`Event::Accepted`] reports each.
    pub fn listen(&mut self) {
        self.listener = Some(Listener::new(self.secrets.key(), Mode::Stream));
    }

    /// Stops accepting callers.
    pub fn stop_listening(&mut self) {
        self.listener = None;
    }

    /// Takes an accepted connection for the application, so it leaves the [backlog](Config::backlog). Any use of a
    /// connection does the same.
    pub fn claim(&mut self, id: ConnectionId) {
        let _ = self.command(id, Connection::claim);
    }

    /// Connections held, closing ones included.
    pub fn connections(&self) -> usize {
        self.table.held().connections
    }

    /// Datagrams that were invalid or belonged to no connection.
    pub const fn invalid_datagrams(&self) -> u64 {
        self.invalid
    }

    // ---- input ----

    /// A handshake from an address without a connection. Only a complete one is answered, and with no more bytes than
    /// it has (attack A11).
    fn on_caller(&mut self, now: Instant, from: SocketAddr, packet: &Handshake) {
        let room = self.admission.room(from.ip(), now, self.table.held(), &self.config);
        let Some(listener) = &mut self.listener else { return };
        match listener.on_handshake(packet, from, now, room) {
            Response::Ignore => {}
            Response::Reply(reply) => self.replies.push(from, reply),
            Response::Accept => self.accept(now, from, packet),
        }
    }

    fn accept(&mut self, now: Instant, from: SocketAddr, packet: &Handshake) {
        let offer = self.offer(from, packet.isn, packet.socket_id);
        let (config, rng) = (&self.config, &mut self.rng);
        let id = self.table.install(|id| Connection::accept(id, offer, packet, config, (now, rng)));
        if let Some(id) = id {
            self.admission.on_accepted(from.ip(), now);
            self.schedule.mark_ready(id.slot);
        }
    }

    // ---- bookkeeping ----

    /// This side's contribution to a handshake. The window is half of the buffer. The other half is for data that the
    /// application has not read.
    fn offer(&self, peer: SocketAddr, isn: SeqNo, connection: SocketId) -> Offer {
        let max_flow_window = self.config.udt2004.max_flow_window;
        Offer {
            mode: Mode::Stream,
            isn,
            mss: mss_towards(peer.ip(), self.config.mss),
            flow_window: (self.config.recv_window(max_flow_window) / 2).max(2),
            max_flow_window,
            socket_id: connection,
            peer,
        }
    }

    /// Collects events and the next deadline of a connection without anything to send.
    fn settle(&mut self, slot: u32, now: Instant) {
        let Some(connection) = self.table.at(slot) else { return };
        self.events.extend(connection.take_events());
        if connection.is_done() {
            self.table.forget(slot);
            self.schedule.forget(slot);
            return;
        }
        let deadline = connection.deadline(now);
        if let Some(caller) = self.table.update(slot) {
            self.admission.on_heard(caller.ip());
        }
        if let Some(deadline) = deadline {
            self.schedule.wake_at(slot, deadline);
        }
    }

    fn command<T>(&mut self, id: ConnectionId, command: impl FnOnce(&mut Connection) -> T) -> Result<T, StreamError> {
        let connection = self.table.get_mut(id).ok_or(StreamError::NoSuchConnection)?;
        let result = command(connection);
        self.schedule.mark_ready(id.slot);
        Ok(result)
    }

    /// The next connection with something to send, and its output.
    fn next_output(&mut self, now: Instant, scratch: &mut Vec<u8>) -> Option<(u32, SocketAddr, Output)> {
        while let Some(slot) = self.schedule.next_ready() {
            if let Some(connection) = self.table.at(slot)
                && let Some(output) = connection.poll_output(now, scratch)
            {
                let to = connection.peer();
                self.schedule.mark_ready(slot);
                return Some((slot, to, output));
            }
            self.settle(slot, now);
        }
        None
    }
}

impl Transport for Endpoint {
    fn handle_datagrams(&mut self, now: Instant, arrived: Instant, from: SocketAddr, bytes: &mut [u8], stride: usize) {
        let slot = self.table.find(from);
        if let Some(connection) = slot.and_then(|slot| self.table.at(slot)) {
            connection.begin_batch(arrived);
        }
        for datagram in bytes.chunks(stride.max(1)) {
            let handshake = read_handshake(datagram);
            let connection = slot.and_then(|slot| self.table.at(slot));
            // A caller that does not know that its connection is established may request another cookie.
            let asks_listener = |connection: &&mut Connection| {
                connection.is_accepted() && handshake.is_some_and(|packet| packet.request == Request::Induction)
            };
            match (connection.filter(|connection| !asks_listener(connection)), handshake) {
                (Some(connection), Some(packet)) => {
                    connection.on_handshake(&packet, &self.config, (now, &mut self.rng));
                }
                (Some(connection), None) => self.invalid += u64::from(!connection.on_datagram(datagram, now)),
                (None, Some(packet)) => self.on_caller(now, from, &packet),
                (None, None) => self.invalid += 1,
            }
        }
        if let Some(slot) = slot {
            if let Some(connection) = self.table.at(slot) {
                connection.finish_batch(now);
            }
            self.schedule.mark_ready(slot);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(Due { slot, slept }) = self.schedule.next_due(now) {
            if let Some(connection) = self.table.at(slot) {
                if let Some(gap) = slept {
                    connection.on_suspended(now, gap);
                }
                connection.handle_timeout(now);
            }
            self.schedule.mark_ready(slot);
        }
    }

    fn poll_transmit<'a>(&'a mut self, now: Instant, scratch: &'a mut Batch) -> Option<Transmit<'a>> {
        if let Some((to, reply)) = self.replies.pop() {
            Control::Handshake(from_udt4(&reply)).encode(scratch.cleared());
            return Some(Transmit { to, segment_size: scratch.bytes().len(), bytes: scratch.bytes() });
        }
        let (slot, to, output) = self.next_output(now, scratch.cleared())?;
        match output {
            Output::Scratch => {
                let bytes = scratch.bytes();
                Some(Transmit { to, segment_size: bytes.len(), bytes })
            }
            Output::Data(transmission) => {
                let (segment_size, bytes) = self.table.at(slot)?.emit(transmission, now)?;
                Some(Transmit { to, segment_size, bytes })
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if !self.schedule.is_idle() || !self.replies.is_empty() {
            return Some(Instant::ZERO);
        }
        self.schedule.deadline()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }
}

impl Channels for Endpoint {}

impl Streams for Endpoint {
    /// # Errors
    /// As for every transport. Also [`ConnectError::AlreadyConnected`], because two addresses have one connection at a
    /// time.
    fn connect(&mut self, now: Instant, peer: SocketAddr) -> Result<ConnectionId, ConnectError> {
        if peer.port() == 0 || peer.ip().is_unspecified() {
            return Err(ConnectError::InvalidAddress);
        }
        if self.table.find(peer).is_some() {
            return Err(ConnectError::AlreadyConnected);
        }
        if self.connections() >= self.config.max_connections {
            return Err(ConnectError::TooManyConnections(self.config.max_connections));
        }
        let isn = self.config.udt2004.initial_seq.unwrap_or_else(|| SeqNo::new(self.secrets.draw()));
        let isn = SeqNo::new(SeqNo30::from(isn).value());
        // Never zero, which means no connection.
        let connection = SocketId::new(self.secrets.draw() | 1);
        let offer = self.offer(peer, isn, connection);
        let config = &self.config;
        let id = self.table.install(|id| Some(Connection::call(id, offer, config, now)));
        let id = id.expect("a call is a connection from the start");
        self.schedule.mark_ready(id.slot);
        Ok(id)
    }

    fn write(&mut self, now: Instant, id: ConnectionId, data: &[u8]) -> Result<usize, StreamError> {
        self.command(id, |connection| connection.write(now, data))?
    }

    fn writable(&self, id: ConnectionId) -> usize {
        self.table.get(id).map_or(0, Connection::writable)
    }

    fn read(&mut self, now: Instant, id: ConnectionId, out: &mut [u8]) -> Result<Read, StreamError> {
        self.command(id, |connection| connection.read(now, out))?
    }

    fn readable(&self, id: ConnectionId) -> usize {
        self.table.get(id).map_or(0, Connection::readable)
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
        self.table.get(id).is_some_and(Connection::is_leaving)
    }

    fn peer(&self, id: ConnectionId) -> Option<SocketAddr> {
        self.table.get(id).map(Connection::peer)
    }

    fn stats(&self, now: Instant, id: ConnectionId) -> Option<Stats> {
        self.table.get(id).map(|connection| connection.stats(now))
    }
}
