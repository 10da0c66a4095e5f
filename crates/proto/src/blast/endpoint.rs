//! The endpoint of every blast protocol.

use super::engine::Protocol;
use super::tags::Tags;
use crate::config::{Config, Entropy};
use crate::event::ConnectionId;
use crate::shell::endpoint::{Shell, Wraps};

/// The endpoint of a blast protocol on one port of UDP and TCP.
pub(crate) struct Endpoint<P: Protocol> {
    shell: Shell<Tags<P>>,
}

impl<P: Protocol> Endpoint<P> {
    /// An endpoint without connections.
    pub(crate) fn new(config: Config, options: P::Options, entropy: Entropy) -> Self {
        let seed = entropy.seed;
        Self { shell: Shell::new(config, seed, Tags::new(options, entropy)) }
    }

    /// Accepts callers from now on. [`Event::Accepted`](crate::Event::Accepted) reports each.
    pub(crate) fn listen(&mut self) {
        self.shell.protocol.listens = true;
    }

    /// Stops accepting callers.
    pub(crate) fn stop_listening(&mut self) {
        self.shell.protocol.listens = false;
    }

    /// Takes an accepted connection for the application, so it leaves the [backlog](Config::backlog).
    pub(crate) fn claim(&mut self, id: ConnectionId) {
        self.shell.claim(id);
    }

    /// Connections held, closing ones included.
    pub(crate) fn connections(&self) -> usize {
        self.shell.held().connections
    }

    /// Datagrams that were invalid or belonged to no connection.
    pub(crate) const fn invalid_datagrams(&self) -> u64 {
        self.shell.invalid_datagrams()
    }
}

impl<P: Protocol> Wraps for Endpoint<P> {
    type Protocol = Tags<P>;

    fn shell(&self) -> &Shell<Tags<P>> {
        &self.shell
    }

    fn shell_mut(&mut self) -> &mut Shell<Tags<P>> {
        &mut self.shell
    }
}
