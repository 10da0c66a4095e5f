//! The endpoint of this protocol.

use super::router::Router;
use crate::any_endpoint::StreamsOnly;
use crate::channel::Channels;
use crate::config::{Config, Entropy, Mode};
use crate::event::ConnectionId;
use crate::shell::endpoint::{Shell, Wraps};
use crate::shell::handshake::Reception;

/// The endpoint of the 2004 protocol on one UDP port: one connection per address, at most one listener.
///
/// [`connect`](crate::Streams::connect) also fails with [`AlreadyConnected`](crate::ConnectError::AlreadyConnected),
/// because two addresses have one connection at a time.
pub struct Endpoint {
    shell: Shell<Router>,
}

impl Endpoint {
    /// An endpoint without connections. [`default_config`](super::default_config) has the settings with the paper's
    /// controller. Settings without use in this protocol (messages, rendezvous, acknowledgement numbers) are ignored.
    pub fn new(config: Config, entropy: Entropy) -> Self {
        let router = Router::new(Reception::new(entropy.cookie_key));
        Self { shell: Shell::new(config, entropy.seed, router) }
    }

    /// Accepts callers from now on. [`Event::Accepted`](crate::Event::Accepted) reports each.
    pub fn listen(&mut self) {
        self.shell.protocol.reception.listen(Mode::Stream);
    }

    /// Stops accepting callers.
    pub fn stop_listening(&mut self) {
        self.shell.protocol.reception.stop_listening();
    }

    /// Takes an accepted connection for the application, so it leaves the [backlog](Config::backlog). Any use of a
    /// connection does the same.
    pub fn claim(&mut self, id: ConnectionId) {
        self.shell.claim(id);
    }

    /// Connections held, closing ones included.
    pub fn connections(&self) -> usize {
        self.shell.held().connections
    }

    /// Datagrams that were invalid or belonged to no connection.
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

impl StreamsOnly for Endpoint {
    fn set_listening(&mut self, listens: bool) {
        if listens { self.listen() } else { self.stop_listening() }
    }
}

impl Channels for Endpoint {}
