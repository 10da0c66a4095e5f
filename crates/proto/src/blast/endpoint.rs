//! The endpoint of every blast protocol.

use super::engine::Protocol;
use super::tags::Tags;
use crate::any_endpoint::StreamsOnly;
use crate::config::{Config, Entropy};
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
}

impl<P: Protocol> StreamsOnly for Endpoint<P> {
    fn set_listening(&mut self, listens: bool) {
        self.shell.protocol.listens = listens;
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
