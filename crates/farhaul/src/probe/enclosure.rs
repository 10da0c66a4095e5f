//! An encrypted connection that has nothing inside but measured streams.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use farhaul_proto::{
    AddressPair, Batch, Config, ConnectionId, ConnectionLost, DatagramKind, Endpoint, Event, Streams, Transmit,
    Transport,
};
use farhaul_protocols::Protocol;
use farhaul_udp::Train;
use farhaul_units::Instant;

use super::Probing;
use crate::error::Error;
use crate::randomness::entropy;
use crate::security::{Protection, Security};

/// Bytes of each buffer of the connection's own stream, which carries nothing.
const NO_STREAM: u64 = 64 << 10;

/// Settings of an encrypted connection around measured streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EnclosureConfig {
    /// Largest packet of the handshake in bytes, headers of IP and UDP included. At least 1280. Default 1500.
    pub mtu: u32,
    /// Longest time for the attempt to connect. Default 5 s.
    pub connect_timeout: Duration,
    /// Silence of the peer that ends the connection. Default 30 s.
    pub peer_timeout: Duration,
}

impl Default for EnclosureConfig {
    fn default() -> Self {
        let Config { mss, connect_timeout, peer_timeout, .. } = Config::default();
        Self { mtu: mss, connect_timeout, peer_timeout }
    }
}

impl EnclosureConfig {
    /// The same with this largest packet of the handshake, in bytes.
    #[must_use]
    pub const fn mtu(mut self, bytes: u32) -> Self {
        self.mtu = bytes;
        self
    }

    /// The same with this longest time for the attempt to connect.
    #[must_use]
    pub const fn connect_timeout(mut self, limit: Duration) -> Self {
        self.connect_timeout = limit;
        self
    }

    /// The same with this silence of the peer that ends the connection.
    #[must_use]
    pub const fn peer_timeout(mut self, limit: Duration) -> Self {
        self.peer_timeout = limit;
        self
    }
}

/// The connection, and the state that its events tell.
pub(super) struct Enclosure {
    endpoint: Endpoint,
    id: ConnectionId,
    /// The peer's address at the beginning, by which streams know it.
    peer: SocketAddr,
    connected: bool,
    lost: Option<ConnectionLost>,
    /// Datagrams that are to be protected.
    batch: Batch,
}

impl Enclosure {
    /// Begins to connect.
    pub(super) fn begin(
        now: Instant,
        peer: SocketAddr,
        security: Security,
        config: EnclosureConfig,
    ) -> Result<Self, Error> {
        let config = Config {
            mss: config.mtu,
            connect_timeout: config.connect_timeout,
            peer_timeout: config.peer_timeout,
            send_buffer: NO_STREAM,
            recv_buffer: NO_STREAM,
            ..Config::default()
        };
        let mut endpoint = security.endpoint(&Protocol::default(), config, None, entropy()?)?;
        let datagrams = endpoint.datagrams().ok_or(Error::NoProtection)?;
        datagrams.want_datagrams(DatagramKind::Answer, true);
        let id = datagrams.connect_for_datagrams(now, peer)?;
        Ok(Self { endpoint, id, peer, connected: false, lost: None, batch: Batch::new() })
    }

    /// Whether streams can begin.
    ///
    /// # Errors
    /// The connection is over.
    pub(super) fn is_connected(&self) -> Result<bool, Error> {
        self.lost.map_or(Ok(self.connected), |lost| Err(lost.into()))
    }

    pub(super) fn protection(&self) -> Option<Protection> {
        self.endpoint.protection(self.id).map(Protection::of)
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.endpoint.poll_timeout()
    }

    /// The next datagrams: of the connection itself, or those of a stream, protected.
    pub(super) fn poll_transmit<'a>(
        &mut self,
        now: Instant,
        stream: &mut Option<&mut dyn Probing>,
        scratch: &'a mut Batch,
    ) -> Option<Transmit<'a>> {
        if self.endpoint.poll_timeout().is_some_and(|due| due <= now) {
            self.endpoint.handle_timeout(now);
        }
        // Everything that a secure connection sends is sealed, so it is in the scratch buffer.
        let own = self.endpoint.poll_transmit(now, scratch).map(|train| (train.to.into(), train.segment_size));
        self.take_events();
        let (between, segment_size) = match (own, stream) {
            (Some(own), _) => own,
            (None, Some(stream)) => self.seal(now, *stream, scratch)?,
            (None, None) => return None,
        };
        Some(Transmit::between(between, segment_size, scratch.bytes()))
    }

    /// Seals the datagrams of a stream that are due. What cannot be sealed is lost.
    fn seal(&mut self, now: Instant, stream: &mut dyn Probing, out: &mut Batch) -> Option<(AddressPair, usize)> {
        loop {
            let train = stream.poll_transmit(now, &mut self.batch)?;
            let datagrams = self.endpoint.datagrams()?;
            let sent = datagrams.send_datagrams(now, self.id, (train.bytes, train.segment_size), out.cleared());
            if sent.is_some() {
                return sent;
            }
        }
    }

    /// Takes datagrams, and gives the answers inside to the stream.
    pub(super) fn handle(
        &mut self,
        now: Instant,
        arrived: Instant,
        train: Train<'_>,
        stream: &mut Option<&mut dyn Probing>,
    ) {
        self.endpoint.handle_datagrams(now, arrived.min(now), train.from, train.bytes, train.stride);
        self.take_events();
        let (id, peer) = (self.id, self.peer);
        let Some(datagrams) = self.endpoint.datagrams() else { return };
        datagrams.take_datagrams(DatagramKind::Answer, &mut |arrival| {
            if let Some(stream) = stream.as_mut().filter(|_| arrival.connection == id) {
                for datagram in arrival.datagrams() {
                    stream.handle_datagram(arrival.arrived, peer, datagram);
                }
            }
        });
    }

    fn take_events(&mut self) {
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                Event::Connected(_) => self.connected = true,
                Event::Closed(_, reason) => self.lost = Some(reason),
                _ => {}
            }
        }
    }

    /// Tells the peer that nothing more comes.
    pub(super) fn end(&mut self, now: Instant) {
        self.endpoint.close(now, self.id);
    }
}

impl fmt::Debug for Enclosure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Enclosure").field("id", &self.id).field("peer", &self.peer).finish_non_exhaustive()
    }
}
