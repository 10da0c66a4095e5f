//! The commands of the application.

#[cfg(test)]
use core::any::Any;
use core::net::{IpAddr, SocketAddr};

use bytes::Bytes;
use farhaul_cc::Controller;
use farhaul_units::{Instant, Network, Rate};

use super::{Endpoint, check_address};
use crate::config::Mode;
#[cfg(test)]
use crate::endpoint::Demultiplexer;
use crate::endpoint::connection::Connection;
use crate::endpoint::protocol::Established;
use crate::error::ConnectError;
use crate::event::ConnectionId;
use crate::stats::Stats;
use crate::transport::{ConnectOptions, Message, MessageOptions, Protection, Read, Readiness, StreamError, Streams};

/// Messages, rendezvous, error signals and custom packets exist in some protocols only. In all others, calls with a result
/// fail, and the rest do nothing.
impl Endpoint {
    /// Carries out a command of the application on a connection.
    pub(super) fn command<T>(
        &mut self,
        id: ConnectionId,
        command: impl FnOnce(&mut Connection) -> T,
    ) -> Result<T, StreamError> {
        self.multiplexer.command(id, command)
    }

    /// Changes a connection; `None` if it is not established.
    fn with_established<T>(&mut self, id: ConnectionId, change: impl FnOnce(&mut dyn Established) -> T) -> Option<T> {
        self.command(id, |connection| connection.established_mut().map(change)).ok()?
    }

    fn get(&self, id: ConnectionId) -> Option<&Connection> {
        self.multiplexer.table.slots.get(id)
    }

    /// Changes an established connection of this type; `None` if this one is of another.
    #[cfg(any(test, feature = "testing"))]
    pub fn on_established<T: Established, R>(
        &mut self,
        id: ConnectionId,
        change: impl FnOnce(&mut T) -> R,
    ) -> Option<R> {
        self.command(id, |connection| connection.established_as_mut().map(change)).ok()?
    }

    /// The demultiplexer of the connections that this side opens.
    #[cfg(test)]
    pub(crate) fn first_demultiplexer<T: Demultiplexer>(&mut self) -> Option<&mut T> {
        (self.multiplexer.protocol_mut(0).0 as &mut dyn Any).downcast_mut()
    }

    // ---- opening ----

    /// Accepts callers of `mode` from now on. [`Event::Accepted`](crate::Event::Accepted) reports each.
    ///
    /// # Errors
    /// A protocol of the port has no such mode: [`ConnectError::StreamsOnly`].
    pub fn listen(&mut self, mode: Mode) -> Result<(), ConnectError> {
        self.multiplexer.protocols.iter_mut().try_for_each(|protocol| protocol.demultiplexer.listen(Some(mode)))
    }

    /// Stops accepting callers.
    pub fn stop_listening(&mut self) {
        for protocol in &mut self.multiplexer.protocols {
            // Every protocol can listen no more.
            let _ = protocol.demultiplexer.listen(None);
        }
    }

    /// Opens a connection with options. See [`Streams::connect`].
    ///
    /// # Errors
    /// As for [`Streams::connect`]. Also, the protocol has no such option: [`ConnectError::StreamsOnly`]. A second
    /// rendezvous with the same address is refused.
    pub fn connect_with(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        options: ConnectOptions,
    ) -> Result<ConnectionId, ConnectError> {
        check_address(peer)?;
        let (demultiplexer, mut connections) = self.multiplexer.protocol_mut(0);
        demultiplexer.connect(&mut connections, now, peer, options)
    }

    /// Takes an accepted connection for the application, so it leaves the [backlog](crate::Config::backlog). Any use of a
    /// connection does the same.
    pub fn claim(&mut self, id: ConnectionId) {
        let _ = self.command(id, Connection::claim);
    }

    /// The address of this side that the peer of a connection asked; `None` if this side called, or if the port has one alone.
    pub fn asked(&self, id: ConnectionId) -> Option<IpAddr> {
        self.get(id)?.between().local
    }

    /// Caps the sending rate of a connection from now on, headers and retransmissions included; `None` for no cap. It
    /// replaces [`Config::max_rate`](crate::Config::max_rate). Returns false if the connection is not established, or its
    /// protocol cannot change its cap.
    pub fn set_max_rate(&mut self, now: Instant, id: ConnectionId, rate: Option<Rate>) -> bool {
        self.with_established(id, |established| established.set_max_rate(now, rate)).unwrap_or(false)
    }

    /// Replaces the congestion controller of a connection in mid-transfer. Returns false if the connection is not
    /// established, or its protocol has none that can be replaced.
    pub fn set_controller(&mut self, now: Instant, id: ConnectionId, controller: Box<dyn Controller>) -> bool {
        self.with_established(id, |established| established.set_controller(now, controller)).unwrap_or(false)
    }

    // ---- messages, signals ----

    /// Takes one message for sending. Returns false if there is no room now. Then
    /// [`Event::Writable`](crate::Event::Writable) follows.
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

    /// What the connection permits now, in both modes. [`Event::Readable`](crate::Event::Readable) follows if it is not
    /// readable, and [`Event::Writable`](crate::Event::Writable) if it is not writable.
    ///
    /// # Errors
    /// The connection was released.
    pub fn readiness(&mut self, id: ConnectionId) -> Result<Readiness, StreamError> {
        self.command(id, Connection::readiness)
    }

