//! The commands of the application go to the endpoint of the connection's kind.

use core::net::SocketAddr;

use farhaul_units::{Instant, Network};

use super::{Dual, Kind, inner, outer};
use crate::any_endpoint::AnyEndpoint;
use crate::channel::Channels;
use crate::config::Mode;
use crate::error::ConnectError;
use crate::event::ConnectionId;
use crate::secure::Protection;
use crate::stats::Stats;
use crate::transport::{Read, StreamError, Streams};
use crate::udt::{ConnectOptions, Message, MessageOptions};

impl Dual {
    /// The endpoint of a connection, and its id there.
    fn of(&self, id: ConnectionId) -> (&dyn AnyEndpoint, ConnectionId) {
        match inner(id) {
            (Kind::Secure, id) => (&self.secure, id),
            (Kind::Plain, id) => (&self.plain, id),
        }
    }

    /// The same, mutable.
    fn of_mut(&mut self, id: ConnectionId) -> (&mut dyn AnyEndpoint, ConnectionId) {
        match inner(id) {
            (Kind::Secure, id) => (&mut self.secure, id),
            (Kind::Plain, id) => (&mut self.plain, id),
        }
    }
}

impl Streams for Dual {
    fn connect(&mut self, now: Instant, peer: SocketAddr) -> Result<ConnectionId, ConnectError> {
        self.secure.connect(now, peer).map(|id| outer(id, Kind::Secure))
    }

    fn write(&mut self, now: Instant, id: ConnectionId, data: &[u8]) -> Result<usize, StreamError> {
        let (endpoint, id) = self.of_mut(id);
        endpoint.write(now, id, data)
    }

    fn writable(&self, id: ConnectionId) -> usize {
        let (endpoint, id) = self.of(id);
        endpoint.writable(id)
    }

    fn read(&mut self, now: Instant, id: ConnectionId, out: &mut [u8]) -> Result<Read, StreamError> {
        let (endpoint, id) = self.of_mut(id);
        endpoint.read(now, id, out)
    }

    fn readable(&self, id: ConnectionId) -> usize {
        let (endpoint, id) = self.of(id);
        endpoint.readable(id)
    }

    fn has_half_close(&self, id: ConnectionId) -> bool {
        let (endpoint, id) = self.of(id);
        endpoint.has_half_close(id)
    }

    fn finish_sending(&mut self, now: Instant, id: ConnectionId) -> Result<(), StreamError> {
        let (endpoint, id) = self.of_mut(id);
        endpoint.finish_sending(now, id)
    }

    fn finish(&mut self, now: Instant, id: ConnectionId) {
        let (endpoint, id) = self.of_mut(id);
        endpoint.finish(now, id);
    }

    fn close(&mut self, now: Instant, id: ConnectionId) {
        let (endpoint, id) = self.of_mut(id);
        endpoint.close(now, id);
    }

    fn abort(&mut self, now: Instant, id: ConnectionId) {
        let (endpoint, id) = self.of_mut(id);
        endpoint.abort(now, id);
    }

    fn release(&mut self, now: Instant, id: ConnectionId) {
        let (endpoint, id) = self.of_mut(id);
        endpoint.release(now, id);
    }

    fn is_leaving(&self, id: ConnectionId) -> bool {
        let (endpoint, id) = self.of(id);
        endpoint.is_leaving(id)
    }

    fn peer(&self, id: ConnectionId) -> Option<SocketAddr> {
        let (endpoint, id) = self.of(id);
        endpoint.peer(id)
    }

    fn stats(&self, now: Instant, id: ConnectionId) -> Option<Stats> {
        let (endpoint, id) = self.of(id);
        endpoint.stats(now, id)
    }
}

/// Neither kind of connection has channels.
impl Channels for Dual {}

impl AnyEndpoint for Dual {
    fn listen(&mut self, mode: Mode) -> Result<(), ConnectError> {
        self.plain.listen(mode);
        self.secure.listen(mode)
    }

    fn stop_listening(&mut self) {
        self.plain.stop_listening();
        self.secure.stop_listening();
    }

    fn claim(&mut self, id: ConnectionId) {
        let (endpoint, id) = self.of_mut(id);
        endpoint.claim(id);
    }

    fn connections(&self) -> usize {
        self.secure.connections() + self.plain.connections()
    }

    fn invalid_datagrams(&self) -> u64 {
        self.secure.invalid_datagrams() + self.plain.invalid_datagrams() + self.strays
    }

    fn connect_with(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        options: ConnectOptions,
    ) -> Result<ConnectionId, ConnectError> {
        self.secure.connect_with(now, peer, options).map(|id| outer(id, Kind::Secure))
    }

    fn send_message(
        &mut self,
        now: Instant,
        id: ConnectionId,
        message: &[u8],
        options: MessageOptions,
    ) -> Result<bool, StreamError> {
        let (endpoint, id) = self.of_mut(id);
        endpoint.send_message(now, id, message, options)
    }

    fn recv_message(&mut self, now: Instant, id: ConnectionId, out: &mut [u8]) -> Result<Message, StreamError> {
        let (endpoint, id) = self.of_mut(id);
        endpoint.recv_message(now, id, out)
    }

    fn signal_error(&mut self, id: ConnectionId, code: u32) {
        let (endpoint, id) = self.of_mut(id);
        endpoint.signal_error(id, code);
    }

    fn send_custom(&mut self, id: ConnectionId, kind: u16, body: &[u8]) {
        let (endpoint, id) = self.of_mut(id);
        endpoint.send_custom(id, kind, body);
    }

    fn address_inside(&self, id: ConnectionId) -> Option<SocketAddr> {
        let (endpoint, id) = self.of(id);
        endpoint.address_inside(id)
    }

    fn protection(&self, id: ConnectionId) -> Option<&Protection> {
        let (endpoint, id) = self.of(id);
        endpoint.protection(id)
    }

    fn is_plain(&self, id: ConnectionId) -> bool {
        inner(id).0 == Kind::Plain
    }

    fn admit_plain(&mut self, now: Instant, networks: Vec<Network>) -> bool {
        self.admit(now, networks);
        true
    }

    fn end_callers(&mut self, now: Instant, admits: &mut dyn FnMut(SocketAddr, &Protection) -> bool) -> usize {
        self.secure.end_callers(now, admits)
    }
}
