//! The endpoint of one UDP port whose connections are all inside envelopes.

use core::net::SocketAddr;

use farhaul_units::Instant;
use farhaul_wire::secure::destination;

use super::address;
use super::beside::Beside;
use super::protector::{Protection, Provider};
use super::router::Router;
use super::sealed::Sealed;
use crate::any_endpoint::AnyEndpoint;
use crate::channel::Channels;
use crate::config::{Config, Entropy, Mode};
use crate::error::ConnectError;
use crate::event::{ConnectionId, Event};
use crate::shell::endpoint::{Shell, Wraps, check_address};
use crate::shell::protocol::Protocol;
use crate::shell::slots::Occupant;
use crate::transport::{StreamError, Streams};
use crate::udt::{self, ConnectOptions, HasUdt, Message, MessageOptions, NAME as UDT};

/// Any number of UDT connections inside envelopes, at most one listener.
pub struct Endpoint {
    pub(super) shell: Shell<Router>,
    /// Measured streams beside the connections, and in some of their own.
    pub(super) beside: Beside,
}

impl Endpoint {
    /// An endpoint without connections. `provider` makes keys and handshakes.
    pub fn new(config: Config, entropy: Entropy, provider: Box<dyn Provider>) -> Self {
        Self::serving(UDT, config, entropy, provider)
    }

    /// An endpoint whose connections serve another protocol.
    pub(super) fn serving(
        protocol: &'static str,
        config: Config,
        entropy: Entropy,
        provider: Box<dyn Provider>,
    ) -> Self {
        let router = Router::new(provider, protocol, entropy.cookie_key);
        Self { shell: Shell::new(config, entropy.seed, router), beside: Beside::default() }
    }

    /// The established connection of a datagram.
    pub(super) fn addressee(&mut self, datagram: &[u8]) -> Option<ConnectionId> {
        let slot = self.shell.protocol.find(destination(datagram)?)?;
        let connection = self.shell.at(slot)?;
        connection.established().map(|_| connection.id())
    }

    /// The envelope of an established connection that is not over.
    pub(super) fn sealed(&mut self, id: ConnectionId) -> Option<&mut Sealed> {
        let connection = self.shell.at(id.slot)?;
        if connection.id() != id || connection.is_over() {
            return None;
        }
        connection.established_mut()
    }

    /// Where the peer was when the connection began, and whether it called.
    pub(super) fn origin(&self, id: ConnectionId) -> Option<(SocketAddr, bool)> {
        let connection = self.shell.get(id)?;
        Some((connection.peer(), connection.is_accepted()))
    }

    /// The connections of callers that `admits` refuses.
    pub(super) fn unwelcome(&self, admits: &mut dyn FnMut(SocketAddr, &Protection) -> bool) -> Vec<ConnectionId> {
        let is_unwelcome = |id: &ConnectionId| {
            let Some(connection) = self.shell.get(*id).filter(|one| one.is_accepted() && !one.is_over()) else {
                return false;
            };
            connection.established().is_some_and(|sealed| !admits(connection.peer(), sealed.protection()))
        };
        self.shell.ids().into_iter().filter(is_unwelcome).collect()
    }

    /// The deadline of a connection may have changed.
    pub(super) fn touch(&mut self, id: ConnectionId) {
        let _ = self.shell.command(id, |_| ());
    }

    /// Carries out a command on an established connection.
    fn on_udt(&mut self, id: ConnectionId, command: impl FnOnce(&mut udt::Established)) {
        let _ = self.shell.command(id, |connection| connection.established_mut().map(HasUdt::udt).map(command));
    }
}

impl Wraps for Endpoint {
    type Protocol = Router;

    fn shell(&self) -> &Shell<Self::Protocol> {
        &self.shell
    }

    fn shell_mut(&mut self) -> &mut Shell<Self::Protocol> {
        &mut self.shell
    }

    fn receive(&mut self, now: Instant, arrived: Instant, from: SocketAddr, bytes: &mut [u8], stride: usize) {
        self.receive_beside(now, arrived, from, bytes, stride);
    }

    fn next_event(&mut self) -> Option<Event> {
        self.next_event_for_application()
    }

    fn envelopes_of_connections(&mut self) -> Option<&mut Self> {
        Some(self)
    }
}

impl Channels for Endpoint {}

impl AnyEndpoint for Endpoint {
    fn listen(&mut self, mode: Mode) -> Result<(), ConnectError> {
        self.shell.protocol.listen(Some(mode));
        Ok(())
    }

    fn stop_listening(&mut self) {
        self.shell.protocol.listen(None);
    }

    fn claim(&mut self, id: ConnectionId) {
        self.shell.claim(id);
    }

    fn connections(&self) -> usize {
        self.shell.held().connections
    }

    fn invalid_datagrams(&self) -> u64 {
        self.shell.invalid_datagrams()
    }

    fn connect_with(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        options: ConnectOptions,
    ) -> Result<ConnectionId, ConnectError> {
        check_address(peer)?;
        Router::connect_in(&mut self.shell, now, peer, options)
    }

    fn send_message(
        &mut self,
        now: Instant,
        id: ConnectionId,
        message: &[u8],
        options: MessageOptions,
    ) -> Result<bool, StreamError> {
        self.shell.command(id, |connection| connection.send_message(now, message, options))?
    }

    fn recv_message(&mut self, _now: Instant, id: ConnectionId, out: &mut [u8]) -> Result<Message, StreamError> {
        self.shell.command(id, |connection| connection.recv_message(out))?
    }

    fn signal_error(&mut self, id: ConnectionId, code: u32) {
        self.on_udt(id, |udt| udt.signal_error(code));
    }

    fn send_custom(&mut self, id: ConnectionId, kind: u16, body: &[u8]) {
        self.on_udt(id, |udt| udt.send_custom(kind, body));
    }

    fn address_inside(&self, id: ConnectionId) -> Option<SocketAddr> {
        Some(address::behind(id, self.origin(id)?.0))
    }

    fn protection(&self, id: ConnectionId) -> Option<&Protection> {
        self.shell.get(id)?.established().map(Sealed::protection)
    }

    fn is_plain(&self, _id: ConnectionId) -> bool {
        false
    }

    fn end_callers(&mut self, now: Instant, admits: &mut dyn FnMut(SocketAddr, &Protection) -> bool) -> usize {
        let unwelcome = self.unwelcome(admits);
        unwelcome.iter().for_each(|id| self.abort(now, *id));
        unwelcome.len()
    }
}
