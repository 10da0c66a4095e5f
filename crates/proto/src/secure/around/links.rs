//! The tunnels of an endpoint, each with the connection inside.

use core::net::SocketAddr;
use std::collections::BTreeMap;

use crate::error::ConnectionLost;
use crate::event::ConnectionId;

/// Bytes of datagrams that wait for a tunnel to open. A handshake of the protocol inside needs one datagram, and repeats it.
const MOST_EARLY: usize = 4 << 10;

/// A tunnel and the connection inside.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) tunnel: ConnectionId,
    /// The peer's address for the protocol inside.
    pub(super) address: SocketAddr,
    /// The connection inside; `None` until the protocol inside has accepted one.
    pub(super) inner: Option<ConnectionId>,
    pub(super) stage: Stage,
    /// The connection inside has asked for its channel.
    pub(super) asked: bool,
    /// Bytes of the channel that the tunnel did not take yet.
    pub(super) unsent: Vec<u8>,
    /// Datagrams that wait until the tunnel is open.
    early: Vec<Vec<u8>>,
    /// The application knows the connection, and has not released it.
    pub(super) held: bool,
    /// The connection inside is over for the application.
    pub(super) over: bool,
    /// It is among the tunnels that may have reached their end.
    pub(super) watched: bool,
    /// Why the tunnel failed, which is then the reason of the connection's end.
    pub(super) fault: Option<ConnectionLost>,
}

/// The state of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Opening,
    Open,
    /// It is to end after the last bytes of the channel.
    Draining,
    /// It tells its peer that it ends.
    Ending,
    /// Nothing is left to do for its peer.
    Over,
}

impl Link {
    /// A tunnel with the connection that opens or uses it.
    pub(super) const fn new(
        tunnel: ConnectionId,
        address: SocketAddr,
        inner: Option<ConnectionId>,
        stage: Stage,
    ) -> Self {
        Self {
            tunnel,
            address,
            inner,
            stage,
            asked: false,
            unsent: Vec::new(),
            early: Vec::new(),
            held: false,
            over: false,
            watched: false,
            fault: None,
        }
    }

    /// Keeps datagrams until the tunnel is open, if there is room.
    pub(super) fn keep(&mut self, datagrams: &[u8], size: usize) {
        for datagram in datagrams.chunks(size.max(1)) {
            let kept: usize = self.early.iter().map(Vec::len).sum();
            if kept + datagram.len() <= MOST_EARLY {
                self.early.push(datagram.to_vec());
            }
        }
    }

    /// The datagrams that waited.
    pub(super) fn take_early(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.early)
    }

    /// The reason of the connection's end, which the tunnel may know better than the protocol inside.
    pub(super) fn explain(&self, reason: ConnectionLost) -> ConnectionLost {
        match (self.fault, reason) {
            (Some(fault), ConnectionLost::ChannelBroken | ConnectionLost::ClosedLocally) => fault,
            _ => reason,
        }
    }
}

/// All tunnels.
#[derive(Debug, Default)]
pub(super) struct Links {
    /// By the slot of the tunnel.
    slots: Vec<Option<Link>>,
    /// The tunnel of each connection inside.
    by_inner: BTreeMap<ConnectionId, ConnectionId>,
}

impl Links {
    pub(super) fn insert(&mut self, link: Link) {
        let slot = link.tunnel.slot();
        if self.slots.len() <= slot {
            self.slots.resize_with(slot + 1, || None);
        }
        if let Some(inner) = link.inner {
            self.by_inner.insert(inner, link.tunnel);
        }
        self.slots[slot] = Some(link);
    }

    /// Names the connection inside a tunnel.
    pub(super) fn name(&mut self, tunnel: ConnectionId, inner: ConnectionId) {
        if let Some(link) = self.get_mut(tunnel) {
            link.inner = Some(inner);
            self.by_inner.insert(inner, tunnel);
        }
    }

    pub(super) fn remove(&mut self, tunnel: ConnectionId) {
        if let Some(inner) = self.get(tunnel).and_then(|link| link.inner) {
            self.by_inner.remove(&inner);
        }
        if self.get(tunnel).is_some() {
            self.slots[tunnel.slot()] = None;
        }
    }

    pub(super) fn get(&self, tunnel: ConnectionId) -> Option<&Link> {
        self.slots.get(tunnel.slot())?.as_ref().filter(|link| link.tunnel == tunnel)
    }

    pub(super) fn get_mut(&mut self, tunnel: ConnectionId) -> Option<&mut Link> {
        self.slots.get_mut(tunnel.slot())?.as_mut().filter(|link| link.tunnel == tunnel)
    }

    /// The number of tunnels.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.slots.iter().flatten().count()
    }

    /// The tunnel around a connection.
    pub(super) fn of(&self, inner: ConnectionId) -> Option<&Link> {
        self.get(*self.by_inner.get(&inner)?)
    }

    /// The same, mutable.
    pub(super) fn of_mut(&mut self, inner: ConnectionId) -> Option<&mut Link> {
        let tunnel = *self.by_inner.get(&inner)?;
        self.get_mut(tunnel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(slot: u32, generation: u32) -> ConnectionId {
        ConnectionId { slot, generation }
    }

    fn link(tunnel: ConnectionId, inner: Option<ConnectionId>) -> Link {
        Link::new(tunnel, SocketAddr::from(([10, 0, 0, 1], 9)), inner, Stage::Opening)
    }

    #[test]
    fn a_later_tunnel_in_the_same_slot_is_another_one() {
        let mut links = Links::default();
        links.insert(link(id(3, 0), Some(id(8, 1))));
        assert!(links.of(id(8, 1)).is_some() && links.get(id(3, 1)).is_none());
        links.remove(id(3, 1));
        assert!(links.get(id(3, 0)).is_some());
        links.remove(id(3, 0));
        assert!(links.of(id(8, 1)).is_none() && links.count() == 0);
    }

    #[test]
    fn few_datagrams_wait_for_a_tunnel() {
        let mut link = link(id(0, 0), None);
        (0..100).for_each(|_| link.keep(&[7; 2_500], 1_000));
        let early = link.take_early();
        assert_eq!(early.iter().map(Vec::len).sum::<usize>(), 4_000);
        assert!(link.take_early().is_empty());
    }

    #[test]
    fn a_fault_of_the_tunnel_explains_what_the_protocol_inside_cannot_know() {
        let mut link = link(id(0, 0), None);
        let fault = ConnectionLost::Refused;
        assert_eq!(link.explain(ConnectionLost::ChannelBroken), ConnectionLost::ChannelBroken);
        link.fault = Some(fault);
        assert_eq!(link.explain(ConnectionLost::ChannelBroken), fault);
        assert_eq!(link.explain(ConnectionLost::Aborted), ConnectionLost::Aborted);
    }
}
