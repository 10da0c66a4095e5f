//! The control channels of an endpoint: events go to connections by id, and requests come from them in turn.

use core::net::SocketAddr;

use farhaul_units::Instant;

use super::{Shell, Wraps};
use crate::channel::{ChannelEnd, ChannelOutput, Channels};
use crate::event::ConnectionId;
use crate::shell::connection::Connection;
use crate::shell::line::Request;
use crate::shell::protocol::{Setup, WithChannels};
use crate::shell::slots::Occupant;

impl<P: WithChannels> Shell<P> {
    fn handle_channel(&mut self, now: Instant, id: ConnectionId, bytes: &[u8]) {
        let Some(connection) = self.slots.get_mut(id) else { return };
        connection.on_channel(bytes, Setup { config: &self.config, rng: &mut self.rng, now });
        self.mark(id.slot);
    }

    fn poll_channel(&mut self, now: Instant) -> Option<ChannelOutput<'_>> {
        let (slot, request) = loop {
            let slot = *self.channels.front()?;
            match self.slots.at(slot).and_then(|connection| connection.poll_channel(now)) {
                Some(request) => break (slot, request),
                None => {
                    self.channels.pop_front();
                }
            }
        };
        // The request may have changed what the connection waits for.
        self.schedule.mark_ready(slot);
        let connection = self.slots.at(slot)?;
        let id = connection.id();
        Some(match request {
            Request::Open => ChannelOutput::Open(id, connection.peer()),
            Request::Send => ChannelOutput::Send(id, connection.channel_bytes()),
            Request::Finish => ChannelOutput::Finish(id),
            Request::Reset => ChannelOutput::Reset(id),
        })
    }
}

impl<E: Wraps<Protocol: WithChannels>> Channels for E {
    fn needs_channels(&self) -> bool {
        true
    }

    fn accept_channel(&mut self, now: Instant, from: SocketAddr) -> Option<ConnectionId> {
        WithChannels::accept_channel(self.shell_mut(), now, from)
    }

    fn channel_opened(&mut self, now: Instant, id: ConnectionId) {
        let _ = self.shell_mut().command(id, |connection| connection.channel_opened(now));
    }

    fn handle_channel(&mut self, now: Instant, id: ConnectionId, bytes: &[u8]) {
        self.shell_mut().handle_channel(now, id, bytes);
    }

    fn channel_drained(&mut self, _now: Instant, id: ConnectionId) {
        let _ = self.shell_mut().command(id, Connection::channel_drained);
    }

    fn channel_ended(&mut self, now: Instant, id: ConnectionId, end: ChannelEnd) {
        let _ = self.shell_mut().command(id, |connection| connection.channel_ended(now, end));
    }

    fn poll_channel(&mut self, now: Instant) -> Option<ChannelOutput<'_>> {
        self.shell_mut().poll_channel(now)
    }
}
