//! The UDT4 endpoint, with all that UDT4 has beyond streams: messages, rendezvous, error signals, custom packets.

use core::net::SocketAddr;

use farhaul_units::Instant;

use super::messages::{Message, MessageOptions};
use super::router::Router;
use crate::channel::Channels;
use crate::config::{Config, Entropy, Mode};
use crate::error::ConnectError;
use crate::event::ConnectionId;
use crate::shell::endpoint::{Shell, Wraps, check_address};
use crate::shell::handshake::Reception;
use crate::transport::StreamError;

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
    shell: Shell<Router>,
}

impl Endpoint {
    /// An endpoint without connections.
    pub fn new(config: Config, entropy: Entropy) -> Self {
        let router = Router::new(Reception::new(entropy.cookie_key));
        Self { shell: Shell::new(config, entropy.seed, router) }
    }

    /// Accepts callers of `mode` from now on. [`Event::Accepted`](crate::Event::Accepted) reports each.
    pub fn listen(&mut self, mode: Mode) {
        self.shell.protocol.reception.listen(mode);
    }

    /// Stops accepting callers.
    pub fn stop_listening(&mut self) {
        self.shell.protocol.reception.stop_listening();
    }

    /// Opens a connection with options. See [`Streams::connect`](crate::Streams::connect).
    ///
    /// # Errors
    /// As for [`Streams::connect`](crate::Streams::connect). A second rendezvous with the same address is refused.
    pub fn connect_with(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        options: ConnectOptions,
    ) -> Result<ConnectionId, ConnectError> {
        check_address(peer)?;
        Router::connect_with(&mut self.shell, now, peer, options)
    }

    /// Takes one message for sending. Returns false if there is no room now. Then [`Event::Writable`](crate::Event::Writable) follows.
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
        self.shell.command(id, |connection| connection.send_message(now, message, options))?
    }

    /// Copies the next message into `out`.
    ///
    /// # Errors
    /// The connection was lost, or closed while data was known to be missing, or is not in message mode.
    pub fn recv_message(&mut self, _now: Instant, id: ConnectionId, out: &mut [u8]) -> Result<Message, StreamError> {
        self.shell.command(id, |connection| connection.recv_message(out))?
    }

    /// Tells the peer that this side cannot store the data (error signal, type 8).
    pub fn signal_error(&mut self, id: ConnectionId, code: u32) {
        let _ = self.shell.command(id, |connection| {
            if let Some(established) = connection.established_mut() {
                established.signal_error(code);
            }
        });
    }

    /// Takes an accepted connection for the application, so it leaves the [backlog](Config::backlog). Any use of a
    /// connection does the same.
    pub fn claim(&mut self, id: ConnectionId) {
        self.shell.claim(id);
    }

    /// Sends a user-defined control packet (type 0x7FFF) to the peer's controller. Not reliable.
    pub fn send_custom(&mut self, id: ConnectionId, kind: u16, body: &[u8]) {
        let _ = self.shell.command(id, |connection| {
            if let Some(established) = connection.established_mut() {
                established.send_custom(kind, body);
            }
        });
    }

    /// Connections held, closing ones included.
    pub fn connections(&self) -> usize {
        self.shell.held().connections
    }

    /// Datagrams that were invalid or addressed to no connection.
    pub const fn invalid_datagrams(&self) -> u64 {
        self.shell.invalid_datagrams()
    }
}

impl Wraps for Endpoint {
    type Protocol = Router;

    fn shell(&self) -> &Shell<Router> {
        &self.shell
    }

    fn shell_mut(&mut self) -> &mut Shell<Router> {
        &mut self.shell
    }
}

impl Channels for Endpoint {}