    /// Tells the peer that this side cannot store the data (UDT's error signal, type 8).
    pub fn signal_error(&mut self, id: ConnectionId, code: u32) {
        self.with_established(id, |established| established.signal_error(code));
    }

    /// Sends a user-defined control packet (UDT's type 0x7FFF) to the peer's controller. Not reliable.
    pub fn send_custom(&mut self, id: ConnectionId, kind: u16, body: &[u8]) {
        self.with_established(id, |established| established.send_custom(kind, body));
    }

    // ---- who may call ----

    /// Admits plain callers from these networks alone, and ends the plain connections of others. Returns false if the
    /// endpoint has no such callers beside its secure ones.
    pub fn admit_plain(&mut self, now: Instant, networks: &[Network]) -> bool {
        let Some(at) =
            self.multiplexer.protocols.iter_mut().position(|protocol| protocol.demultiplexer.admit(networks))
        else {
            return false;
        };
        let is_admitted = |ip| networks.iter().any(|network| network.contains(ip));
        for id in self.multiplexer.table.slots.ids() {
            let of_it = self.get(id).filter(|connection| connection.protocol() == at);
            if of_it.is_some_and(|connection| !is_admitted(connection.address().ip())) {
                self.abort(now, id);
            }
        }
        true
    }

    /// Aborts the secure connections of callers that `admits` refuses. Its arguments are the address from which a caller
    /// called, and the protection of the connection. Measured streams count as connections. Returns how many it ended.
    pub fn end_callers(&mut self, now: Instant, mut admits: impl FnMut(SocketAddr, &Protection) -> bool) -> usize {
        let unwelcome = self.unwelcome(&mut admits);
        unwelcome.iter().for_each(|id| self.abort(now, *id));
        unwelcome.len()
    }

    /// The connections of callers that `admits` refuses.
    fn unwelcome(&self, admits: &mut dyn FnMut(SocketAddr, &Protection) -> bool) -> Vec<ConnectionId> {
        let is_unwelcome = |id: &ConnectionId| {
            let Some(connection) = self.get(*id).filter(|one| one.is_accepted() && !one.is_closed()) else {
                return false;
            };
            connection.protection().is_some_and(|protection| !admits(connection.peer(), protection))
        };
        self.multiplexer.table.slots.ids().into_iter().filter(is_unwelcome).collect()
    }

    // ---- facts ----

    /// Connections held, closing ones included.
    pub fn connections(&self) -> usize {
        self.multiplexer.table.slots.connections()
    }

    /// Datagrams that were invalid or addressed to no connection.
    pub const fn invalid_datagrams(&self) -> u64 {
        self.multiplexer.table.invalid_datagrams()
    }

    /// The protection of a connection; `None` if it has none, or before it is established.
    pub fn protection(&self, id: ConnectionId) -> Option<&Protection> {
        self.get(id)?.protection()
    }

    /// Whether the connection is neither encrypted nor authenticated. This never changes, and holds for connections that are
    /// over, too.
    pub fn is_plain(&self, id: ConnectionId) -> bool {
        let protocol = self.get(id).map_or(0, Connection::protocol);
        self.multiplexer.protocols[protocol].demultiplexer.is_plain()
    }
}

impl Streams for Endpoint {
    fn connect(&mut self, now: Instant, peer: SocketAddr) -> Result<ConnectionId, ConnectError> {
        self.connect_with(now, peer, ConnectOptions::default())
    }

    fn write(&mut self, now: Instant, id: ConnectionId, data: &[u8]) -> Result<usize, StreamError> {
        self.command(id, |connection| connection.write(now, data))?
    }

    fn write_block(&mut self, now: Instant, id: ConnectionId, block: Bytes) -> Result<usize, StreamError> {
        self.command(id, |connection| connection.write_block(now, block))?
    }

    fn whole_trains(&self, id: ConnectionId, bytes: usize) -> usize {
        self.get(id).and_then(Connection::established).map_or(bytes, |connection| connection.whole_trains(bytes))
    }

    fn writable(&self, id: ConnectionId) -> usize {
        self.get(id).map_or(0, Connection::writable)
    }

    fn read(&mut self, now: Instant, id: ConnectionId, out: &mut [u8]) -> Result<Read, StreamError> {
        self.command(id, |connection| connection.read(now, out))?
    }

    fn read_block(&mut self, now: Instant, id: ConnectionId, block: &mut Bytes) -> Result<Read, StreamError> {
        self.command(id, |connection| connection.read_block(now, block))?
    }

    fn readable(&self, id: ConnectionId) -> usize {
        self.get(id).map_or(0, Connection::readable)
    }

    fn has_half_close(&self, id: ConnectionId) -> bool {
        self.get(id).is_some_and(Connection::has_half_close)
    }

    fn finish_sending(&mut self, now: Instant, id: ConnectionId) -> Result<(), StreamError> {
        self.command(id, |connection| connection.finish_sending(now))?
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

    fn is_closing(&self, id: ConnectionId) -> bool {
        self.get(id).is_some_and(Connection::is_closing)
    }

    fn peer(&self, id: ConnectionId) -> Option<SocketAddr> {
        self.get(id).map(Connection::address)
    }

    fn stats(&self, now: Instant, id: ConnectionId) -> Option<Stats> {
        self.get(id).map(|connection| connection.stats(now))
    }
}
