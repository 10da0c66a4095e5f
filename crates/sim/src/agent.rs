//! What lives at an address: anything that takes packets and sends packets.

pub mod bulk;
pub mod disk;
pub mod source;
pub mod tcp;

use core::net::SocketAddr;

use farhaul_proto::{ConnectionId, Stats};
use farhaul_units::{Duration, Instant};

use crate::network::{AgentId, Network};
use crate::packet::{Payload, PooledPacket, Share};

/// One end of a flow: a transport with its application, a TCP sender, a source of cross traffic, a sink.
///
/// The simulator calls; an agent never does anything between calls. Equal calls give equal answers. Like a transport, an
/// agent says after each call when it wants the next one.
pub trait Agent {
    /// A packet for this agent arrived. What it sends goes to `out`, at once.
    fn handle_packet(&mut self, now: Instant, packet: &mut PooledPacket, out: &mut Outbox<'_>);

    /// The time that [`poll_timeout`](Agent::poll_timeout) asked for has come. Early calls are harmless.
    fn handle_timeout(&mut self, now: Instant, out: &mut Outbox<'_>);

    /// When it wants to be called next; an agent that wants to begin says when.
    fn poll_timeout(&self) -> Option<Instant>;

    /// Appends counters and estimates of its connections: a receiver counts `bytes_read`, a sender the rest.
    fn sample(&self, now: Instant, out: &mut Vec<(ConnectionId, Stats)>);

    /// When everything that it had to send had been acknowledged; `None` until then, and for whoever only receives.
    fn finished_at(&self) -> Option<Instant> {
        None
    }

    /// How long each transfer took that is done, for agents with a list of them.
    fn transfer_times(&self) -> &[Duration] {
        &[]
    }

    /// Where packets that it did not ask for count: damaged ones reach it only if it says so. UDP and TCP have checksums.
    fn takes_damaged(&self) -> bool {
        false
    }
}

impl<A: Agent + ?Sized> Agent for Box<A> {
    fn handle_packet(&mut self, now: Instant, packet: &mut PooledPacket, out: &mut Outbox<'_>) {
        (**self).handle_packet(now, packet, out);
    }

    fn handle_timeout(&mut self, now: Instant, out: &mut Outbox<'_>) {
        (**self).handle_timeout(now, out);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        (**self).poll_timeout()
    }

    fn sample(&self, now: Instant, out: &mut Vec<(ConnectionId, Stats)>) {
        (**self).sample(now, out);
    }

    fn finished_at(&self) -> Option<Instant> {
        (**self).finished_at()
    }

    fn transfer_times(&self) -> &[Duration] {
        (**self).transfer_times()
    }

    fn takes_damaged(&self) -> bool {
        (**self).takes_damaged()
    }
}

/// Where an agent puts what it sends: the network, as seen from the agent's place in it.
pub struct Outbox<'a> {
    pub(crate) network: &'a mut Network,
    pub(crate) now: Instant,
    pub(crate) agent: AgentId,
}

impl Outbox<'_> {
    /// Sends a UDP datagram with these bytes; the network adds 28 bytes of headers.
    pub fn datagram(&mut self, to: SocketAddr, bytes: &[u8], share: Share) {
        self.network.send_datagram(self.now, self.agent, to, bytes, share);
    }

    /// Sends a packet without bytes, which takes `wire_len` bytes of a link, headers included.
    pub fn packet(&mut self, to: SocketAddr, payload: Payload, wire_len: u32, share: Share) {
        self.network.send_typed(self.now, self.agent, to, (payload, wire_len), share);
    }
}
