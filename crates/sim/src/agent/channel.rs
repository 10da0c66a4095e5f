//! Channels of transports: TCP connections with real bytes between the hosts of a simulation.
//!
//! A [`TransportAgent`](crate::TransportAgent) hosts them for its transport. Their segments take the same links as its
//! datagrams, so that loss and delay hit control messages as they do in the field. Links count them in
//! [`FlowTally::channel`](crate::FlowTally).
//!
//! **Modelled:** the handshake of one RTT, segments of at most 1460 bytes, SACK recovery under Reno's window, and the
//! time-outs and retries of Linux. Acknowledgements are delayed, and ride on data of the other direction. Data leave at
//! once (no Nagle algorithm). FIN ends one direction, RST ends both. A host whose transport needs no channels refuses
//! them.
//!
//! **Left out:** CUBIC, pacing, and the window's restart after idle time. There is no receiver's window, because a
//! transport takes all bytes at once. There are no probes for a lost tail: a time-out repeats it, after 200 ms or more.
//! A peer that opens a channel may stay silent. Nobody waits in TIME-WAIT: a FIN that comes again after the end is answered by an RST, which changes nothing for its
//! sender. Behind an address without agent there is no host. A channel to it fails once all SYNs are used up.
//!
//! A host whose transport finished a channel sends the rest. What arrives afterwards is acknowledged and dropped. A
//! peer's FIN ends its direction only. The transport may still send then, until it finishes the channel itself.
//!
//! | to change … | open |
//! | --- | --- |
//! | requests of the transport, and what it is told | this file |
//! | the life of a connection | `channel/connection.rs` |
//! | the division of bytes into segments | `channel/outgoing.rs` |
//! | reassembly | `channel/incoming.rs` |
//! | window, recovery, acknowledgements | `tcp.rs`; the constants: `channel/config.rs` |

mod config;
mod connection;
mod incoming;
mod outgoing;

use farhaul_proto::{ChannelEnd, ChannelOutput, Channels, ConnectionId};
use farhaul_units::Instant;

use super::Outbox;
use crate::packet::segment::{HEADER, Segment, SegmentKind};
use crate::packet::{Payload, PooledPacket, Share};
pub use config::{receiver_config, sender_config};
use connection::{ChannelConnection, Step};

/// The TCP connections of one host.
#[derive(Debug, Default)]
pub(crate) struct ChannelHost {
    connections: Vec<ChannelConnection>,
    /// Number of connections that this host opened. Numbers the next one.
    opened: u32,
    /// When the first of them needs [`handle_timeout`](ChannelHost::handle_timeout).
    deadline: Option<Instant>,
    /// The bytes of the segment to send.
    scratch: Vec<u8>,
}

impl ChannelHost {
    /// Serves the requests of a transport. Returns whether there were any.
    pub(crate) fn serve<T: Channels>(&mut self, now: Instant, transport: &mut T, out: &mut Outbox<'_>) -> bool {
        let mut served = false;
        while let Some(request) = transport.poll_channel(now) {
            served = true;
            if let Some(drained) = self.serve_one(now, request, out) {
                transport.channel_drained(now, drained);
            }
        }
        if served {
            self.reschedule();
        }
        served
    }

    /// A TCP segment arrived.
    pub(crate) fn handle_segment<T: Channels>(
        &mut self,
        now: Instant,
        packet: &PooledPacket,
        transport: &mut T,
        out: &mut Outbox<'_>,
    ) {
        let Payload::Tcp(segment) = packet.payload() else { return };
        let found = self.connections.iter().position(|connection| connection.is_of(packet.from(), segment));
        match (found, segment.kind) {
            (Some(index), SegmentKind::Reset) => {
                let connection = self.connections.remove(index);
                let end = if connection.is_calling() { ChannelEnd::Refused } else { ChannelEnd::Failed };
                tell_end(now, &connection, end, transport);
            }
            (Some(index), _) => self.advance(now, index, (segment, packet.bytes()), transport, out),
            (None, SegmentKind::Reset) => {}
            (None, SegmentKind::Syn) if transport.needs_channels() => {
                let mut connection = ChannelConnection::answer(now, packet.from(), segment);
                connection.transmit(now, &mut self.scratch, out);
                self.connections.push(connection);
            }
            (None, _) => reset(now, packet.from(), (segment.connection, !segment.from_acceptor), out),
        }
        self.reschedule();
    }

