//! All connections of one UDP port, and perhaps a control stream beside them.
//!
//! ```text
//! datagrams ─▶ first byte: a protocol ─▶ key ─▶ Connection ─▶ events
//!                                        └ none ─▶ Demultiplexer::on_unaddressed ─▶ a new Connection, or an answer
//! Connection ─▶ ready queue ─▶ one train each in turn ─▶ SharedChannel: below the ceiling ─▶ datagrams
//! ```

mod arrivals;
mod channels;
mod commands;
mod connections;
mod control;
mod datagrams;
mod demultiplexer;
mod multiplexer;
mod table;

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
use crate::transport::{Batch, Datagrams, Transmit, Transport};

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
    fn handle_datagrams(&mut self, now: Instant, arrived: Instant, from: SocketAddr, bytes: &mut [u8], stride: usize) {
        self.channel.handle_datagrams(&mut self.multiplexer, (now, arrived), from, bytes, stride);
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
