//! UDT4 among the protocols that are chosen at run time.

use core::net::SocketAddr;

use farhaul_units::Instant;

use super::endpoint::{ConnectOptions, Endpoint};
use super::messages::{Message, MessageOptions};
use crate::any_endpoint::AnyEndpoint;
use crate::config::Mode;
use crate::error::ConnectError;
use crate::event::ConnectionId;
use crate::transport::StreamError;

impl AnyEndpoint for Endpoint {
    fn listen(&mut self, mode: Mode) -> Result<(), ConnectError> {
        Self::listen(self, mode);
        Ok(())
    }

    fn stop_listening(&mut self) {
        Self::stop_listening(self);
    }

    fn claim(&mut self, id: ConnectionId) {
        Self::claim(self, id);
    }

    fn connections(&self) -> usize {
        Self::connections(self)
    }

    fn invalid_datagrams(&self) -> u64 {
        Self::invalid_datagrams(self)
    }

    fn connect_with(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        options: ConnectOptions,
    ) -> Result<ConnectionId, ConnectError> {
        Self::connect_with(self, now, peer, options)
    }

    fn send_message(
        &mut self,
        now: Instant,
        id: ConnectionId,
        message: &[u8],
        options: MessageOptions,
    ) -> Result<bool, StreamError> {
        Self::send_message(self, now, id, message, options)
    }

    fn recv_message(&mut self, now: Instant, id: ConnectionId, out: &mut [u8]) -> Result<Message, StreamError> {
        Self::recv_message(self, now, id, out)
    }

    fn signal_error(&mut self, id: ConnectionId, code: u32) {
        Self::signal_error(self, id, code);
    }

    fn send_custom(&mut self, id: ConnectionId, kind: u16, body: &[u8]) {
        Self::send_custom(self, id, kind, body);
    }
}
