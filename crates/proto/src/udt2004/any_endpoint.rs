//! The 2004 protocol among those that are chosen at run time: streams between caller and listener only.

use super::endpoint::Endpoint;
use crate::any_endpoint::AnyEndpoint;
use crate::config::Mode;
use crate::error::ConnectError;
use crate::event::ConnectionId;

impl AnyEndpoint for Endpoint {
    fn listen(&mut self, mode: Mode) -> Result<(), ConnectError> {
        if mode != Mode::Stream {
            return Err(ConnectError::StreamsOnly);
        }
        Self::listen(self);
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
}
