//! The public face of every endpoint: the traits that drivers and applications call.

use core::net::SocketAddr;

use farhaul_units::Instant;

use super::{Shell, check_address};
use crate::error::ConnectError;
use crate::event::{ConnectionId, Event};
use crate::secure;
use crate::shell::connection::Connection;
use crate::shell::protocol::Protocol;
use crate::stats::Stats;
use crate::transport::{Batch, Read, StreamError, Streams, Transmit, Transport};

/// A public endpoint around a shell. It has [`Transport`] and [`Streams`] by this alone.
pub(crate) trait Wraps {
    type Protocol: Protocol;

    fn shell(&self) -> &Shell<Self::Protocol>;

    fn shell_mut(&mut self) -> &mut Shell<Self::Protocol>;

    /// Datagrams that arrived. See [`Transport::handle_datagrams`].
    fn receive(&mut self, now: Instant, arrived: Instant, from: SocketAddr, bytes: &mut [u8], stride: usize) {
        self.shell_mut().handle_datagrams(now, arrived, from, bytes, stride);
    }

    /// The next event that the application hears.
    fn next_event(&mut self) -> Option<Event> {
        self.shell_mut().next_event()
    }

    /// See [`Transport::envelopes`].
    fn envelopes_of_connections(&mut self) -> Option<&mut secure::Endpoint> {
        None
    }
}

impl<E: Wraps> Transport for E {
    fn handle_datagrams(&mut self, now: Instant, arrived: Instant, from: SocketAddr, bytes: &mut [u8], stride: usize) {
        self.receive(now, arrived, from, bytes, stride);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.shell_mut().handle_timeout(now);
    }

    fn poll_transmit<'a>(&'a mut self, now: Instant, scratch: &'a mut Batch) -> Option<Transmit<'a>> {
        self.shell_mut().poll_transmit(now, scratch)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.shell().poll_timeout()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.next_event()
    }

    fn envelopes(&mut self) -> Option<&mut secure::Endpoint> {
        self.envelopes_of_connections()
    }
}

impl<E: Wraps> Streams for E {
    fn connect(&mut self, now: Instant, peer: SocketAddr) -> Result<ConnectionId, ConnectError> {
        check_address(peer)?;
        Protocol::connect(self.shell_mut(), now, peer)
    }

    fn write(&mut self, now: Instant, id: ConnectionId, data: &[u8]) -> Result<usize, StreamError> {
        self.shell_mut().command(id, |connection| connection.write(now, data))?
    }

    fn writable(&self, id: ConnectionId) -> usize {
        self.shell().get(id).map_or(0, Connection::writable)
    }

    fn read(&mut self, now: Instant, id: ConnectionId, out: &mut [u8]) -> Result<Read, StreamError> {
        self.shell_mut().command(id, |connection| connection.read(now, out))?
    }

    fn readable(&self, id: ConnectionId) -> usize {
        self.shell().get(id).map_or(0, Connection::readable)
    }

    fn has_half_close(&self, id: ConnectionId) -> bool {
        self.shell().get(id).is_some_and(Connection::has_half_close)
    }

    fn finish_sending(&mut self, now: Instant, id: ConnectionId) -> Result<(), StreamError> {
        self.shell_mut().command(id, |connection| connection.finish_sending(now))?
    }

    fn finish(&mut self, now: Instant, id: ConnectionId) {
        let _ = self.shell_mut().command(id, |connection| connection.finish(now));
    }

    fn close(&mut self, now: Instant, id: ConnectionId) {
        let _ = self.shell_mut().command(id, |connection| connection.close(now));
    }

    fn abort(&mut self, now: Instant, id: ConnectionId) {
        let _ = self.shell_mut().command(id, |connection| connection.abort(now));
    }

    fn release(&mut self, now: Instant, id: ConnectionId) {
        let _ = self.shell_mut().command(id, |connection| connection.release(now));
    }

    fn is_leaving(&self, id: ConnectionId) -> bool {
        self.shell().get(id).is_some_and(Connection::is_leaving)
    }

    fn peer(&self, id: ConnectionId) -> Option<SocketAddr> {
        self.shell().get(id).map(Connection::address)
    }

    fn stats(&self, now: Instant, id: ConnectionId) -> Option<Stats> {
        self.shell().get(id).map(|connection| connection.stats(now))
    }
}