    /// The time returned by [`poll_timeout`](ChannelHost::poll_timeout) has come. Early calls are harmless.
    pub(crate) fn handle_timeout<T: Channels>(&mut self, now: Instant, transport: &mut T, out: &mut Outbox<'_>) {
        if self.deadline.is_none_or(|deadline| deadline > now) {
            return;
        }
        let mut index = 0;
        while let Some(connection) = self.connections.get_mut(index) {
            if connection.handle_timeout(now) {
                connection.transmit(now, &mut self.scratch, out);
                index += 1;
            } else {
                tell_end(now, &self.connections.remove(index), ChannelEnd::Failed, transport);
            }
        }
        self.reschedule();
    }

    /// When to call [`handle_timeout`](ChannelHost::handle_timeout).
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.deadline
    }

    /// Breaks all connections: the transport and the peers learn it at once, as from a reset of the network.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn break_all<T: Channels>(&mut self, now: Instant, transport: &mut T, out: &mut Outbox<'_>) {
        for connection in self.connections.drain(..) {
            reset(now, connection.peer, connection.name(), out);
            tell_end(now, &connection, ChannelEnd::Failed, transport);
        }
        self.reschedule();
    }

    /// Serves a request. Returns the channel that takes more bytes after it.
    fn serve_one(&mut self, now: Instant, request: ChannelOutput<'_>, out: &mut Outbox<'_>) -> Option<ConnectionId> {
        if let ChannelOutput::Open(id, peer) = request {
            let mut connection = ChannelConnection::call(now, peer, self.opened, id);
            self.opened += 1;
            connection.transmit(now, &mut self.scratch, out);
            self.connections.push(connection);
            return None;
        }
        let (ChannelOutput::Open(id, _)
        | ChannelOutput::Send(id, _)
        | ChannelOutput::Finish(id)
        | ChannelOutput::Reset(id)) = request;
        let index = self.connections.iter().position(|connection| connection.id == Some(id))?;
        let connection = &mut self.connections[index];
        let mut drained = None;
        match request {
            ChannelOutput::Open(..) => {}
            ChannelOutput::Send(_, bytes) => drained = connection.outgoing.write(bytes).then_some(id),
            ChannelOutput::Finish(_) => connection.finish(),
            ChannelOutput::Reset(_) => {
                reset(now, connection.peer, connection.name(), out);
                self.connections.remove(index);
                return None;
            }
        }
        connection.transmit(now, &mut self.scratch, out);
        drained
    }

    /// Takes a segment of a connection.
    fn advance<T: Channels>(
        &mut self,
        now: Instant,
        index: usize,
        (segment, bytes): (&Segment, &[u8]),
        transport: &mut T,
        out: &mut Outbox<'_>,
    ) {
        let connection = &mut self.connections[index];
        match connection.step(now, segment) {
            Step::Handshake => return connection.transmit(now, &mut self.scratch, out),
            Step::Opened => {
                if let Some(id) = connection.id {
                    transport.channel_opened(now, id);
                }
            }
            Step::Accepted => {
                connection.id = transport.accept_channel(now, connection.peer);
                if connection.id.is_none() {
                    reset(now, connection.peer, connection.name(), out);
                    self.connections.remove(index);
                    return;
                }
            }
            Step::Open => {}
        }
        let id = connection.id;
        connection.take(now, segment, bytes, |bytes| {
            if let Some(id) = id {
                transport.handle_channel(now, id, bytes);
            }
        });
        if let Some(id) = id.filter(|_| connection.outgoing.take_drained()) {
            transport.channel_drained(now, id);
        }
        if connection.has_peer_finished() {
            tell_finished(now, connection, transport);
        }
        connection.transmit(now, &mut self.scratch, out);
        if connection.is_over(now) {
            self.connections.remove(index);
        }
    }

    fn reschedule(&mut self) {
        self.deadline = self.connections.iter().filter_map(ChannelConnection::deadline).min();
    }
}

/// Tells the transport once that the peer has finished.
fn tell_finished<T: Channels>(now: Instant, connection: &mut ChannelConnection, transport: &mut T) {
    if !core::mem::replace(&mut connection.told_finished, true) {
        tell_end(now, connection, ChannelEnd::Finished, transport);
    }
}

/// Tells the transport the end of a channel that it has not given up itself.
fn tell_end<T: Channels>(now: Instant, connection: &ChannelConnection, end: ChannelEnd, transport: &mut T) {
    if let Some(id) = connection.id {
        transport.channel_ended(now, id, end);
    }
}

/// Sends an RST for a connection: its number, and whether this host accepted it.
fn reset(now: Instant, peer: core::net::SocketAddr, (number, accepted): (u32, bool), out: &mut Outbox<'_>) {
    let mut segment = Segment::new(SegmentKind::Reset, HEADER, now);
    (segment.connection, segment.from_acceptor) = (number, accepted);
    out.packet(peer, Payload::Tcp(segment), HEADER, Share::Channel);
}
