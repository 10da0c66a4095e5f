//! The commands for a control stream beside the connections.

use delegate::delegate;
use farhaul_units::Instant;

use super::Endpoint;
use crate::probe::{StableConfig, StableStream};
use crate::shared_channel::{CeilingFigures, ControlPath};

impl Endpoint {
    /// Begins a control stream to a responder, instead of one that ran before. `session` is a random number that strangers do
    /// not guess. Beside encrypted connections, it goes inside one of them. From now on, everything that the endpoint sends
    /// has a ceiling, so it should have one peer.
    pub fn begin_control(&mut self, now: Instant, path: ControlPath, config: StableConfig, session: u64) {
        self.channel.begin(&mut self.multiplexer, now, path, (config, session));
    }

    /// Ends the control stream. The connections have no ceiling any more.
    pub fn end_control(&mut self) {
        self.channel.end(&mut self.multiplexer);
    }

    delegate! {
        to self.channel {
            /// The control stream.
            pub fn control(&self) -> Option<&StableStream>;
            /// The control stream, to give it payloads or to take its delays.
            pub fn control_mut(&mut self) -> Option<&mut StableStream>;
            /// The ceiling of the connections; `None` without a control stream.
            pub fn ceiling(&self, now: Instant) -> Option<CeilingFigures>;
        }
    }
}
