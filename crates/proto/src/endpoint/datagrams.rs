//! Unreliable datagrams of connections that have them: secure ones, as QUIC's have (RFC 9221).
//!
//! ```text
//! packet with a datagram ─▶ question ─▶ the responder of this side, if it answers
//!                           answer   ─▶ the stream of this side, if it has one
//! connection for datagrams alone: the application never hears of it, and its stream carries nothing
//! ```
//!
//! The datagrams are those of [`probe`](crate::probe), as they are in plain. Only a peer whose key was admitted can seal one.
//! They leave when the host sends them, so no queue of this endpoint adds to their delay.

use core::net::SocketAddr;

use farhaul_units::Instant;

use super::check_address;
use super::multiplexer::Multiplexer;
use super::table::Table;
use crate::endpoint::connection::Connection;
use crate::endpoint::protocol::Established;
use crate::error::ConnectError;
use crate::event::{ConnectionId, Event};
use crate::transport::{AddressPair, DatagramKind, Datagrams, ReceivedDatagrams};

/// Connections for datagrams alone that an endpoint holds: as many as a responder remembers streams. Further ones are ended.
pub const MOST_CONNECTIONS: usize = 256;

impl Datagrams for Multiplexer {
    fn want_datagrams(&mut self, kind: DatagramKind, wanted: bool) {
        if kind == DatagramKind::Question {
            self.protocol_mut(0).0.admit_datagram_callers(wanted);
        }
        self.table.datagram_queue.want(kind, wanted);
    }

    fn connect_for_datagrams(&mut self, now: Instant, peer: SocketAddr) -> Result<ConnectionId, ConnectError> {
        check_address(peer)?;
        let (demultiplexer, mut connections) = self.protocol_mut(0);
        demultiplexer.connect_for_datagrams(&mut connections, now, peer)
    }

    fn send_datagrams(
        &mut self,
        now: Instant,
        id: ConnectionId,
        (datagrams, size): (&[u8], usize),
        out: &mut Vec<u8>,
    ) -> Option<(AddressPair, usize)> {
        let send = |connection: &mut Connection| {
            let size = connection.send_datagrams(now, (datagrams, size), out)?;
            Some((connection.between(), size))
        };
        self.command(id, send).ok()?
    }

    fn take_datagrams(&mut self, kind: DatagramKind, to: &mut dyn FnMut(&ReceivedDatagrams<'_>)) {
        self.table.datagram_queue.take(kind, to);
    }
}

impl Multiplexer {
    /// The next event of a connection that the application knows.
    pub(super) fn next_event_for_application(&mut self) -> Option<Event> {
        loop {
            let event = self.table.events.pop_front()?;
            let id = event.connection();
            match event {
                Event::Accepted(_) if self.has_datagrams_alone(id) => self.take_in(id),
                // It is over. Or it carries data, which nobody reads.
                _ if self.table.datagram_queue.connections.contains(&id) => self.release(id),
                _ => return Some(event),
            }
        }
    }

    fn has_datagrams_alone(&self, id: ConnectionId) -> bool {
        let established = self.table.slots.get(id).and_then(Connection::established);
        established.is_some_and(Established::has_datagrams_alone)
    }

    /// A caller for datagrams alone was admitted.
    fn take_in(&mut self, id: ConnectionId) {
        let Table { slots, datagram_queue, .. } = &mut self.table;
        datagram_queue.connections.retain(|held| slots.get(*held).is_some());
        datagram_queue.connections.push(id);
        let excess = datagram_queue.connections.len() > MOST_CONNECTIONS;
        let _ = self.command(id, Connection::claim);
        if excess {
            self.release(id);
        }
    }

    fn release(&mut self, id: ConnectionId) {
        let now = self.table.datagram_queue.now();
        let _ = self.command(id, |connection| connection.release(now));
    }
}
