//! One port for secure connections of anybody and plain ones of some networks. The first byte of a datagram decides.
//!
//! ```text
//!                 ┌────────────────────────── Dual (one UDP port) ─────────────────────────┐
//!  envelopes ─────│──────────────────────────────────────▶ secure endpoint (TLS inside)    │
//!  all others ────│─▶ sender in an admitted network? ────▶ plain endpoint (UDT4)           │
//!                 │            └ no: counted, no answer                                    │
//!                 └────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! **Downgrade.** The endpoints share no connection, no name and no secret. A plain datagram never reaches the secure
//! endpoint, and an envelope never the plain one. So neither kind of client turns a connection of the other kind into its own.
//! Connections that this side opens are always secure.
//!
//! **Forged senders.** The networks are compared before anything is kept or answered. UDT4's cookie then proves the address, as on
//! a plain port.
//!
//! Ids of connections tell the kind: even slots are secure, odd ones plain.

mod interface;
#[cfg(test)]
mod tests;

use core::net::SocketAddr;

use farhaul_units::{Instant, Network};
use farhaul_wire::secure::is_envelope;

use super::endpoint::Endpoint;
use super::protector::Provider;
use crate::config::{Config, Entropy};
use crate::event::{ConnectionId, Event};
use crate::shell::endpoint::Wraps;
use crate::transport::{Batch, Streams, Transmit, Transport, earliest};
use crate::udt;

/// The endpoint of a port that serves secure connections, and plain UDT4 connections from some networks.
pub struct Dual {
    secure: Endpoint,
    plain: udt::Endpoint,
    /// The networks of plain clients.
    admitted: Vec<Network>,
    /// Plain datagrams from other networks.
    strays: u64,
    /// The kind that sends next, so that neither waits for the other one.
    turn: Kind,
    /// Memory for the datagrams of plain connections.
    batch: Batch,
}

/// A kind of connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Secure,
    Plain,
}

impl Dual {
    /// An endpoint without connections. `config` is that of secure connections, `plain` that of plain ones, which come from
    /// the networks `admitted` alone. `provider` makes keys and handshakes.
    pub fn new(
        [config, plain]: [Config; 2],
        admitted: Vec<Network>,
        entropy: Entropy,
        provider: Box<dyn Provider>,
    ) -> Self {
        let mut entropy = entropy.divided();
        Self {
            secure: Endpoint::new(config, entropy(), provider),
            plain: udt::Endpoint::new(plain, entropy()),
            admitted,
            strays: 0,
            turn: Kind::Secure,
            batch: Batch::new(),
        }
    }

    /// Whether plain datagrams from this address are heard.
    fn admits(&self, from: SocketAddr) -> bool {
        self.admitted.iter().any(|network| network.contains(from.ip()))
    }

    /// Admits plain callers from these networks alone, and ends the connections of others.
    fn admit(&mut self, now: Instant, networks: Vec<Network>) {
        self.admitted = networks;
        for id in self.plain.shell().ids() {
            if self.plain.peer(id).is_some_and(|peer| !self.admits(peer)) {
                self.plain.abort(now, id);
            }
        }
    }
}

impl Transport for Dual {
    fn handle_datagrams(&mut self, now: Instant, arrived: Instant, from: SocketAddr, bytes: &mut [u8], stride: usize) {
        let stride = stride.max(1);
        let mut rest = bytes;
        while !rest.is_empty() {
            let sealed = is_envelope(rest);
            let same = rest.chunks(stride).take_while(|datagram| is_envelope(datagram) == sealed).count().max(1);
            let (run, others) = rest.split_at_mut(rest.len().min(same * stride));
            if sealed {
                self.secure.handle_datagrams(now, arrived, from, run, stride);
            } else if self.admits(from) {
                self.plain.handle_datagrams(now, arrived, from, run, stride);
            } else {
                self.strays += same as u64;
            }
            rest = others;
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.secure.handle_timeout(now);
        self.plain.handle_timeout(now);
    }

    fn poll_transmit<'a>(&'a mut self, now: Instant, scratch: &'a mut Batch) -> Option<Transmit<'a>> {
        match self.turn {
            Kind::Secure => {
                self.turn = Kind::Plain;
                let sealed = self.secure.poll_transmit(now, scratch);
                sealed.or_else(|| self.plain.poll_transmit(now, &mut self.batch))
            }
            Kind::Plain => {
                self.turn = Kind::Secure;
                let plain = self.plain.poll_transmit(now, &mut self.batch);
                plain.or_else(|| self.secure.poll_transmit(now, scratch))
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        earliest(self.secure.poll_timeout(), self.plain.poll_timeout())
    }

    fn poll_event(&mut self) -> Option<Event> {
        let secure = self.secure.poll_event().map(|event| renamed(event, Kind::Secure));
        secure.or_else(|| self.plain.poll_event().map(|event| renamed(event, Kind::Plain)))
    }

    /// Plain clients get no answers to measured streams.
    fn envelopes(&mut self) -> Option<&mut Endpoint> {
        Some(&mut self.secure)
    }
}

/// The id that the application knows.
const fn outer(id: ConnectionId, kind: Kind) -> ConnectionId {
    let plain = match kind {
        Kind::Secure => 0,
        Kind::Plain => 1,
    };
    ConnectionId { slot: id.slot << 1 | plain, generation: id.generation }
}

/// The kind of a connection, and its id in the endpoint of that kind.
const fn inner(id: ConnectionId) -> (Kind, ConnectionId) {
    let kind = if id.slot & 1 == 0 { Kind::Secure } else { Kind::Plain };
    (kind, ConnectionId { slot: id.slot >> 1, generation: id.generation })
}

/// An event of an endpoint, with the id that the application knows.
const fn renamed(event: Event, kind: Kind) -> Event {
    match event {
        Event::Connected(id) => Event::Connected(outer(id, kind)),
        Event::Accepted(id) => Event::Accepted(outer(id, kind)),
        Event::Readable(id) => Event::Readable(outer(id, kind)),
        Event::Writable(id) => Event::Writable(outer(id, kind)),
        Event::SendingFinished(id) => Event::SendingFinished(outer(id, kind)),
        Event::Finished(id) => Event::Finished(outer(id, kind)),
        Event::PeerComplained(id, code) => Event::PeerComplained(outer(id, kind), code),
        Event::Closed(id, reason) => Event::Closed(outer(id, kind), reason),
    }
}
