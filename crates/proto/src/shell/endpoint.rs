//! All connections of one UDP port. The endpoint routes datagrams, takes turns in sending, and serves timers.
//!
//! ```text
//! datagrams ─▶ first byte: a protocol ─▶ key ─▶ Connection ─▶ events
//!                                        └ none ─▶ Demultiplexer::on_unaddressed ─▶ a new Connection, or an answer
//! Connection ─▶ ready queue ─▶ one train each in turn ─▶ datagrams
//! ```

mod channels;
mod commands;
mod connections;
mod table;

use core::any::Any;
use core::net::SocketAddr;

use farhaul_units::{Instant, Rng};

pub use self::connections::Connections;
use self::table::Table;
use super::protocol::{Demultiplexer, Output, Setup};
use super::schedule::Due;
use crate::config::Config;
use crate::error::ConnectError;
use crate::event::Event;
use crate::secure::Beside;
use crate::transport::{Batch, Transmit, Transport};

/// The endpoint of one UDP port: any number of connections, of one protocol or several.
///
/// Each protocol of the port has settings and limits of its own. The first byte of a datagram tells its protocol.
pub struct Endpoint {
    /// The first one opens connections. The others serve callers alone.
    protocols: Vec<PortProtocol>,
    pub(crate) table: Table,
    pub(crate) beside: Beside,
}

/// A protocol of the port.
struct PortProtocol {
    demultiplexer: Box<dyn Demultiplexer>,
    config: Config,
    rng: Rng,
}

impl Endpoint {
    /// An endpoint without connections. `seed` gives the randomness of its connections.
    pub fn new(config: Config, seed: u64, demultiplexer: impl Demultiplexer + 'static) -> Self {
        let endpoint = Self { protocols: Vec::new(), table: Table::default(), beside: Beside::default() };
        endpoint.with_callers_of(config, seed, demultiplexer)
    }

    /// The same endpoint, which also serves callers of another protocol with settings of their own.
    #[must_use]
    pub fn with_callers_of(mut self, config: Config, seed: u64, demultiplexer: impl Demultiplexer + 'static) -> Self {
        self.table.has_channels |= demultiplexer.needs_channels();
        let demultiplexer = Box::new(demultiplexer);
        self.protocols.push(PortProtocol { demultiplexer, config, rng: Rng::new(seed) });
        self
    }

    /// A protocol of the port, with a view of the connections for it.
    pub(crate) fn protocol_mut(&mut self, at: usize) -> (&mut dyn Demultiplexer, Connections<'_>) {
        let PortProtocol { demultiplexer, config, rng } = &mut self.protocols[at];
        (&mut **demultiplexer, Connections::new(config, rng, at, &mut self.table))
    }

    /// The protocol of connections that this side opens, if its demultiplexer is of this type.
    pub(crate) fn first_protocol_as<T: Demultiplexer>(&mut self) -> Option<(&mut T, Connections<'_>)> {
        let (demultiplexer, connections) = self.protocol_mut(0);
        Some(((demultiplexer as &mut dyn Any).downcast_mut()?, connections))
    }

    /// The slot of the connection that a datagram names.
    pub(crate) fn find(&self, from: SocketAddr, datagram: &[u8]) -> Option<u32> {
        let demultiplexer = &self.protocols[self.protocol_of(from, datagram)?].demultiplexer;
        demultiplexer.find(from, demultiplexer.key(from, datagram)?)
    }

    /// The protocol of a datagram; `None` if the port has no such protocol for its sender.
    #[inline]
    fn protocol_of(&self, from: SocketAddr, datagram: &[u8]) -> Option<usize> {
        if self.protocols.len() == 1 {
            return Some(0);
        }
        self.protocols.iter().position(|protocol| protocol.demultiplexer.recognizes(from, datagram))
    }

    // ---- input ----

