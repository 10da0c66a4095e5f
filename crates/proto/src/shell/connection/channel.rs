//! The control channel of a connection: its events go to the present phase.

use farhaul_units::Instant;

use super::{Connection, Phase};
use crate::channel::ChannelEnd;
use crate::shell::line::Request;
use crate::shell::protocol::Setup;

impl Connection {
    /// The host has opened the channel.
    pub(in crate::shell) fn channel_opened(&mut self, now: Instant) {
        if let Phase::Opening(opening) = &mut self.phase {
            opening.channel_opened(now);
        }
    }

    /// Bytes came on the channel.
    pub(in crate::shell) fn on_channel(&mut self, bytes: &[u8], setup: Setup<'_>) {
        if self.standing.is_over() {
            return;
        }
        let (now, mut rest) = (setup.now, bytes);
        if let Phase::Opening(opening) = &mut self.phase {
            let step = opening.on_channel(bytes, setup);
            self.advance(step);
            rest = &[];
        }
        if let Phase::Established(established) = &mut self.phase {
            let effect = established.on_channel(rest, now);
            self.apply(effect);
        }
        self.check_flushed(now);
        self.wake();
    }

    /// The host takes more bytes.
    pub(in crate::shell) fn channel_drained(&mut self) {
        match &mut self.phase {
            Phase::Opening(opening) => opening.channel_drained(),
            Phase::Established(established) => established.channel_drained(),
        }
    }

    /// The channel ended.
    pub(in crate::shell) fn channel_ended(&mut self, now: Instant, end: ChannelEnd) {
        let effect = match &mut self.phase {
            Phase::Opening(opening) => opening.channel_ended(now, end),
            Phase::Established(established) => established.channel_ended(now, end),
        };
        self.apply(effect);
    }

    /// The next request to the host.
    pub(in crate::shell) fn poll_channel(&mut self, now: Instant) -> Option<Request> {
        match &mut self.phase {
            Phase::Opening(opening) => opening.poll_channel(now),
            Phase::Established(established) => established.poll_channel(now),
        }
    }

    /// The bytes of the last [`Request::Send`].
    pub(in crate::shell) fn channel_bytes(&self) -> &[u8] {
        match &self.phase {
            Phase::Opening(opening) => opening.channel_bytes(),
            Phase::Established(established) => established.channel_bytes(),
        }
    }
}
