//! The endpoint of one UDP port and its connections: whatever does not differ between protocols.
//!
//! ```text
//!               ┌───────────────── Endpoint (one port) ──────────────────────────────┐
//! datagrams ───▶│ first byte ─▶ Demultiplexer ─▶ slots ─▶ Connection ─▶ Opening      │──▶ datagrams
//!               │               key                       state       ▼              │
//! commands  ───▶│                                                   Established      │──▶ events
//! channel bytes▶│ ready queues                                                       │──▶ channel bytes
//! time      ───▶│ deadlines (heap)                                                   │──▶ deadline
//!               └────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! A protocol implements `Demultiplexer`, `Opening` and `Established`, and hands its demultiplexer to an [`Endpoint`].
//! One that the endpoint does not know may stand in another crate.
//!
//! | part | owns |
//! | --- | --- |
//! | `protocol` | the traits of connections: `Opening` and `Established` |
//! | `multiplexer`, `demultiplexer`, `connections`, `table` | routing, order of sending, timers, channels |
//! | `commands`, `datagrams`, `channels`, `control` | the public traits of an endpoint |
//! | `datagram_queue` | unreliable datagrams that wait for the host |
//! | `connection` | the phases of a connection, and its application's commands |
//! | `life`, `connection_state` | the state of a connection, and how its application sees it |
//! | `closing` | telling the peer how this side left |
//! | `liveness` | all limits after which a peer is given up: `expiry`, `progress`, `gap` |
//! | `host_drops` | packets that died in the receive buffer of this host |
//! | `limit` | what held the sender back, and for how long |
//! | `control_channel` | an end of a control channel: its state, and requests to the host |
//! | `route` | the addresses of a connection's datagrams |
//! | `slots`, `schedule` | where an endpoint keeps its connections, and their order of sending |
//! | `handshake` | callers and listeners with cookies, as UDT4 and the protocol of 2004 have them; room for callers |
//! | `replies` | stateless replies to callers |
//!
//! Events of a connection are collected once it has nothing more to send, so a host drains
//! [`poll_transmit`](crate::Transport::poll_transmit) before it asks for them.

mod channels;
pub mod closing;
mod commands;
pub mod connection;
pub(crate) mod connection_state;
mod connections;
mod control;
pub mod control_channel;
mod datagram_queue;
mod datagrams;
mod demultiplexer;
pub mod expiry;
pub mod gap;
pub mod handshake;
mod host_drops;
pub(crate) mod life;
pub mod limit;
pub mod liveness;
mod multiplexer;
pub mod progress;
pub mod protocol;
pub(crate) mod replies;
mod route;
pub(crate) mod schedule;
pub(crate) mod slots;
mod table;

#[cfg(test)]
mod tests;

use core::net::SocketAddr;

use farhaul_units::Instant;

pub use self::connections::Connections;
pub use self::datagrams::MOST_CONNECTIONS;
pub use self::demultiplexer::Demultiplexer;
use self::multiplexer::Multiplexer;
use crate::config::Config;
use crate::error::ConnectError;
use crate::event::Event;
use crate::shared_channel::SharedChannel;
use crate::transport::{AddressPair, Batch, Datagrams, Transmit, Transport};

/// The endpoint of one UDP port: any number of connections, of one protocol or several.
///
/// Each protocol of the port has settings and limits of its own. The first byte of a datagram tells its protocol.
pub struct Endpoint {
    multiplexer: Multiplexer,
    channel: SharedChannel,
}

impl Endpoint {
    /// An endpoint without connections. `seed` gives the randomness of its connections.
    pub fn new(config: Config, seed: u64, demultiplexer: impl Demultiplexer) -> Self {
        let empty = Self { multiplexer: Multiplexer::default(), channel: SharedChannel::default() };
        empty.with_callers_of(config, seed, demultiplexer)
    }

    /// The same endpoint, which also serves callers of another protocol with settings of their own.
    #[must_use]
    pub fn with_callers_of(mut self, config: Config, seed: u64, demultiplexer: impl Demultiplexer) -> Self {
        self.multiplexer.add(config, seed, Box::new(demultiplexer));
        self
    }
}

impl Transport for Endpoint {
    fn handle_datagrams(
        &mut self,
        now: Instant,
        arrived: Instant,
        from: impl Into<AddressPair>,
        bytes: &mut [u8],
        stride: usize,
    ) {
        self.channel.handle_datagrams(&mut self.multiplexer, (now, arrived), from.into(), bytes, stride);
    }

    fn note_drops(&mut self, now: Instant, buffer: u64) {
        self.multiplexer.note_drops(now, buffer);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.channel.apply_ceiling(now);
        self.multiplexer.handle_timeout(now);
    }

    fn poll_transmit<'a>(&'a mut self, now: Instant, scratch: &'a mut Batch) -> Option<Transmit<'a>> {
        self.channel.poll_transmit(&mut self.multiplexer, now, scratch)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.channel.poll_timeout(&self.multiplexer)
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.multiplexer.poll_event()
    }

    fn datagrams(&mut self) -> Option<&mut dyn Datagrams> {
        self.multiplexer.datagrams()
    }
}

/// Refuses an address that no datagram can reach.
pub(crate) fn check_address(peer: SocketAddr) -> Result<(), ConnectError> {
    if peer.port() == 0 || peer.ip().is_unspecified() { Err(ConnectError::InvalidAddress) } else { Ok(()) }
}