    /// Datagrams that arrived from one address.
    pub(crate) fn receive(
        &mut self,
        now: Instant,
        arrived: Instant,
        from: SocketAddr,
        bytes: &mut [u8],
        stride: usize,
    ) {
        // Datagrams of one call usually belong to one connection, so it is looked up once.
        let mut current: Option<(usize, u64, u32)> = None;
        for datagram in bytes.chunks_mut(stride.max(1)) {
            let Some(at) = self.protocol_of(from, datagram) else {
                self.table.count_invalid();
                continue;
            };
            let Some(key) = self.protocols[at].demultiplexer.key(from, datagram) else {
                // A caller may take the slot of a connection that is being opened.
                if let Some((.., before)) = current.take() {
                    self.table.finish_batch(before, now);
                }
                let (demultiplexer, mut connections) = self.protocol_mut(at);
                demultiplexer.on_unaddressed(&mut connections, now, from, datagram);
                continue;
            };
            let slot = match current {
                Some((protocol, same, slot)) if protocol == at && same == key => slot,
                _ => {
                    let Some(slot) = self.protocols[at].demultiplexer.find(from, key) else {
                        let (demultiplexer, mut connections) = self.protocol_mut(at);
                        demultiplexer.on_unknown(&mut connections, now, from, datagram);
                        continue;
                    };
                    if let Some((.., before)) = current.replace((at, key, slot)) {
                        self.table.finish_batch(before, now);
                    }
                    self.table.begin_batch(slot, arrived);
                    slot
                }
            };
            let PortProtocol { config, rng, .. } = &mut self.protocols[at];
            self.table.deliver(slot, from, datagram, Setup { config, rng, now });
        }
        if let Some((.., slot)) = current {
            self.table.finish_batch(slot, now);
        }
    }

    // ---- output ----

    /// The next connection with something to send, and its output.
    fn next_output(&mut self, now: Instant, scratch: &mut Vec<u8>) -> Option<(u32, SocketAddr, Output)> {
        while let Some(slot) = self.table.schedule.next_ready() {
            if let Some(connection) = self.table.at_mut(slot)
                && let Some((to, output)) = connection.poll(now, scratch)
            {
                self.table.mark(slot);
                return Some((slot, to, output));
            }
            self.settle(slot, now);
        }
        None
    }

    /// Collects events and the next deadline of a connection without anything to send.
    fn settle(&mut self, slot: u32, now: Instant) {
        let Some(connection) = self.table.slots.at(slot) else { return };
        self.table.events.extend(connection.take_events());
        let demultiplexer = &mut self.protocols[connection.protocol()].demultiplexer;
        if connection.is_done() {
            if let Some(connection) = self.table.forget(slot) {
                demultiplexer.on_forgotten(&connection);
            }
            return;
        }
        let deadline = connection.deadline(now);
        demultiplexer.on_changed(connection);
        if let Some(caller) = self.table.slots.update(slot) {
            demultiplexer.on_caller_heard(caller);
        }
        if let Some(deadline) = deadline {
            self.table.schedule.wake_at(slot, deadline);
        }
    }
}

impl Transport for Endpoint {
    fn handle_datagrams(&mut self, now: Instant, arrived: Instant, from: SocketAddr, bytes: &mut [u8], stride: usize) {
        self.receive_beside(now, arrived, from, bytes, stride);
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(Due { slot, slept }) = self.table.schedule.next_due(now) {
            if let Some(connection) = self.table.at_mut(slot) {
                if let Some(gap) = slept {
                    connection.on_suspended(now, gap);
                }
                connection.handle_timeout(now);
            }
            self.table.mark(slot);
        }
    }

    fn poll_transmit<'a>(&'a mut self, now: Instant, scratch: &'a mut Batch) -> Option<Transmit<'a>> {
        for PortProtocol { demultiplexer, .. } in &mut self.protocols {
            if let Some(to) = demultiplexer.poll_reply(scratch.cleared()) {
                return Some(one(to, scratch));
            }
        }
        let (slot, to, output) = self.next_output(now, scratch.cleared())?;
        match output {
            Output::Scratch | Output::Detour(_) => Some(one(to, scratch)),
            Output::Probe => Some(Transmit { whole: true, ..one(to, scratch) }),
            Output::Data => {
                let (segment_size, bytes) = self.table.at_mut(slot)?.emit(now, scratch.cleared())?;
                Some(Transmit { to, segment_size, bytes, whole: false })
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let has_reply = || self.protocols.iter().any(|protocol| protocol.demultiplexer.has_reply());
        if self.table.is_busy() || has_reply() {
            return Some(Instant::ZERO);
        }
        self.table.schedule.deadline()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.next_event_for_application()
    }

    fn envelopes(&mut self) -> Option<&mut Self> {
        (!self.protocols[0].demultiplexer.is_plain()).then_some(self)
    }
}

/// Refuses an address that no datagram can reach.
pub(crate) fn check_address(peer: SocketAddr) -> Result<(), ConnectError> {
    if peer.port() == 0 || peer.ip().is_unspecified() { Err(ConnectError::InvalidAddress) } else { Ok(()) }
}

/// The one datagram in the scratch buffer.
fn one(to: SocketAddr, scratch: &Batch) -> Transmit<'_> {
    let bytes = scratch.bytes();
    Transmit { to, segment_size: bytes.len(), bytes, whole: false }
}
