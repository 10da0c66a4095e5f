//! The endpoint of one UDP port whose connections are all inside envelopes.

use core::net::SocketAddr;

use farhaul_units::Instant;

use super::protector::{Protection, Provider};
use super::router::Router;
use crate::any_endpoint::AnyEndpoint;
use crate::channel::Channels;
use crate::config::{Config, Entropy, Mode};
use crate::error::ConnectError;
use crate::event::ConnectionId;
use crate::shell::endpoint::{Shell, Wraps, check_address};
use crate::udt::{self, ConnectOptions};

/// Any number of UDT connections inside envelopes, at most one listener.
pub struct Endpoint {
    shell: Shell<Router<udt::Established>>,
}

impl Endpoint {
    /// An endpoint without connections. `provider` makes keys and handshakes.
    pub fn new(config: Config, entropy: Entropy, provider: Box<dyn Provider>) -> Self {
        let router = Router::new(provider, entropy.cookie_key);
        Self { shell: Shell::new(config, entropy.seed, router) }
    }

    /// What protects a connection; `None` before it is established.
    pub fn protection(&self, id: ConnectionId) -> Option<&Protection> {
        self.shell.get(id)?.established().map(super::sealed::Sealed::protection)
    }
}

impl Wraps for Endpoint {
    type Protocol = Router<udt::Established>;

    fn shell(&self) -> &Shell<Self::Protocol> {
        &self.shell
    }

    fn shell_mut(&mut self) -> &mut Shell<Self::Protocol> {
        &mut self.shell
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
        if options.rendezvous {
            return Err(ConnectError::StreamsOnly);
        }
        Router::connect_in(&mut self.shell, now, peer, options.mode)
    }
}
