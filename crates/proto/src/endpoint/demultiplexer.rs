//! What a protocol implements for its endpoint: it finds the connections of datagrams, and opens new ones.

use core::any::Any;
use core::net::SocketAddr;

use farhaul_units::{Instant, Network};

use super::Connections;
use crate::config::Mode;
use crate::endpoint::connection::Connection;
use crate::error::ConnectError;
use crate::event::ConnectionId;
use crate::transport::{AddressPair, ConnectOptions};

/// A protocol at its port: it finds the connection of a datagram, and opens connections.
///
/// A value of this type holds the maps from keys to slots, and the protocol's means of meeting callers.
pub trait Demultiplexer: Any + Send {
    // ---- finding ----

    /// Whether a datagram from this address is of this protocol, by its first byte. A port with one protocol does not ask.
    fn recognizes(&self, from: SocketAddr, datagram: &[u8]) -> bool {
        let _ = (from, datagram);
        true
    }

    /// The key in a datagram from this address; `None` if the datagram may name no connection.
    fn key(&self, from: SocketAddr, datagram: &[u8]) -> Option<u64>;

    /// The slot of the connection to which datagrams between these addresses have this key.
    fn find(&self, from: AddressPair, key: u64) -> Option<u32>;

    /// Handles a datagram without a key: of a caller, say. Counts it if it is invalid.
    fn on_unaddressed(
        &mut self,
        connections: &mut Connections<'_>,
        now: Instant,
        from: AddressPair,
        datagram: &mut [u8],
    );

    /// Handles a datagram whose key belongs to no connection. It is invalid.
    fn on_unknown(&mut self, connections: &mut Connections<'_>, now: Instant, from: AddressPair, datagram: &mut [u8]) {
        let _ = (now, from, datagram);
        connections.count_invalid();
    }

    // ---- opening ----

    /// Opens a connection to `peer`, whose address is well-formed.
    ///
    /// # Errors
    /// The protocol has no such option, or the endpoint no room.
    fn connect(
        &mut self,
        connections: &mut Connections<'_>,
        now: Instant,
        peer: SocketAddr,
        options: ConnectOptions,
    ) -> Result<ConnectionId, ConnectError>;

    /// Accepts callers of a mode from now on, or no more.
    ///
    /// # Errors
    /// The protocol has no such mode: [`ConnectError::StreamsOnly`].
    fn listen(&mut self, mode: Option<Mode>) -> Result<(), ConnectError>;

    /// Admits callers from these networks alone from now on. Returns false if the protocol admits those of all.
    fn admit(&mut self, _networks: &[Network]) -> bool {
        false
    }

    /// Whether its connections are neither encrypted nor authenticated.
    fn is_plain(&self) -> bool {
        true
    }

    /// Admits callers from now on, or no more, that want unreliable datagrams alone, beside those that the protocol
    /// [listens](Self::listen) for.
    fn admit_datagram_callers(&mut self, _admits: bool) {}

    /// Opens a connection for unreliable datagrams alone.
    ///
    /// # Errors
    /// The endpoint has no room, or the protocol no such datagrams: [`ConnectError::StreamsOnly`].
    fn connect_for_datagrams(
        &mut self,
        connections: &mut Connections<'_>,
        now: Instant,
        peer: SocketAddr,
    ) -> Result<ConnectionId, ConnectError> {
        let _ = (connections, now, peer);
        Err(ConnectError::StreamsOnly)
    }

    /// Whether its connections have control channels.
    fn needs_channels(&self) -> bool {
        false
    }

    /// A peer opened a channel from this address. Returns the id of its connection; `None` refuses it.
    fn accept_channel(
        &mut self,
        connections: &mut Connections<'_>,
        now: Instant,
        from: SocketAddr,
    ) -> Option<ConnectionId> {
        let _ = (connections, now, from);
        None
    }

    // ---- following ----

    /// The connection may have changed.
    fn on_changed(&mut self, connection: &Connection);

    /// The endpoint has forgotten the connection.
    fn on_forgotten(&mut self, connection: &Connection);

    /// An accepted caller spoke for the first time.
    fn on_caller_heard(&mut self, _caller: SocketAddr) {}

    // ---- answers outside connections ----

    /// Writes the next datagram that belongs to no connection into `out`. Returns its addresses.
    fn poll_reply(&mut self, _out: &mut Vec<u8>) -> Option<AddressPair> {
        None
    }

    /// Whether such a datagram waits.
    fn has_reply(&self) -> bool {
        false
    }
}
