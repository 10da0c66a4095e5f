//! The connections of an endpoint, their order of sending, and what their application has not heard yet.

use std::collections::VecDeque;

use farhaul_units::Instant;

use super::datagram_queue::{DatagramQueue, Origin};
use crate::endpoint::connection::{Connection, InvalidDatagram};
use crate::endpoint::protocol::Setup;
use crate::endpoint::schedule::Schedule;
use crate::endpoint::slots::Slots;
use crate::event::Event;
use crate::transport::AddressPair;

/// All connections of a port.
#[derive(Default)]
pub(crate) struct Table {
    pub(super) slots: Slots<Connection>,
    pub(super) schedule: Schedule,
    /// Connections whose channels may have a request.
    pub(super) channels: VecDeque<u32>,
    /// Whether any protocol of the port has channels.
    pub(super) has_channels: bool,
    pub(super) events: VecDeque<Event>,
    /// Unreliable datagrams that the host has not taken.
    pub(super) datagram_queue: DatagramQueue,
    /// When the datagrams of the present receive call reached this computer.
    arrived: Instant,
    invalid: u64,
}

impl Table {
    /// The connection may have something to send, to report, or to ask of the host.
    #[inline]
    pub(super) fn mark(&mut self, slot: u32) {
        self.schedule.mark_ready(slot);
        if self.has_channels && self.channels.back() != Some(&slot) {
            self.channels.push_back(slot);
        }
    }

    /// Whether a connection has something to send, to report, or to ask of the host.
    pub(super) fn is_busy(&self) -> bool {
        !self.schedule.is_idle() || !self.channels.is_empty()
    }

    /// The connection in a slot.
    pub(super) fn at_mut(&mut self, slot: u32) -> Option<&mut Connection> {
        self.slots.at(slot)
    }

    /// Removes a connection.
    pub(crate) fn forget(&mut self, slot: u32) -> Option<Connection> {
        let connection = self.slots.forget(slot);
        self.schedule.forget(slot);
        connection
    }

    // ---- datagrams of one receive call ----

    /// The next datagrams are for this connection.
    pub(super) fn begin_batch(&mut self, slot: u32, arrived: Instant) {
        self.arrived = arrived;
        if let Some(connection) = self.slots.at(slot) {
            connection.begin_batch(arrived);
        }
    }

    /// One datagram for a connection.
    #[inline]
    pub(super) fn deliver(&mut self, slot: u32, from: AddressPair, datagram: &mut [u8], setup: Setup<'_>) {
        let Some(connection) = self.slots.at(slot) else { return };
        match connection.on_datagram(from, datagram, setup) {
            Ok(None) => {}
            Ok(Some(place)) => {
                let origin = Origin { connection: connection.id(), peer: from.peer, arrived: self.arrived };
                self.datagram_queue.put(origin, &datagram[place]);
            }
            Err(InvalidDatagram) => self.invalid += 1,
        }
    }

    /// All datagrams for this connection were handled.
    pub(super) fn finish_batch(&mut self, slot: u32, setup: Setup<'_>) {
        if let Some(connection) = self.slots.at(slot) {
            connection.finish_batch(setup);
        }
        self.mark(slot);
    }

    /// A datagram was invalid or belonged to no connection.
    pub(super) const fn count_invalid(&mut self) {
        self.invalid += 1;
    }

    /// Datagrams that were invalid or belonged to no connection.
    pub(super) const fn invalid_datagrams(&self) -> u64 {
        self.invalid
    }
}
