//! Agents: endpoints of flows in a simulation, at one address each.

pub mod bulk;
pub mod channel;
pub mod disk;
pub mod late;
pub mod probe;
pub mod shared;
pub mod source;
pub mod tcp;
pub(crate) mod transport;

use core::net::SocketAddr;

use farhaul_cc::ControllerFailure;
use farhaul_proto::{ConnectionId, Stats};
use farhaul_units::{Duration, Instant};

use crate::network::Network;
use crate::packet::content::AgentId;
use crate::packet::segment::Segment;
use crate::packet::{Payload, PooledPacket, Share};

/// One end of a flow: a transport with its application, a TCP sender, a source of cross traffic, a sink.
///
/// The simulator calls; an agent acts only within calls. Equal calls give equal answers. Like a transport, an agent
/// states after each call when it needs the next one.
pub trait Agent {
    /// A packet for this agent arrived. Packets sent in response go to `out`, at once.
    fn handle_packet(&mut self, now: Instant, packet: &mut PooledPacket, out: &mut Outbox<'_>);

    /// The receive buffer of its host, of so many bytes, has dropped packets, before those that follow.
    fn note_drops(&mut self, now: Instant, buffer: u64) {
        let _ = (now, buffer);
    }

    /// The time returned by [`poll_timeout`](Agent::poll_timeout) has come. Early calls are harmless.
    fn handle_timeout(&mut self, now: Instant, out: &mut Outbox<'_>);

    /// When the agent needs the next call. Before its first packet: when it begins. `None` to wait for a packet.
    fn poll_timeout(&self) -> Option<Instant>;

    /// Appends counters and estimates of each connection. A receiver counts `bytes_read`, a sender the rest.
    fn sample(&self, now: Instant, out: &mut Vec<(ConnectionId, Stats)>);

    /// Counters of a control stream that shares the agent's address with a bulk transfer.
    fn control(&self, now: Instant) -> Option<Stats> {
        let _ = now;
        None
    }

    /// When all data had been acknowledged; `None` until then, and for agents that only receive.
    fn finished_at(&self) -> Option<Instant> {
        None
    }

    /// The failure of its congestion controller, which ended its flow.
    fn failure(&self) -> Option<ControllerFailure> {
        None
    }

    /// Durations of completed transfers, for agents with a list of transfers.
    fn transfer_times(&self) -> &[Duration] {
        &[]
    }

    /// Whether damaged packets reach the agent. By default they do not, because UDP and TCP have checksums.
    fn takes_damaged(&self) -> bool {
        false
    }
}

/// The network as an agent sees it: where it puts the packets it sends.
pub struct Outbox<'a> {
    pub(crate) network: &'a mut Network,
    pub(crate) now: Instant,
    pub(crate) agent: AgentId,
}

impl Outbox<'_> {
    /// Sends a UDP datagram with these bytes. The network adds 28 bytes of headers.
    pub fn datagram(&mut self, to: SocketAddr, bytes: &[u8], share: Share) {
        self.network.send_datagram(self.now, self.agent, to, bytes, share);
    }

    /// Sends a TCP segment that carries these bytes.
    pub fn segment(&mut self, to: SocketAddr, segment: Segment, bytes: &[u8], share: Share) {
        self.network.send_segment(self.now, self.agent, to, (segment, bytes), share);
    }

    /// Sends a packet without content. It occupies `wire_len` bytes of a link, headers included.
    pub fn packet(&mut self, to: SocketAddr, payload: Payload, wire_len: u32, share: Share) {
        self.network.send_typed(self.now, self.agent, to, (payload, wire_len), share);
    }
}
