//! A bulk transfer and a control stream on one channel: both ends as agents.

use core::net::SocketAddr;

use farhaul_cc::ControllerFailure;
use farhaul_proto::probe::{Responder, StableConfig, is_probe};
use farhaul_proto::{ConnectionId, ControlPath, Endpoint, Stats};
use farhaul_units::{Instant, Rng};

use super::bulk::{BulkReceiver, BulkSender};
use super::probe::stable_stats;
use super::{Agent, Outbox};
use crate::agent::transport::TransportAgent;
use crate::packet::{PooledPacket, Share};

/// The host that sends both.
pub struct SharedSource {
    bulk: TransportAgent<Endpoint, BulkSender>,
    to: SocketAddr,
    config: StableConfig,
    session: u64,
    /// When the control stream begins and ends; `None` once it has.
    begin: Option<Instant>,
    end: Option<Instant>,
}

impl SharedSource {
    /// Adds a control stream to the same address as the bulk's. It begins at `begin` and ends at `end`. `seed` gives its
    /// session.
    pub fn new(
        bulk: TransportAgent<Endpoint, BulkSender>,
        to: SocketAddr,
        config: StableConfig,
        (begin, end): (Instant, Instant),
        seed: u64,
    ) -> Self {
        let session = Rng::new(seed).next_u64();
        Self { bulk, to, config, session, begin: Some(begin), end: Some(end) }
    }

    /// The endpoint.
    pub const fn channel(&self) -> &Endpoint {
        &self.bulk.transport
    }
}

impl Agent for SharedSource {
    fn handle_packet(&mut self, now: Instant, packet: &mut PooledPacket, out: &mut Outbox<'_>) {
        self.bulk.handle_packet(now, packet, out);
    }

    fn handle_timeout(&mut self, now: Instant, out: &mut Outbox<'_>) {
        if self.begin.take_if(|begin| *begin <= now).is_some() {
            self.bulk.transport.begin_control(now, ControlPath::Plain(self.to), self.config, self.session);
        }
        if self.end.take_if(|end| *end <= now).is_some()
            && let Some(stream) = self.bulk.transport.control_mut()
        {
            stream.stop();
        }
        self.bulk.handle_timeout(now, out);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        [self.begin, self.end, self.bulk.poll_timeout()].into_iter().flatten().min()
    }

    fn sample(&self, now: Instant, out: &mut Vec<(ConnectionId, Stats)>) {
        self.bulk.sample(now, out);
    }

    fn control(&self, now: Instant) -> Option<Stats> {
        Some(self.bulk.transport.control().map(|stream| stable_stats(stream, now)).unwrap_or_default())
    }

    fn failure(&self) -> Option<ControllerFailure> {
        self.bulk.failure()
    }

    fn finished_at(&self) -> Option<Instant> {
        self.bulk.finished_at()
    }
}

/// The host that receives both.
pub struct SharedSink {
    bulk: TransportAgent<Endpoint, BulkReceiver>,
    responder: Responder,
}

impl SharedSink {
    /// The receiver of a bulk, with a responder.
    pub fn new(bulk: TransportAgent<Endpoint, BulkReceiver>) -> Self {
        Self { bulk, responder: Responder::new() }
    }
}

impl Agent for SharedSink {
    fn handle_packet(&mut self, now: Instant, packet: &mut PooledPacket, out: &mut Outbox<'_>) {
        if !is_probe(packet.outline().1) {
            return self.bulk.handle_packet(now, packet, out);
        }
        self.responder.handle_datagram(now, packet.from(), packet.bytes());
        let mut answer = Vec::new();
        while let Some(to) = self.responder.poll_answer(&mut answer) {
            out.datagram(to, &answer, Share::Control);
            answer.clear();
        }
    }

    fn handle_timeout(&mut self, now: Instant, out: &mut Outbox<'_>) {
        self.bulk.handle_timeout(now, out);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.bulk.poll_timeout()
    }

    fn sample(&self, now: Instant, out: &mut Vec<(ConnectionId, Stats)>) {
        self.bulk.sample(now, out);
    }

    fn control(&self, _: Instant) -> Option<Stats> {
        let mut stats = Stats::default();
        let (datagrams, bytes) = self.responder.totals();
        stats.totals.packets_received = datagrams;
        (stats.totals.bytes_received, stats.totals.bytes_read) = (bytes, bytes);
        Some(stats)
    }

    fn failure(&self) -> Option<ControllerFailure> {
        self.bulk.failure()
    }
}
