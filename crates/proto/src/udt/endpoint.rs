//! All connections of one UDP port. The endpoint routes datagrams, takes turns in sending, and serves timers.

mod table;

use core::net::SocketAddr;
use std::collections::VecDeque;

use farhaul_units::{Instant, Rng, SeqNo};
use farhaul_wire::udt4::{Control, Handshake, Request, SocketId, Timestamp, destination, is_control};

use self::table::Table;
use super::connection::{Connection, Output};
use super::handshake::{Listener, Offer, Response, mss_towards};
use super::messages::{Message, MessageOptions};
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

/// Options for opening a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectOptions {
    /// Stream or messages.
    pub mode: Mode,
    /// Meet a peer that calls at the same time, in place of calling a listener (`UDT_RENDEZVOUS`).
    pub rendezvous: bool,
}

/// The UDT4 endpoint of one UDP port (UDT's multiplexer): any number of connections, at most one listener.
///
/// ```text
/// datagrams ─▶ by socket id ─▶ Connection ─▶ events
///              id 0 ─▶ Listener, or the rendezvous with that address
/// Connection ─▶ ready queue ─▶ one train each in turn ─▶ datagrams
/// ```
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
    /// An endpoint without connections.
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

    /// Accepts callers of `mode` from now on. [`Event::Accepted`] reports each.
    pub fn listen(&mut self, mode: Mode) {
        self.listener = Some(Listener::new(self.secrets.key(), mode));
    }

    /// Stops accepting callers.
    pub fn stop_listening(&mut self) {
        self.listener = None;
    }

    /// Opens a connection with options. See [`Streams::connect`].
    ///
    /// # Errors
    /// As for [`Streams::connect`]. A second rendezvous with the same address is refused.
    pub fn connect_with(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        options: ConnectOptions,
    ) -> Result<ConnectionId, ConnectError> {
        if peer.port() == 0 || peer.ip().is_unspecified() {
            return Err(ConnectError::InvalidAddress);
        }
        if options.rendezvous && self.table.find_meeting(peer).is_some() {
            return Err(ConnectError::RendezvousUnderWay);
        }
        let isn = self.config.udt.initial_seq.unwrap_or_else(|| SeqNo::new(self.secrets.draw()));
        let (id, offer) = self.reserve(peer, options.mode, isn)?;
        if options.rendezvous {
            self.table.install(Connection::meet(id, offer, &self.config, now));
        } else {
            self.table.install(Connection::call(id, offer, &self.config, now));
        }
        self.schedule.mark_ready(id.slot);
        Ok(id)
    }

    /// Takes one message for sending. Returns false if there is no room now. Then [`Event::Writable`] follows.
    ///
    /// # Errors
    /// The connection is over, is not in message mode or was finished. Or the message exceeds the peer's window.
    pub fn send_message(
        &mut self,
        now: Instant,
        id: ConnectionId,
        message: &[u8],
        options: MessageOptions,
    ) -> Result<bool, StreamError> {
        self.command(id, |connection| connection.send_message(now, message, options))?
    }

    /// Copies the next message into `out`.
    ///
    /// # Errors
    /// The connection was lost, or closed while data was known to be missing, or is not in message mode.
    pub fn recv_message(&mut self, _now: Instant, id: ConnectionId, out: &mut [u8]) -> Result<Message, StreamError> {
        self.command(id, |connection| connection.recv_message(out))?
    }

    /// Tells the peer that this side cannot store the data (error signal, type 8).
    pub fn signal_error(&mut self, id: ConnectionId, code: u32) {
        let _ = self.command(id, |connection| connection.signal_error(code));
    }

    /// Takes an accepted connection for the application, so it leaves the [backlog](Config::backlog). Any use of a
    /// connection does the same.
    pub fn claim(&mut self, id: ConnectionId) {
        let _ = self.command(id, Connection::claim);
    }

    /// Sends a user-defined control packet (type 0x7FFF) to the peer's controller. Not reliable.
    pub fn send_custom(&mut self, id: ConnectionId, kind: u16, body: &[u8]) {
        let _ = self.command(id, |connection| connection.send_custom(kind, body));
    }

    /// Connections held, closing ones included.
    pub fn connections(&self) -> usize {
        self.table.held().connections
    }

    /// Datagrams that were invalid or addressed to no connection.
    pub const fn invalid_datagrams(&self) -> u64 {
        self.invalid
    }

    // ---- input ----

    /// A datagram for socket id 0, from a caller or the peer of a rendezvous.
    fn on_unaddressed(&mut self, now: Instant, from: SocketAddr, datagram: &[u8]) {
        if let Some(slot) = self.table.find_meeting(from) {
            self.deliver(slot, now, from, datagram);
            self.schedule.mark_ready(slot);
            return;
        }
        // Only a complete handshake is answered, and with no more bytes than it has (attack A11).
        let Ok((_, _, Control::Handshake(packet))) = Control::decode(datagram) else {
            self.invalid += 1;
            return;
        };
        if packet.request == Request::Conclusion
            && let Some(slot) = self.table.find_caller(from, packet.socket_id)
            && let Some(connection) = self.table.at(slot)
        {
            connection.repeat_answer(&packet, now);
            self.schedule.mark_ready(slot);
            return;
        }
        let room = self.admission.room(from.ip(), now, self.table.held(), &self.config);
        let Some(listener) = &mut self.listener else { return };
        match listener.on_handshake(&packet, from, now, room) {
            Response::Ignore => {}
            Response::Reply(reply) => self.replies.push(from, reply),
            Response::Accept => self.accept(now, from, &packet),
        }
    }

    fn accept(&mut self, now: Instant, from: SocketAddr, packet: &Handshake) {
        let Some(mode) = self.listener.as_ref().map(Listener::mode) else { return };
        let Ok((id, offer)) = self.reserve(from, mode, packet.isn) else { return };
        match Connection::accept(id, offer, packet, &self.config, (now, &mut self.rng)) {
            Ok(connection) => {
                self.admission.on_accepted(from.ip(), now);
                self.table.install(connection);
                self.schedule.mark_ready(id.slot);
            }
            Err(_) => self.table.unreserve(id.slot, offer.socket_id),
        }
    }

    fn deliver(&mut self, slot: u32, now: Instant, from: SocketAddr, datagram: &[u8]) {
        let Some(connection) = self.table.at(slot) else { return };
        if connection.peer() != from {
            self.invalid += 1;
            return;
        }
        if !connection.on_datagram(datagram, &self.config, (now, &mut self.rng)) {
            self.invalid += 1;
        }
    }

    fn finish_batch(&mut self, slot: u32, now: Instant) {
        if let Some(connection) = self.table.at(slot) {
            connection.finish_batch(now);
        }
        self.schedule.mark_ready(slot);
    }

    // ---- bookkeeping ----

    /// Reserves a slot and a socket id, and makes the offer for a new connection.
    fn reserve(&mut self, peer: SocketAddr, mode: Mode, isn: SeqNo) -> Result<(ConnectionId, Offer), ConnectError> {
        if self.connections() >= self.config.max_connections {
            return Err(ConnectError::TooManyConnections(self.config.max_connections));
        }
        let socket_id = self.new_socket_id();
        let id = self.table.reserve(socket_id);
        let max_flow_window = self.config.udt.max_flow_window;
        let flow_window = self.config.recv_window(max_flow_window);
        let mss = mss_towards(peer.ip(), self.config.mss);
        Ok((id, Offer { mode, isn, mss, flow_window, max_flow_window, socket_id, peer }))
    }

    fn new_socket_id(&mut self) -> SocketId {
        loop {
            let id = SocketId::new(self.secrets.draw());
            if !id.is_none() && self.table.find(id).is_none() {
                return id;
            }
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
        // Datagrams of one call usually belong to one connection, so it is looked up once.
        let mut current: Option<(u32, u32)> = None;
        for datagram in bytes.chunks(stride.max(1)) {
            let Some(to) = destination(datagram) else {
                self.invalid += 1;
                continue;
            };
            if to.is_none() {
                if is_control(datagram) {
                    self.on_unaddressed(now, from, datagram);
                }
                continue;
            }
            let slot = match current {
                Some((id, slot)) if id == to.value() => slot,
                _ => {
                    let Some(slot) = self.table.find(to) else {
                        self.invalid += 1;
                        continue;
                    };
                    if let Some((_, before)) = current.replace((to.value(), slot)) {
                        self.finish_batch(before, now);
                    }
                    if let Some(connection) = self.table.at(slot) {
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
            let out = scratch.cleared();
            Control::Handshake(reply).encode(Timestamp::ZERO, reply.socket_id, out);
            return Some(Transmit { to, segment_size: scratch.bytes().len(), bytes: scratch.bytes() });
        }
        let (slot, to, output) = self.next_output(now, scratch.cleared())?;
        match output {
            Output::Scratch => {
                let bytes = scratch.bytes();
                Some(Transmit { to, segment_size: bytes.len(), bytes })
            }
            Output::Data(transmission) => {
                let connection = self.table.at(slot)?;
                let (segment_size, bytes) = connection.emit(transmission, now)?;
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
    fn connect(&mut self, now: Instant, peer: SocketAddr) -> Result<ConnectionId, ConnectError> {
        self.connect_with(now, peer, ConnectOptions::default())
    }

    fn write(&mut self, now: Instant, id: ConnectionId, data: &[u8]) -> Result<usize, StreamError> {
        self.command(id, |connection| connection.write(now, data))?
    }

    fn writable(&self, id: ConnectionId) -> usize {
        self.table.get(id).map_or(0, Connection::writable)
    }

    fn read(&mut self, _now: Instant, id: ConnectionId, out: &mut [u8]) -> Result<Read, StreamError> {
        self.command(id, |connection| connection.read(out))?
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
