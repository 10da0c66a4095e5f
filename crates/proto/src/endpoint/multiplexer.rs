//! The protocols of a port with all their connections: routing, order of sending, timers.

use core::net::SocketAddr;

use farhaul_units::{Instant, Rng};

use super::connections::Connections;
use super::table::Table;
use crate::config::Config;
use crate::endpoint::Demultiplexer;
use crate::endpoint::connection::Connection;
use crate::endpoint::protocol::{Output, Setup};
use crate::endpoint::schedule::Due;
use crate::event::{ConnectionId, Event};
use crate::transport::{AddressPair, Batch, Datagrams, StreamError, Transmit, Transport};

/// Everything of an endpoint but the control stream beside its connections.
#[derive(Default)]
pub(crate) struct Multiplexer {
    /// The first one opens connections. The others serve callers alone.
    pub(super) protocols: Vec<PortProtocol>,
    pub(super) table: Table,
    /// A datagram outside of connections came, so a protocol may have an answer to it.
    may_reply: bool,
}

/// A protocol of the port.
pub(super) struct PortProtocol {
    pub(super) demultiplexer: Box<dyn Demultiplexer>,
    pub(super) config: Config,
    pub(super) rng: Rng,
}

impl Multiplexer {
    /// Adds a protocol.
    pub(super) fn add(&mut self, config: Config, seed: u64, demultiplexer: Box<dyn Demultiplexer>) {
        self.table.has_channels |= demultiplexer.needs_channels();
        self.protocols.push(PortProtocol { demultiplexer, config, rng: Rng::new(seed) });
    }

    /// Carries out a command of the application on a connection.
    pub(super) fn command<T>(
        &mut self,
        id: ConnectionId,
        command: impl FnOnce(&mut Connection) -> T,
    ) -> Result<T, StreamError> {
        let connection = self.table.slots.get_mut(id).ok_or(StreamError::NoSuchConnection)?;
        let result = command(connection);
        self.table.mark(id.slot);
        Ok(result)
    }

    /// A protocol of the port, with a view of the connections for it.
    pub(crate) fn protocol_mut(&mut self, at: usize) -> (&mut dyn Demultiplexer, Connections<'_>) {
        let PortProtocol { demultiplexer, config, rng } = &mut self.protocols[at];
        (&mut **demultiplexer, Connections::new(config, rng, at, &mut self.table))
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

    /// All datagrams for this connection were handled.
    fn finish_batch(&mut self, slot: u32, now: Instant) {
        let Some(connection) = self.table.at_mut(slot) else { return };
        let PortProtocol { config, rng, .. } = &mut self.protocols[connection.protocol()];
        self.table.finish_batch(slot, Setup { config, rng, now });
    }

    // ---- output ----

    /// The next connection with something to send, and its output.
    fn next_output(&mut self, now: Instant, scratch: &mut Vec<u8>) -> Option<(u32, AddressPair, Output)> {
        while let Some(slot) = self.table.schedule.next_ready() {
            if let Some(connection) = self.table.at_mut(slot)
                && let Some((between, output)) = connection.poll(now, scratch)
            {
                self.table.mark(slot);
                return Some((slot, between, output));
            }
            self.collect(slot, now);
        }
        None
    }

    /// Collects events and the next deadline of a connection without anything to send.
    fn collect(&mut self, slot: u32, now: Instant) {
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

impl Transport for Multiplexer {
    fn handle_datagrams(
        &mut self,
        now: Instant,
        arrived: Instant,
        from: impl Into<AddressPair>,
        bytes: &mut [u8],
        stride: usize,
    ) {
        let from = from.into();
        self.table.datagram_queue.note_time(now);
        // Datagrams of one call usually belong to one connection, so it is looked up once.
        let mut current: Option<(usize, u64, u32)> = None;
        for datagram in bytes.chunks_mut(stride.max(1)) {
            let Some(at) = self.protocol_of(from.peer, datagram) else {
                self.table.count_invalid();
                continue;
            };
            let Some(key) = self.protocols[at].demultiplexer.key(from.peer, datagram) else {
                // A caller may take the slot of a connection that is being opened.
                if let Some((.., before)) = current.take() {
                    self.finish_batch(before, now);
                }
                let (demultiplexer, mut connections) = self.protocol_mut(at);
                demultiplexer.on_unaddressed(&mut connections, now, from, datagram);
                self.may_reply = true;
                continue;
            };
            let slot = match current {
                Some((protocol, same, slot)) if protocol == at && same == key => slot,
                _ => {
                    let Some(slot) = self.protocols[at].demultiplexer.find(from, key) else {
                        let (demultiplexer, mut connections) = self.protocol_mut(at);
                        demultiplexer.on_unknown(&mut connections, now, from, datagram);
                        self.may_reply = true;
                        continue;
                    };
                    if let Some((.., before)) = current.replace((at, key, slot)) {
                        self.finish_batch(before, now);
                    }
                    self.table.begin_batch(slot, arrived);
                    slot
                }
            };
            let PortProtocol { config, rng, .. } = &mut self.protocols[at];
            self.table.deliver(slot, from, datagram, Setup { config, rng, now });
        }
        if let Some((.., slot)) = current {
            self.finish_batch(slot, now);
        }
    }

    fn note_drops(&mut self, now: Instant, buffer: u64) {
        for id in self.table.slots.ids() {
            if let Some(connection) = self.table.slots.get_mut(id) {
                connection.note_drops(now, buffer);
            }
        }
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
        if self.may_reply {
            for PortProtocol { demultiplexer, .. } in &mut self.protocols {
                if let Some(between) = demultiplexer.poll_reply(scratch.cleared()) {
                    return Some(one(between, scratch));
                }
            }
            self.may_reply = false;
        }
        let (slot, between, output) = self.next_output(now, scratch.cleared())?;
        match output {
            Output::Scratch | Output::Detour(_) => Some(one(between, scratch)),
            Output::Probe => Some(Transmit { whole: true, ..one(between, scratch) }),
            Output::Data => {
                let (segment_size, bytes) = self.table.at_mut(slot)?.emit(now, scratch.cleared())?;
                Some(Transmit::between(between, segment_size, bytes))
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let has_reply = |protocol: &PortProtocol| protocol.demultiplexer.has_reply();
        if self.table.is_busy() || self.may_reply && self.protocols.iter().any(has_reply) {
            return Some(Instant::ZERO);
        }
        self.table.schedule.deadline()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.next_event_for_application()
    }

    fn datagrams(&mut self) -> Option<&mut dyn Datagrams> {
        if self.protocols[0].demultiplexer.is_plain() { None } else { Some(self) }
    }
}

/// The one datagram in the scratch buffer.
fn one(between: AddressPair, scratch: &Batch) -> Transmit<'_> {
    let bytes = scratch.bytes();
    Transmit::between(between, bytes.len(), bytes)
}
