//! The control channels of an endpoint: events go to connections by id, and requests come from them in turn.

use core::net::SocketAddr;

use farhaul_units::Instant;

use super::Endpoint;
use super::multiplexer::{Multiplexer, PortProtocol};
use crate::channel::{ChannelEnd, ChannelOutput, Channels};
use crate::endpoint::connection::Connection;
use crate::endpoint::control_channel::Request;
use crate::endpoint::protocol::Setup;
use crate::event::ConnectionId;

impl Channels for Endpoint {
    fn needs_channels(&self) -> bool {
        self.multiplexer.table.has_channels
    }

    fn accept_channel(&mut self, now: Instant, from: SocketAddr) -> Option<ConnectionId> {
        let at = self.multiplexer.protocols.iter().position(|protocol| protocol.demultiplexer.needs_channels())?;
        let (demultiplexer, mut connections) = self.multiplexer.protocol_mut(at);
        demultiplexer.accept_channel(&mut connections, now, from)
    }

    fn channel_opened(&mut self, now: Instant, id: ConnectionId) {
        let _ = self.command(id, |connection| connection.channel_opened(now));
    }

    fn handle_channel(&mut self, now: Instant, id: ConnectionId, bytes: &[u8]) {
        let Multiplexer { protocols, table, .. } = &mut self.multiplexer;
        let Some(connection) = table.slots.get_mut(id) else { return };
        let PortProtocol { config, rng, .. } = &mut protocols[connection.protocol()];
        connection.on_channel(bytes, Setup { config, rng, now });
        table.mark(id.slot);
    }

    fn channel_drained(&mut self, _now: Instant, id: ConnectionId) {
        let _ = self.command(id, Connection::channel_drained);
    }

    fn channel_ended(&mut self, now: Instant, id: ConnectionId, end: ChannelEnd) {
        let _ = self.command(id, |connection| connection.channel_ended(now, end));
    }

    fn poll_channel(&mut self, now: Instant) -> Option<ChannelOutput<'_>> {
        let table = &mut self.multiplexer.table;
        let (slot, request) = loop {
            let slot = *table.channels.front()?;
            match table.at_mut(slot).and_then(|connection| connection.poll_channel(now)) {
                Some(request) => break (slot, request),
                None => {
                    table.channels.pop_front();
                }
            }
        };
        // The request may have changed what the connection waits for.
        table.schedule.mark_ready(slot);
        let connection = table.at_mut(slot)?;
        let id = connection.id();
        Some(match request {
            Request::Open => ChannelOutput::Open(id, connection.peer()),
            Request::Send => ChannelOutput::Send(id, connection.channel_bytes()),
            Request::Finish => ChannelOutput::Finish(id),
            Request::Reset => ChannelOutput::Reset(id),
        })
    }
}
